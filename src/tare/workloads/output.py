"""Strict reading of what tools print: every line must be known, so that half an output never becomes a figure."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from itertools import zip_longest
from typing import Literal

from tare.errors import ParseError
from tare.workloads.base import Completed

#: Relative difference of two figures of one output that mean the same, for what the tool rounds.
ROUNDING = 0.02
#: No tool prints longer numbers. Python does not convert thousands of digits, and a float overflows at some hundreds.
MAX_DIGITS = 100
_ENDLESS = re.compile(rb"[0-9]{%d}" % MAX_DIGITS)
_SHOWN_LINES = 2
_SHOWN_CHARACTERS = 200


def text_of(done: Completed, stream: Literal["stdout", "stderr"] = "stdout") -> str:
    """Return the output of a command that ended well.

    Raises `ParseError` for one that did not, with how it ended and what it printed.
    """
    if done.timed_out:
        how = f"was ended at its time limit, after {done.wall_ns / 1e9:.1f} s"
    elif done.exit_code is None:
        how = f"was killed by signal {done.signal}"
    elif done.exit_code != 0:
        how = f"ended with {done.exit_code}"
    else:
        return decode(done.argv[0], done.stdout if stream == "stdout" else done.stderr)
    output = b"\n".join((done.stdout, done.stderr)).decode(errors="replace")
    raise ParseError(f"`{shlex.join(done.argv)}` {how}: {shown(output)}")


def decode(tool: str, raw: bytes) -> str:
    """Output as text. Raises `ParseError` when it is not UTF-8 (no tool here prints anything else)."""
    if digits := _ENDLESS.search(raw):
        raise ParseError(f"{tool} printed a number of {MAX_DIGITS} digits or more: {digits[0][:40].decode()}...")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise ParseError(f"{tool} printed bytes that are not text: {raw[:40]!r}") from error


def read_lines(tool: str, text: str, grammar: Sequence[str]) -> dict[str, str]:
    """Match the lines that are not empty, one by one, with a pattern each; return the named groups.

    Raises `ParseError` with the first line that is missing, unknown or too many.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    fields: dict[str, str] = {}
    for number, (pattern, line) in enumerate(zip_longest(grammar, lines), start=1):
        if line is None:
            raise ParseError(f"{tool} printed {len(lines)} lines and not {len(grammar)}: {shown(text)}")
        match = re.fullmatch(pattern, line, re.ASCII) if pattern is not None else None
        if match is None:
            raise ParseError(f"{tool} printed a strange line ({number}, not empty): {line[:_SHOWN_CHARACTERS]!r}")
        fields |= match.groupdict()
    return fields


def only(tool: str, what: str, pattern: str, text: str) -> float:
    """Return the figure of the line that a report has once: the pattern's group, of whole lines.

    Raises `ParseError`.
    """
    values = re.findall(pattern, text, re.MULTILINE | re.ASCII)
    if len(values) != 1:
        raise ParseError(f"{tool} tells its {what} {len(values)} times: {text[-300:]!r}")
    return float(values[0])


def positive(tool: str, what: str, value: float | str) -> float:
    """Return a figure that must be a finite number above zero. Raises `ParseError`."""
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise ParseError(f"{tool} reports {what} of {value}")
    return number


def agree(tool: str, what: str, first: float, second: float, *, slack: float = 0.0) -> None:
    """Two figures that mean the same must be the same but for rounding and ``slack``. Raises `ParseError`."""
    if not math.isclose(first, second, rel_tol=ROUNDING, abs_tol=slack):
        raise ParseError(f"{tool} contradicts itself on {what}: {first:g} and {second:g}")


def shown(text: str) -> str:
    """Return the first and last lines of an output: some tools report an error first, some last."""
    lines = [line.strip()[:_SHOWN_CHARACTERS] for line in text.splitlines() if line.strip()]
    if len(lines) > 2 * _SHOWN_LINES:
        lines = [*lines[:_SHOWN_LINES], "...", *lines[-_SHOWN_LINES:]]
    return " | ".join(lines) or "no output"
