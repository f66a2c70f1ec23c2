"""The launcher of tests on real platforms, which go on where QEMU's emulation has hung a machine."""

import sys
from dataclasses import fields

from tare.campaign.instances.launcher import DEFAULT, InstanceLauncher
from tare.errors import PlatformError
from tare.platforms.parts.machines import vm


class StartsAgain(InstanceLauncher):
    """Starts an emulated machine once more where QEMU has hung it, as it does one in some hundred (`vm.HANG_FIX`)."""

    @classmethod
    def of(cls, launcher):
        """A launcher that is the same but for that."""
        return cls(**{field.name: getattr(launcher, field.name) for field in fields(launcher)})

    def start(self, platform, arm, *, measured, terms=DEFAULT):
        try:
            return super().start(platform, arm, measured=measured, terms=terms)
        except PlatformError as error:
            if error.fix != vm.HANG_FIX or terms.gate is not None:
                raise
            sys.stderr.write(f"{arm} was hung by QEMU's emulation, and is started again\n")
            return super().start(platform, arm, measured=measured, terms=terms)
