"""Failures outside of trials go to the campaign's file, and each fault in somebody's code is reported once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tare.errors import Failed
from tare.store import Store


@dataclass(slots=True)
class Faults:
    """The faults of one campaign. ``notify`` is called with a line for each new fault, and each platform left out."""

    store: Store
    notify: Callable[[str], None]
    _reported: set[tuple[str, str]] = field(default_factory=set)

    def keep(self, what: str, failed: Failed) -> None:
        """Record a failure that is no trial's as an event, with its traceback where it was not expected."""
        self.store.add_event("warning", f"{what}: {failed.reason}")
        if not failed.expected:
            self.store.add_attachment(f"traceback of {what}", failed.traceback)
        self.report(what, failed)

    def leave_out(self, sentence: str) -> None:
        """Record that a platform takes no part any more, and why."""
        self.store.add_event("warning", sentence)
        self.notify(sentence)

    def report(self, what: str, failed: Failed) -> None:
        """Report a fault unless one of its kind from the same place was reported. An expected error is not a fault."""
        if not failed.expected and failed.origin not in self._reported:
            self._reported.add(failed.origin)
            self.notify(f"{what} failed, and the campaign goes on: {failed.reason}; the file has the traceback")
