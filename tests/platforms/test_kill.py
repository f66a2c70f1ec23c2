"""SIGKILL of the harness while it starts instances: `tare clean` finds and removes everything."""

import pytest

from tare.contract import kill

pytestmark = pytest.mark.host
#: Started, journalled and removed by another's code, word for word, with another binary or machine type; docker-in-qemu
#: has to make its store besides before it starts: `make slow-test`.
LIKE_ANOTHER = ("crun", "docker-gvisor", "docker-in-qemu-tcg", "qemu-microvm-tcg", "runc-in-qemu-tcg")
BESIDE_OTHERS = (
    "native",
    "runc",
    "bubblewrap",
    "containerd",
    "containerd-cri",
    "nspawn",
    "docker",
    "libvirt-lxc",
    "libvirt-qemu-tcg",
    "lxc",
    "podman",
    "podman-rootless",
    "gvisor",
    "qemu-tcg",
    "uml",
)


@pytest.mark.parametrize("delay", kill.DELAYS_S)
@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=pytest.mark.own_host) for name in BESIDE_OTHERS),
        "lxd",
        *(pytest.param(name, marks=pytest.mark.slow) for name in LIKE_ANOTHER),
    ],
)
def test_a_harness_killed_mid_start_leaves_nothing_that_clean_does_not_find(name, delay):
    kill.killed_after(name, delay)
