"""Texts of the reasons for which the kernel was entered."""

from __future__ import annotations

from tare.features.kernel.analysis.stacks import Entered, KernelEntry


def entry_text(entry: KernelEntry) -> str:
    """The name of the call or interrupt, or a description where it has none."""
    return {
        Entered.GATE: "the gate itself",
        Entered.UNKNOWN: "not known",
        Entered.THREAD: f"thread {entry.name}",
        Entered.NAMED: entry.name,
    }[entry.kind]
