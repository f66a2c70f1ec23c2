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
