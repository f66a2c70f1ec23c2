"""What real instances take of the host's memory: their own, without the client that waits for tare alone."""

import pytest

from tare.image.image_build import agent_path
from tare.model import Arm
from tare.platforms import platform_registry

pytestmark = [pytest.mark.host, pytest.mark.own_host]
MIB = 2**20


def _usage(name, launcher):
    [platform] = platform_registry.choose([name])
    platform.prepare(launcher.image)
    running = launcher.start(platform, Arm(name), measured=False)
    try:
        running.session.execute(["sleep", "0.3"])  # a new agent still frees memory
        return running.measure_memory()
    finally:
        running.stop()
        platform.close()


def test_a_bare_runtime_costs_what_its_container_does_and_not_its_waiting_client(launcher):
    native, runc, crun = (_usage(name, launcher) for name in ("native", "runc", "crun"))
    assert native.client is None
    assert 0 <= runc.own - native.own <= MIB / 2
    assert 0 <= crun.own - native.own <= MIB / 2
    assert runc.client > crun.client > MIB / 2  # one of Go, one of C
    # Agents of other hosts share the file's pages with native's or with runc's, as they come and go: up to all of them.
    assert runc.pss - native.pss < MIB / 2 + agent_path().stat().st_size


@pytest.mark.parametrize(("name", "least", "most"), [("podman", 0.5, 3), ("docker", 1, 6), ("gvisor", 8, 40)])
def test_others_cost_their_monitors_and_kernels_besides(name, least, most, launcher):
    usage = _usage(name, launcher)
    assert least * MIB < usage.own < most * MIB
    assert usage.own < usage.pss
    assert (usage.client is None) == (name == "docker")  # which is spoken to by its API
    assert (usage.daemons is None) == (name != "docker")


def test_rootless_podman_is_without_its_waiting_client(launcher):
    usage = _usage("podman-rootless", launcher)
    assert usage.client > 8 * MIB
    assert 0.5 * MIB < usage.own < usage.client
