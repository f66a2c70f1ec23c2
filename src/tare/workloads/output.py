"""Strict reading of what tools print: every line must be known, so that half an output never becomes a figure."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from itertools import zip_longest

from tare.errors import ParseError
from tare.workloads.base import Completed

#: Two figures of one output that say the same thing may differ by what the tool rounds away.
ROUNDING = 0.02
_SHOWN_LINES = 3
_SHOWN_CHARACTERS = 200


def text_of(done: Completed) -> str:
    """Standard output of a command that ended well. Raises `ParseError` that shows how it ended and what it said."""
    if done.timed_out:
        how = f"was ended at its time limit, after {done.wall_ns / 1e9:.1f} s"
    elif done.exit_code is None:
        how = f"was killed by signal {done.signal}"
    elif done.exit_code != 0:
        how = f"ended with {done.exit_code}"
    else:
        return decode(done)
    said = (_decoded(done.stderr).strip() + "\n" + _decoded(done.stdout).strip()).strip()
    raise ParseError(f"`{shlex.join(done.argv)}` {how}: {_last(said)}")


def decode(done: Completed) -> str:
    """Standard output as text. Raises `ParseError` when it is not UTF-8 (no tool here prints anything else)."""
    try:
        return done.stdout.decode()
    except UnicodeDecodeError as error:
        raise ParseError(f"`{done.argv[0]}` printed bytes that are not text: {done.stdout[:40]!r}") from error


def read_lines(tool: str, text: str, grammar: Sequence[str]) -> dict[str, str]:
    """Match the lines that are not empty, one by one, with a pattern each; return the named groups.

    Raises `ParseError` that shows the first line which is missing, strange or too many.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found: dict[str, str] = {}
    for number, (pattern, line) in enumerate(zip_longest(grammar, lines), start=1):
        if line is None:
            raise ParseError(f"{tool} printed {len(lines)} lines and not {len(grammar)}: {shown(text)}")
        match = re.fullmatch(pattern, line, re.ASCII) if pattern is not None else None
        if match is None:
            raise ParseError(f"{tool} printed a strange line ({number}, not empty): {line[:_SHOWN_CHARACTERS]!r}")
        found |= match.groupdict()
    return found


def positive(tool: str, what: str, value: float | str) -> float:
    """A figure that must be a finite number above zero. Raises `ParseError`."""
    number = float(value)
    if not (math.isfinite(number) and number > 0):
        raise ParseError(f"{tool} reports {what} of {value}")
    return number


def agree(tool: str, what: str, one: float, other: float, tolerance: float = ROUNDING) -> None:
    """Two figures that mean the same must be the same but for rounding. Raises `ParseError`."""
    if not math.isclose(one, other, rel_tol=tolerance):
        raise ParseError(f"{tool} contradicts itself on {what}: {one:g} and {other:g}")


def shown(text: str) -> str:
    """The first lines of what a tool printed, for an error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()][:_SHOWN_LINES]
    return " | ".join(line[:_SHOWN_CHARACTERS] for line in lines) or "no output"


def _decoded(raw: bytes) -> str:
    return raw.decode(errors="replace")


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()][-_SHOWN_LINES:]
    return " | ".join(line[:_SHOWN_CHARACTERS] for line in lines) or "no output"
