"""Instances of different platforms live at once, and use the same image on the disk."""

import contextlib

import pytest

from platforms_here import cannot_be
from tare.model import Arm
from tare.platforms import registry

#: All that open the image's ext4 file, and of them one for each program that does: of QEMU's own, all say the same word
#: of it.
ONE_FILE = ("uml-ubd", "qemu-tcg", "qemu-microvm-tcg", "libvirt-qemu-tcg", "runc-in-qemu-tcg")
PROGRAMS = ("uml-ubd", "qemu-tcg", "libvirt-qemu-tcg")


@pytest.mark.host
@pytest.mark.own_host
@pytest.mark.parametrize(
    "names",
    [
        PROGRAMS,
        PROGRAMS[::-1],
        pytest.param(ONE_FILE, marks=pytest.mark.slow),
        pytest.param(ONE_FILE[::-1], marks=pytest.mark.slow),
    ],
    ids=["in one order", "in the other", "all in one order", "all in the other"],
)
def test_none_keeps_the_others_from_the_image(launcher, names):
    with contextlib.ExitStack() as after:
        for platform in registry.choose([name for name in names if not cannot_be(name)]):
            after.callback(platform.close)
            platform.prepare(launcher.image)
            running = launcher.start(platform, Arm(platform.name), measured=False)
            after.callback(running.stop)
            assert running.session.execute(["true"]).code == 0
