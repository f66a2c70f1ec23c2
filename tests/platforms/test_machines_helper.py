"""Instances of different platforms live at once, and use the same image on the disk."""

import contextlib

import pytest

from platforms import guests
from platforms_here import cannot_be
from tare.model import Arm
from tare.platforms import platform_registry

#: All that open the image's ext4 file, and of them one for each program that does: of QEMU's own, all say the same word
#: of it.
ONE_FILE = ("uml-ubd", "qemu-tcg", "qemu-microvm-tcg", "libvirt-qemu-tcg", "runc-in-qemu-tcg")
PROGRAMS = ("uml-ubd", "qemu-tcg", "libvirt-qemu-tcg")


@pytest.mark.host
@pytest.mark.own_host
@pytest.mark.slow  # each boots up to ten machines
@pytest.mark.parametrize("names", [PROGRAMS, ONE_FILE], ids=["programs", "all"])
def test_none_keeps_the_others_from_the_image(launcher, names):
    """Each starts before and after each of the others: in one order, and then in the other beside the last."""
    launcher = guests.with_one_processor(launcher)
    *others, final = platform_registry.choose([name for name in names if not cannot_be(name)])
    with contextlib.ExitStack() as after:
        for platform in (*others, final):
            after.callback(platform.close)
            platform.prepare(launcher.image)
        with contextlib.ExitStack() as first_order:
            for platform in others:
                _started(launcher, platform, first_order)
            _started(launcher, final, after)
        for platform in reversed(others):
            _started(launcher, platform, after)


def _started(launcher, platform, after):
    running = launcher.start(platform, Arm(platform.name), measured=False)
    after.callback(running.stop)
    assert running.session.execute(["true"]).code == 0
