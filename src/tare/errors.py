"""Errors that a user can cause: what is wrong, why, and the fix. Caught once, in ``tare.cli``.

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

from collections.abc import Mapping


class TareError(Exception):
    """One line that says what is wrong and why, and optionally the fix."""

    def __init__(self, what: str, *, fix: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix
        self.outputs: Mapping[str, bytes] = {}  # what the tools of a trial had printed by then, by name

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


class SessionError(TareError):
    """What came out of a sandbox is not the protocol, or nothing came."""


class SessionTimeout(SessionError):  # noqa: N818 (the field's word)
    """Nothing came out of a sandbox within the time limit."""


class ParseError(TareError):
    """A tool's output is not what its parser understands; the message shows it."""


class UnsupportedError(TareError):
    """A platform cannot do what a workload asks: no failure, and the reason belongs into the report."""


class ImageError(TareError):
    """The image cannot be built, or is not what it says."""


class StoreError(TareError):
    """A campaign file cannot be read, or is not ours."""
