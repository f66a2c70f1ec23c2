"""What is told of a console when a start fails: why, and not what came after it."""

import pytest

from tare.campaign.instances.launcher import _last_words

GAVE_UP = """\
[    2.11] virtio_blk virtio2: [vda] 4194304 512-byte logical blocks
[    2.15] EXT4-fs (vda): VFS: Can't find ext4 filesystem
tare: the image cannot be mounted
[    2.221743] clocksource: Switched to clocksource tsc
[    2.298236] ACPI: PM: Preparing to enter system sleep state S5
[    2.30] reboot: Power down
"""
PANICKED = """\
[    1.0] one
[    1.1] two
[    1.2] Kernel panic - not syncing: No working init found.
[    1.3] Call Trace:
[    1.4]  dump_stack
[    1.5] ---[ end Kernel panic - not syncing: No working init found. ]---
"""


@pytest.mark.parametrize(
    ("console", "words"),
    [
        (GAVE_UP, "| tare: the image cannot be mounted"),
        (PANICKED, "[    1.0] one | [    1.1] two | [    1.2] Kernel panic - not syncing: No working init found."),
        ("qemu: a\nqemu: b\n", "qemu: a | qemu: b"),
        ("\n", ""),
        ("x" * 1000, "x" * 300),
    ],
)
def test_the_last_words_are_those_that_say_why(console, words):
    words_kept = _last_words(console.encode())
    assert words_kept.endswith(words)
    assert words_kept.count("|") <= 2
