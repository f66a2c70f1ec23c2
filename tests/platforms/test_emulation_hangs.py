"""A machine that QEMU's emulation has hung: what its user is told, and that the tests of others go on."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from starts_again import StartsAgain
from tare.campaign.instances.launcher import DEFAULT, InstanceLauncher, StartOptions
from tare.errors import PlatformError
from tare.platforms import platform_registry
from tare.platforms.parts.machines import vm

PRINTED = (Path(__file__).parent / "captured" / "qemu-7.2-hung-console.txt").read_bytes()
HUNG = PlatformError("it has not said hello", fix=vm.HANG_FIX)


@pytest.mark.parametrize(
    ("name", "version", "printed", "is_told"),
    [
        ("qemu-tcg", "7.2.22", PRINTED, True),
        ("libvirt-qemu-tcg", "7.2.22", PRINTED, True),
        ("runc-in-qemu-tcg", "8.0.5", PRINTED, True),
        ("qemu-tcg", "8.1.0", PRINTED, False),
        ("qemu-tcg", "10.0.8", PRINTED, False),
        ("qemu-tcg", "7.2.22", b"Kernel panic - not syncing: Oops", False),
        ("qemu-tcg", "7.2.22", PRINTED.replace(b"CPU#1", b"CPU#0"), False),  # of one processor, which only had no time
        ("qemu", "7.2.22", PRINTED, False),
        ("uml", "7.2.22", PRINTED, False),
    ],
)
def test_only_a_hang_of_an_old_emulation_is_told_as_one(monkeypatch, name, version, printed, is_told):
    said = SimpleNamespace(
        text=f"QEMU emulator version {version} (Debian 1:7.2+dfsg-7+deb12u18+b3)\nCopyright (c) 2003-2022\n"
    )
    monkeypatch.setattr(vm.processes, "run", lambda *_, **__: said)
    assert platform_registry.all_platforms()[name].start_fix(printed) == (vm.HANG_FIX if is_told else "")


@pytest.mark.parametrize(
    ("errors", "terms", "starts"),
    [
        ([HUNG], DEFAULT, 2),
        ([HUNG, HUNG], DEFAULT, 2),
        ([PlatformError("it has not said hello")], DEFAULT, 1),
        ([HUNG], StartOptions(gate=lambda: None), 1),  # others wait for it
    ],
)
def test_the_tests_start_one_again_for_that_and_for_nothing_else(monkeypatch, errors, terms, starts):
    left, started = list(errors), []

    def start(launcher, platform, arm, *, measured, terms=DEFAULT):
        started.append(arm)
        if left:
            raise left.pop(0)

    monkeypatch.setattr(InstanceLauncher, "start", start)
    launcher = object.__new__(StartsAgain)
    if len(errors) < starts:
        launcher.start(None, "qemu-tcg", measured=True, terms=terms)
    else:
        with pytest.raises(PlatformError):
            launcher.start(None, "qemu-tcg", measured=True, terms=terms)
    assert len(started) == starts
