"""A figure in the output of a user's load tool, read in one way or not at all.

An ambiguous output fails the trial: several matches, a part of a number, a unit other than the declared one. Otherwise
a tool that prints ``835.12us`` in one trial and ``1.20ms`` in the next would seem 700 times faster.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

from tare import expressions
from tare.errors import ParseError
from tare.workloads.output import shown
from tare.workloads.own.file import FigureTable

#: Most matches to go through for the last one.
MAX_MATCHES = 1_000
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
#: Most characters of a number.
MAX_DIGITS = 400
#: Signs that a number goes on before or after a match. A comma may also separate two numbers: it is a sign only if the
#: regex does not contain it.
_MORE_BEFORE, _COMMA_BEFORE = re.compile(r"[0-9]\.?$"), re.compile(r"[0-9],$")
_MORE_BEHIND, _COMMA_BEHIND = re.compile(r"\.?[0-9]|[eE][+-]?[0-9]"), re.compile(r",[0-9]")
#: A unit, or its first part.
_UNIT = re.compile(r"[^\W\d_]+|%")
#: Units that tools choose by the size of a number; recognized one space after it too.
_VARIED = frozenset({
    *("ns", "us", "µs", "μs", "ms", "s", "sec", "secs", "m", "min", "h", "k", "K", "M", "G", "T", "P", "B"),
    *(f"{prefix}{kind}" for prefix in "kKMGTP" for kind in ("B", "iB", "b", "bit", "bits", "bytes", "Bytes")),
})  # fmt: skip


def number(value: Any, at: str) -> float:
    """Read a finite number, or the text of one. Raises `ParseError`; ``at``: the figure's place in the file."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        text = repr(value)
    else:
        text = value if isinstance(value, str) else ""
    if _NUMBER.fullmatch(text) and len(text) <= MAX_DIGITS and math.isfinite(read := float(text)):
        return read
    raise ParseError(f"{at}: it is no number but {str(value)[:80]!r}")


def matched(table: FigureTable, output: str, at: str) -> float:
    """Return the figure that a table's regex matches in an output, in the table's unit. Raises `ParseError`."""
    match = _only(table, output, at)
    if match[1] is None:
        raise ParseError(f"{at}: the regex matches {match[0][:80]!r}, and its group nothing of it")
    read = number(match[1], at)
    if _is_part(match, output):
        part = output[max(0, match.start(1) - 20) : match.end(1) + 20].strip()
        raise ParseError(f"{at}: the regex takes {match[1]!r}, a part of a number: {part!r}")
    if table.units:
        return read * _worth(table, match[2] or "", at)
    _require_unit(table, output[match.end(1) : match.end(1) + 20], at)
    return read


def _is_part(match: re.Match[str], output: str) -> bool:
    """Return True if the number in the first group goes on before or after it."""
    begin, end = match.span(1)
    before, behind = output[max(0, begin - 2) : begin], output[end : end + 3]
    return bool(
        _MORE_BEFORE.search(before)
        or _MORE_BEHIND.match(behind)
        or (begin == match.start() and _COMMA_BEFORE.search(before))
        or (end == match.end() and _COMMA_BEHIND.match(behind))
    )


def _only(table: FigureTable, output: str, at: str) -> re.Match[str]:
    matches = list(islice(expressions.compiled(table.regex or "").finditer(output), MAX_MATCHES + 1))
    if not matches:
        raise ParseError(f"{at}: the load printed nothing that its regex matches: {shown(output)}")
    if len(matches) == 1 or table.which == "first":
        return matches[0]
    if len(matches) > MAX_MATCHES:
        raise ParseError(f"{at}: the regex matches more than {MAX_MATCHES} times")
    if table.which == "last":
        return matches[-1]
    raise ParseError(
        f"{at}: the regex matches {len(matches)} times ({_listed(matches)}): write more of the line into it,"
        ' or which = "first" or "last"'
    )


def _listed(matches: Sequence[re.Match[str]]) -> str:
    listed = [repr(match[0][:80]) for match in matches[:3]]
    return ", ".join([*listed, "..."] if len(matches) > 3 else listed)


def _worth(table: FigureTable, printed: str, at: str) -> float:
    """Return the value of a printed unit in the declared one. Raises `ParseError` for a unit that is not listed."""
    if printed not in table.units:
        known = ", ".join(map(repr, table.units))
        raise ParseError(f"{at}: the load printed the unit {printed[:40]!r}, and units has {known}")
    return table.units[printed]


def _require_unit(table: FigureTable, behind: str, at: str) -> None:
    """Raise `ParseError` if the number has another unit than the declared one: the next trial may print yet another."""
    adjacent, declared = _UNIT.match(behind), _UNIT.match(table.unit)
    printed = adjacent or _UNIT.match(behind.removeprefix(" "))
    if printed is None or (declared is not None and printed[0] == declared[0]):
        return
    if adjacent or printed[0] in _VARIED:
        raise ParseError(
            f"{at}: {printed[0]!r} stands behind the number, and unit is {table.unit!r}: declare it so, or take it into"
            f" a second group of the regex and say what it is worth: units = {{ {printed[0]} = 1 }}"
        )
