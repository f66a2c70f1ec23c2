"""SIGKILL of the harness while it starts instances: `tare clean` finds and removes everything."""

import pytest

from tare.contract import kill

pytestmark = pytest.mark.host


@pytest.mark.parametrize("delay", kill.DELAYS_S)
@pytest.mark.parametrize(
    "name",
    [
        "native",
        "runc",
        "crun",
        "bubblewrap",
        "nspawn",
        "docker",
        "libvirt-lxc",
        "libvirt-qemu",
        "lxc",
        "lxd",
        "podman",
        "podman-rootless",
        "gvisor",
        pytest.param("docker-in-qemu", marks=pytest.mark.slow),  # before it starts, it has to make its store
        "docker-gvisor",
        "runc-in-qemu",
        "qemu",
        "qemu-microvm",
        "uml",
    ],
)
def test_a_harness_killed_mid_start_leaves_nothing_that_clean_does_not_find(name, delay):
    kill.killed_after(name, delay)
