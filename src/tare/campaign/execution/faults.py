"""What failed beside the trials is kept in the campaign's file, and each fault of somebody's code is told once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tare.errors import Failed
from tare.store import Store


@dataclass(slots=True)
class Faults:
    """The faults of one campaign. ``say`` is given a line for each that has not come up before."""

    store: Store
    say: Callable[[str], None]
    _reported: set[tuple[str, str]] = field(default_factory=set)

    def keep(self, what: str, failed: Failed) -> None:
        """Write down what failed, which is no trial."""
        self.store.add_event("warning", f"{what}: {failed.reason}")
        if not failed.expected:
            self.store.add_attachment(f"traceback of {what}", failed.traceback)
        self.tell(what, failed)

    def tell(self, what: str, failed: Failed) -> None:
        """Say a fault that is new: of another kind, or from another place. An error with words for a user is none."""
        if not failed.expected and failed.origin not in self._reported:
            self._reported.add(failed.origin)
            self.say(f"{what} failed, and the campaign goes on: {failed.reason}; the file has the traceback")
