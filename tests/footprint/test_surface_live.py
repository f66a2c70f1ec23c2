"""Surfaces of real sandboxes: what is said to be denied is really tried, and the sandbox goes on as it was."""

import os
import signal

import pytest

from tare.errors import SessionError
from tare.features.kernel.execution import live
from tare.features.kernel.surface.surface import Reader
from tare.footprint_model import Call
from tare.model import Arm
from tare.platforms import platform_registry

pytestmark = pytest.mark.host

#: Tries to make a user namespace, which takes no right but the call itself.
TRY = ["unshare", "--user", "true"]


@pytest.fixture(scope="module")
def reader():
    return Reader()


def looked_at(launcher, reader, name):
    """The surface of a platform, and what becomes of the call that is tried in the same instance afterwards."""
    platform = platform_registry.choose([name])[0]
    answer = platform.detect()
    assert answer.available, answer.reason
    platform.prepare(launcher.image)
    live = launcher.start(platform, Arm(name), measured=False)
    try:
        surface = reader.surface(name, live.instance.host_processes)
        tried = live.session.execute(TRY, time_limit_s=30)
        return surface, tried
    finally:
        live.stop()
        platform.close()


def test_an_instance_that_ends_while_it_is_read_has_no_surface(launcher):
    class Killing(Reader):
        def surface(self, platform, list_pids):
            read = super().surface(platform, list_pids)
            for pid in list_pids():
                os.kill(pid, signal.SIGKILL)
            return read

    [platform] = platform_registry.choose(["runc"])
    assert platform.detect().available
    platform.prepare(launcher.image)
    with pytest.raises(SessionError):
        live._started(Killing(), platform, launcher, lambda _: None)
    platform.close()


def roles(surface):
    return {process.role for process in surface.tasks if process.counted}


def test_native_and_runc_have_no_filter(launcher, reader):
    for name in ("native", "runc"):
        surface, tried = looked_at(launcher, reader, name)
        assert set(surface.calls.values()) == {Call.ALLOWED}
        assert all(process.seccomp == "none" for process in surface.tasks)
        if name == "runc":
            assert tried.code == 0, tried.stderr
            assert any(process.role == "outside" for process in surface.tasks)
            [inside] = [process for process in surface.tasks if process.counted]
            assert {"mnt", "net", "pid"} <= set(inside.namespaces)
            assert "/data" in [place.path for place in inside.writable]
            assert len(inside.effective) == 14


def test_docker_denies_what_its_filter_says(launcher, reader):
    surface, tried = looked_at(launcher, reader, "docker")
    assert [(task.program, task.role) for task in surface.tasks if task.counted] == [("tare-agent", "sandboxed")]
    assert surface.calls["unshare"] is Call.ERRNO
    assert tried.code != 0
    assert b"not permitted" in tried.stderr
    assert surface.calls["keyctl"] is Call.ERRNO
    assert surface.calls["clone"] is Call.CONDITIONAL
    assert surface.calls["read"] is Call.ALLOWED
    assert surface.abis["i386"].reachable > 200


def test_gvisors_processes_may_do_little(launcher, reader):
    surface, tried = looked_at(launcher, reader, "gvisor")
    assert tried.code == 0, tried.stderr  # its own kernel does that: the host is not asked
    assert surface.calls["unshare"] not in (Call.ALLOWED, Call.CONDITIONAL)
    assert {"sentry", "gofer"} <= roles(surface)
    assert surface.counts[Call.ALLOWED] + surface.counts[Call.CONDITIONAL] < 150
