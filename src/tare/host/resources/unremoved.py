"""Things that this process could not remove from the host: recorded where it happens, reported by commands.

A resource that stays is in the journal too, for `tare clean`. But code that handles another error (a start that fails,
an interrupt) passes over the error of a removal, and must not thereby hide it from the user.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FIX = "`tare clean` tries again, once this run is over"


@dataclass(frozen=True, slots=True)
class Unremoved:
    """A resource that is still on the host."""

    entry: Path  # its file in the journal
    what: str
    why: str
    group: str = ""  # its path, where it is a control group: what runs in there may still run

    def __str__(self) -> str:
        return f"left on this host: {self.what} ({self.why})"


_noted: dict[Path, Unremoved] = {}


def note(resource: Unremoved) -> None:
    """Record what could not be removed. Safe to call from every thread."""
    _noted[resource.entry] = resource


def noted() -> list[Unremoved]:
    """Return all that could not be removed at the first try, in the order in which it was first noted."""
    return list(_noted.values())


def still_there() -> list[Unremoved]:
    """Return what was noted and not removed since."""
    return [resource for resource in noted() if resource.entry.exists()]
