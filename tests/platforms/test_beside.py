"""Instances of different platforms live at once, and use the same image on the disk."""

import contextlib

import pytest

from platforms_here import cannot_be
from tare.model import Arm
from tare.platforms import registry

#: All that open the image's ext4 file.
ONE_FILE = ("uml-ubd", "qemu-tcg", "qemu-microvm", "libvirt-qemu", "runc-in-qemu")


@pytest.mark.host
@pytest.mark.parametrize("names", [ONE_FILE, ONE_FILE[::-1]], ids=["in one order", "in the other"])
def test_none_keeps_the_others_from_the_image(nursery, names):
    with contextlib.ExitStack() as after:
        for platform in registry.choose([name for name in names if not cannot_be(name)]):
            after.callback(platform.close)
            platform.prepare(nursery.image)
            live = nursery.start(platform, Arm(platform.name), measured=False)
            after.callback(live.stop)
            assert live.session.execute(["true"]).code == 0
