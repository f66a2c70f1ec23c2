"""Errors that a user can cause: what is wrong, why, and the fix. Caught once, in ``tare.cli``.

Others are faults, of tare, a plug-in or a library. `attempt` is the one boundary at which a part may fail, in either
way, without ending the whole: a trial of a campaign, a platform of several, the display.

TareError
├── UsageError          an argument names something that does not exist
├── HostError           the host lacks something that tare needs
├── PlatformError       a sandbox did not start, or died
├── SessionError        what came out of a sandbox is not the protocol, or nothing came
│   └── SessionTimeout  nothing came within the time limit
├── ParseError          a tool's output is not what its parser understands
├── UnsupportedError    a platform cannot do what a workload asks
├── ImageError          the image cannot be built or is not what it says
└── StoreError          a campaign file cannot be read or is not ours
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pydantic import ValidationError

T = TypeVar("T")
#: Name of the attribute with the tools' output before the error, also on errors that are not ours.
OUTPUTS = "outputs"


class TareError(Exception):
    """One line that says what is wrong and why, and optionally the fix."""

    def __init__(self, what: str, *, fix: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix
        self.outputs: Mapping[str, bytes] = {}  # outputs of a trial's tools before the error, by name

    def __str__(self) -> str:
        return f"{self.what} (fix: {self.fix})" if self.fix else self.what


class UsageError(TareError):
    """An argument names something that does not exist or cannot be."""


class HostError(TareError):
    """The host lacks something that tare needs."""


class PlatformError(TareError):
    """A sandbox did not start, or died; with all that its console said."""

    def __init__(self, what: str, *, fix: str | None = None, console: bytes = b"") -> None:
        super().__init__(what, fix=fix)
        self.console = console


class DiskFullError(PlatformError):
    """A sandbox did not start on a full disk; what was made for it is removed, and the disk may have space again."""


class SessionError(TareError):
    """What came out of a sandbox is not the protocol, or nothing came."""


class SessionTimeout(SessionError):  # noqa: N818 (the field's word)
    """Nothing came out of a sandbox within the time limit."""


class ParseError(TareError):
    """A tool's output is not what its parser understands; the message shows it."""


class TooLateError(ParseError):
    """The host was busy elsewhere in all of a trial's slices: nothing was measured, and it may be again at once."""


class UnsupportedError(TareError):
    """A platform cannot do what a workload asks: no failure, and the reason belongs into the report."""


class ImageError(TareError):
    """The image cannot be built, or is not what it says."""


class StoreError(TareError):
    """A campaign file cannot be read, or is not ours."""


#: Most characters of a key in a message.
MAX_KEY = 100


def first_invalid(error: ValidationError, *, index_from: int = 0) -> str:
    """Return the first invalid field in one line (``seed: Field required``); of the whole object the reason alone.

    ``index_from``: the number of a list's first item, 1 for a file that a user writes and counts in.
    """
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(str(step + index_from) if isinstance(step, int) else key_shown(step) for step in first["loc"])
    what = "there is no such key" if first["type"] == "extra_forbidden" else first["msg"].removeprefix("Value error, ")
    return f"{place}: {what}" if place else what


def key_shown(key: str) -> str:
    """Return a key of a stranger's file, for a message in one line."""
    return key if key.isprintable() and len(key) <= MAX_KEY else repr(key[:MAX_KEY])


@dataclass(frozen=True, slots=True)
class Failed:
    """The error that ended one part of a whole, whose other parts go on."""

    error: Exception

    @property
    def expected(self) -> bool:
        """True if it is an error with words for a user, and no fault of somebody's code."""
        return isinstance(self.error, TareError)

    @property
    def reason(self) -> str:
        """One line: the error's own words; of a fault its kind, and where it came up."""
        if self.expected:
            return str(self.error)
        kind, place = self.origin
        message = " ".join(str(self.error).split())
        return f"{kind}{f': {message}' if message else ''} ({place})"

    @property
    def origin(self) -> tuple[str, str]:
        """The kind of the error, and the place in the code where it came up."""
        frames = traceback.extract_tb(self.error.__traceback__)
        place = f"in {frames[-1].name}, {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "nowhere"
        return type(self.error).__name__, place

    @property
    def traceback(self) -> bytes:
        """Return the whole traceback of a fault, with its causes; "" for an expected error."""
        return b"" if self.expected else "".join(traceback.format_exception(self.error)).encode(errors="replace")

    @property
    def outputs(self) -> dict[str, bytes]:
        """Return the output of the tools before the error, by name, and the traceback."""
        printed: Mapping[str, bytes] = getattr(self.error, OUTPUTS, {})
        return {**printed, **({"traceback": self.traceback} if self.traceback else {})}


def attempt(task: Callable[[], T]) -> T | Failed:
    """Do what may fail alone. Raises only what ends the whole: an interrupt, an exit, and `StoreError`.

    Nothing that was measured could be kept any more when the store fails.
    """
    try:
        return task()
    except StoreError:
        raise
    except Exception as error:  # noqa: BLE001 (the one boundary: others write plug-ins, and a tenant may do anything)
        return Failed(error)
