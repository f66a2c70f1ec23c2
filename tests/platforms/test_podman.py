"""A host without CAP_SYS_RESOURCE, where nobody may raise a limit: podman is told lesser ones than its own."""

import resource

from tare.platforms import podman


def test_podmans_own_limits_are_lowered_to_what_this_process_may_have(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda number: (100, 4096))
    assert podman.ulimits() == [f"--ulimit={name}=4096:4096" for name in podman.RAISED]


def test_where_nothing_is_limited_they_are_podmans_own(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda number: (100, resource.RLIM_INFINITY))
    wanted = [f"--ulimit={name}={limit}:{limit}" for name, (_, limit) in podman.RAISED.items()]
    assert podman.ulimits() == wanted
