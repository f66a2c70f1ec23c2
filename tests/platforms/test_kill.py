"""SIGKILL of the harness while it starts instances: `tare clean` finds and removes everything."""

import pytest

from tare.contract import killed_harness

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


#: Each harness starts a containerd and has it unpack the image: one delay each, the others by `make slow-test`.
UNPACKED = {"containerd": 0.4, "containerd-cri": 0.15}


def _marks(name, delay):
    slow = name in LIKE_ANOTHER or UNPACKED.get(name, delay) != delay
    return [pytest.mark.slow] * slow + [pytest.mark.own_host] * (name in BESIDE_OTHERS)


KILLS = [
    pytest.param(name, delay, marks=_marks(name, delay), id=f"{name}-{delay}")
    for name in (*BESIDE_OTHERS, "lxd", *LIKE_ANOTHER)
    for delay in killed_harness.DELAYS_S
]


@pytest.mark.parametrize(("name", "delay"), KILLS)
def test_a_harness_killed_mid_start_leaves_nothing_that_clean_does_not_find(name, delay):
    killed_harness.killed_after(name, delay)
