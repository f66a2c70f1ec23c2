"""Podman without CAP_SYS_RESOURCE, where nobody may raise a limit; and what the manifest says of its network."""

import resource
from types import SimpleNamespace

import pytest

from tare.host import processes
from tare.platforms import podman


@pytest.mark.parametrize(
    ("most", "values"),
    [(4096, ("4096", "4096", "4096")), (resource.RLIM_INFINITY, ("16384", "8388608", "32768"))],
)
def test_limits_are_lowered_to_what_this_process_may_have(monkeypatch, most, values):
    monkeypatch.setattr(resource, "getrlimit", lambda number: (100, most))
    names = ("nofile", "memlock", "nproc")
    assert podman.ulimits() == [f"--ulimit={name}={value}:{value}" for name, value in zip(names, values, strict=True)]


def test_a_podman_that_is_too_old_is_said_to_be(monkeypatch):
    """Podman 3.4's answer to a template that asks for `.Host.NetworkBackend`, as Go's text/template words it."""
    message = (
        b'Error: template: info:1:59: executing "info" at <.Host.NetworkBackend>: can\'t evaluate field NetworkBackend'
    )
    answer = processes.Finished(("podman",), 125, b"", message + b" in type *define.HostInfo\n", 1)
    monkeypatch.setattr(podman.processes, "run", lambda *_, **__: answer)
    monkeypatch.setattr(podman, "_path", lambda program: f"/usr/bin/{program}")
    monkeypatch.setattr(podman.genuine, "other", lambda program, name: None)
    answer = podman.PLATFORMS[0].detect()
    assert (answer.available, answer.reason) == (False, "podman is older than 4.0")
    assert "4.0" in answer.fix


@pytest.fixture
def told(monkeypatch, tmp_path):
    """The options of a platform's podman that are about the runtime, on a host whose podman prefers crun."""
    podman.default_runtime.cache_clear()
    monkeypatch.setattr(podman, "output", lambda argv: "/usr/bin/crun")
    monkeypatch.setattr(podman.processes, "find", lambda program: f"/usr/bin/{program}")
    monkeypatch.setattr(podman.runtimes, "crun", lambda: "/usr/bin/crun")

    def of(name):
        [platform] = [platform for platform in podman.PLATFORMS if platform.name == name]
        return [option for option in platform._podman(tmp_path) if option.startswith("--runtime=")]

    yield of
    podman.default_runtime.cache_clear()


def test_podman_is_told_no_runtime_as_its_users_tell_it_none(told):
    assert told("podman") == told("podman-host") == []
    assert told("podman-runc") == ["--runtime=/usr/bin/runc"]
    assert told("podman-crun") == ["--runtime=/usr/bin/crun"]


def test_where_crun_must_not_see_all_of_the_host_podman_is_told_the_script(told, monkeypatch):
    monkeypatch.setattr(podman.runtimes, "crun", lambda: "/var/lib/tare/bin/crun-without-v2")
    assert told("podman") == told("podman-crun") == ["--runtime=/var/lib/tare/bin/crun-without-v2"]


def test_a_default_that_is_not_crun_is_left_to_podman(told, monkeypatch):
    monkeypatch.setattr(podman, "output", lambda argv: "/usr/sbin/runc")
    assert told("podman") == []


@pytest.mark.parametrize(
    ("program", "printed", "shown"),
    [
        ("/usr/sbin/runc", "runc version 1.1.5+ds1\ncommit: 1\n", "runc 1.1.5+ds1 (/usr/sbin/runc)"),
        ("/tare/bin/crun-without-v2", "crun version 1.8.1\ncommit: f\n", "crun 1.8.1 (/tare/bin/crun-without-v2)"),
        ("/opt/kata", "", "/opt/kata"),
    ],
)
def test_a_runtime_is_described_by_its_version_and_path(monkeypatch, program, printed, shown):
    answer = processes.Finished(("x",), 0, printed.encode(), b"", 1)
    monkeypatch.setattr(podman.runtimes.processes, "run", lambda *_, **__: answer)
    monkeypatch.setattr(podman.runtimes.state, "work", lambda: "/tare/work")
    assert podman.runtimes.described(program) == shown


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("podman", "client, bridge, published port (NAT), cni-podman0, veth"),
        ("podman-gvisor", "client, bridge, published port (NAT), cni-podman0, veth, gVisor's netstack"),
        ("podman-host", "client, bridge, host stack"),
    ],
)
def test_the_bridge_is_named_as_podman_itself_names_it(monkeypatch, name, path):
    """netavark's default network is on podman0, CNI's on cni-podman0."""
    answer = processes.Finished(("podman",), 0, b"cni-podman0\n", b"", 1)
    monkeypatch.setattr(podman.processes, "run", lambda *_, **__: answer)
    [platform] = [platform for platform in podman.PLATFORMS if platform.name == name]
    instance = SimpleNamespace(host_processes=list)
    assert platform.observed(instance, lambda _: "unknown").network_path == path
