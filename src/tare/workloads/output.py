"""Reading tools' output strictly: what is not understood is an error that shows it."""

from __future__ import annotations

import math
import re

from tare.errors import ParseError
from tare.workloads.base import Completed


def text_of(result: Completed) -> str:
    """Standard output of a command that went well. Raises `ParseError` for one that did not."""
    said = result.stdout.decode(errors="replace")
    if result.timed_out:
        raise ParseError(f"{result.argv[0]} was ended at its time limit")
    if result.exit_code != 0:
        how = f"signal {result.signal}" if result.signal is not None else f"exit code {result.exit_code}"
        raise ParseError(f"{result.argv[0]} ended with {how}: {_end(result.stderr.decode(errors='replace') or said)}")
    return said


def only(pattern: str, text: str, tool: str) -> re.Match[str]:
    """The one match of a pattern that is anchored to whole lines. None, or several, is an error."""
    found = list(re.finditer(pattern, text, re.MULTILINE))
    if len(found) != 1:
        raise ParseError(f"{tool}'s output has {len(found)} lines like {pattern!r} instead of one: {_end(text)}")
    return found[0]


def number(shown: str, what: str) -> float:
    """A positive finite figure."""
    try:
        value = float(shown)
    except ValueError:
        raise ParseError(f"{what} is {shown!r}, which is not a number") from None
    if not math.isfinite(value) or value <= 0:
        raise ParseError(f"{what} is {shown}, which cannot be")
    return value


def _end(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return " | ".join(lines[-3:])[:300] if lines else "no output"
