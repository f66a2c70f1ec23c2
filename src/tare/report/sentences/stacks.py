"""What the kernel was entered for, in words."""

from __future__ import annotations

from tare.analysis.exposure.stacks import Entered, Entry


def entry_text(entry: Entry) -> str:
    """The call's or the interrupt's name, or what stands for one."""
    return {
        Entered.GATE: "the gate itself",
        Entered.UNKNOWN: "not known",
        Entered.THREAD: f"thread {entry.name}",
        Entered.NAMED: entry.name,
    }[entry.kind]
