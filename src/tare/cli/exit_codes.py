"""Exit codes of all commands: docs/exit-codes.md has the same for users, and a test compares both."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of all commands; scripts may rely on them."""

    DONE = 0
    """Done; of a gate: nothing got worse."""
    NO = 1
    """The answer is no: a regression, a broken promise, something missing; the output says which."""
    ERROR = 2
    """An error that a user can correct: a line says what is wrong, and one how to mend it."""
    OPEN = 3
    """A gate cannot tell; the output says what would."""
    FAULT = 4
    """A fault of tare, a plug-in or a library: a traceback says where. It is no verdict."""
    UNWRITTEN = 5
    """Standard output did not take all data, as on a full disk: what was printed is not whole."""
    INTERRUPTED = 130
    """By Ctrl-C, SIGTERM or SIGHUP; what was measured is kept."""
    CLOSED = 141
    """The reader of standard output left before all data was printed, as `head` does (128 + SIGPIPE)."""
