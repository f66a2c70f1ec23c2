"""Figures with as many digits as their interval deserves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from tare.estimates.intervals import Interval

MINUS = "\N{MINUS SIGN}"
#: Between the ends of an interval: in a sentence, and in a table.
TO, DOTS = " to ", " … "
#: Placeholder for a missing figure.
EMPTY = "–"
#: A larger figure (a percentage, the end of a factor's interval) is shown as ">999": two blocks that differ much have
#: intervals of a million per cent.
_FAR = 999
#: So many times the figure, an amount's upper end is not written out.
_FAR_AMOUNT = 100
#: A number from here on has its power of ten in place of its digits.
_LONG = 1e15


def decimals(width: float) -> int:
    """Decimals with which an interval of this width has two significant digits, at most 3; 2 where it has no width."""
    if not 0 < width < math.inf:
        return 2
    return min(3, max(0, 1 - math.floor(math.log10(width))))


def percent(fraction: float) -> str:
    """A fraction as a percentage in two or three digits: 0.01 is "1 %"."""
    value = abs(fraction) * 100
    if value > _FAR:
        return f">{_FAR} %"
    digits = 0 if value >= 10 else 1 if value >= 1 else 2
    text = f"{value:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def magnitude_range(over: Interval) -> tuple[str, str]:
    """An overhead and its interval without a sign: ("4.1 %", "3.6 to 4.7"). An end beyond zero has a minus."""
    sign = -1.0 if over.point < 0 else 1.0
    point, *ends = (100 * sign * value for value in (over.point, over.low, over.high))
    digits = decimals(abs(ends[1] - ends[0]))
    low, high = sorted(ends)
    return f"{_plain(point, digits)} %", f"{_plain(low, digits)} to {_plain(high, digits)}"


def signed_percents(over: Interval, to: str = TO, *, whole: bool = True) -> tuple[str, str]:
    """An overhead and its interval with signs: ("+0.4 %", "+0.1 to +0.7"); ``whole``: whether there is an interval."""
    point, low, high = (100 * value for value in (over.point, over.low, over.high))
    digits = decimals(high - low) if whole else 1
    return f"{signed(point, digits)} %", f"{signed(low, digits)}{to}{signed(high, digits)}"


def signed_range(over: Interval) -> str:
    """An overhead and its interval with signs: "+0.4 %, +0.1 to +0.7"."""
    return ", ".join(signed_percents(over))


def times_range(times: Interval, to: str = TO) -> tuple[str, str]:
    """A factor and its interval: ("3.3", "3.2 to 3.4")."""
    digits = max(0 if times.point >= 100 else 1, decimals(times.high - times.low) - 1)
    digits = min(digits, 2)
    high = _plain(times.high, digits) if times.high < max(_FAR, 10 * times.point) else f">{max(_FAR, times.point):,.0f}"
    return _plain(times.point, digits), f"{_plain(times.low, digits)}{to}{high}"


def signed(value: float, digits: int) -> str:
    """A number with its sign; without one if it rounds to zero, and ">+999" or "<-999" beyond that."""
    if abs(value) > _FAR:
        return f">+{_FAR}" if value > 0 else f"<{MINUS}{_FAR}"
    return _with_sign(value, digits)


def _with_sign(value: float, digits: int) -> str:
    text = _plain(value, digits)
    return text if text.startswith(MINUS) or float(text.replace(",", "")) == 0 else f"+{text}"


def _plain(value: float, digits: int) -> str:
    text = f"{value:,.{digits}f}" if abs(value) < _LONG else f"{value:.0e}"
    if text.startswith("-"):
        text = text[1:] if float(text.replace(",", "")) == 0 else MINUS + text[1:]
    return text


_PREFIXES = ("", "k", "M", "G", "T", "P")
_TIMES = ("ns", "\N{MICRO SIGN}s", "ms", "s")
#: Units of sizes, each 1,024 of the one before.
SIZES = ("B", "KiB", "MiB", "GiB", "TiB")
#: Other names for units, and the unit of a difference of percentages.
_SAME = {"us": "\N{MICRO SIGN}s", "%": "points"}


def quantity(value: float, unit: str) -> str:
    """A figure in four digits with its unit, scaled: "3,169 events/s", "12.25 ms/event", "1.25 M ops/s"."""
    name, slash, per = unit.partition("/")
    name = "\N{MICRO SIGN}s" if name == "us" else name
    if name in _TIMES:
        value, name = _scaled(value, _TIMES[_TIMES.index(name) :], 1_000.0)
        return f"{_digits(value)} {name}{slash}{per}"
    if abs(value) < 100_000:
        return f"{_digits(value)} {unit}"
    if unit in SIZES:
        value, name = _scaled(value, SIZES[SIZES.index(unit) :], 1_024.0)
        return f"{_digits(value)} {name}"
    value, prefix = _scaled(value, _PREFIXES, 1_000.0)
    return f"{_digits(value)} {prefix} {unit}"


def size(value: float | None) -> str:
    """Bytes in the largest unit that fits, up to GiB, and `EMPTY` for none: "512 MiB", "1.5 GiB"."""
    if value is None:
        return EMPTY
    shown, unit = _scaled(value, SIZES[:4], 1_024.0)
    return f"{shown:,.{int(unit == 'GiB')}f} {unit}"


def amount_range(point: float, ends: tuple[float, float] | None, unit: str, to: str = TO) -> tuple[str, str]:
    """An added amount with its sign, and its interval: ("+132 ms", "128 to 137"); "" where there is no interval.

    Ends carry signs where one of the three is below zero. A difference of per cents is in points. An upper end of over
    `_FAR_AMOUNT` times the figure and the other end neither is written out nor chooses unit and digits: ("+107 KiB",
    "12 to >10,700").
    """
    low, high = ends or (point, point)
    nearer = max(abs(point), abs(low))
    is_far = 0 < _FAR_AMOUNT * nearer < high
    factor, name = _unit_for(nearer if is_far else max(nearer, abs(high)), unit)
    point, low, high = (factor * value for value in (point, low, _FAR_AMOUNT * nearer if is_far else high))
    if is_far:
        digits = decimals(factor * nearer)
    else:
        digits = decimals(high - low) if high > low else 0 if abs(point) >= 100 else 1 if abs(point) >= 10 else 2
    figure = f"{_with_sign(point, digits)} {name}"
    if ends is None:
        return figure, ""
    form = _with_sign if min(point, low) < 0 else _plain
    upper = f">{form(math.floor(high), 0)}" if is_far else form(high, digits)
    return figure, f"{form(low, digits)}{to}{upper}"


def amount_ends(low: float, high: float, unit: str) -> tuple[str, str, str]:
    """Both ends of an added amount with their signs, and the unit: ("−1.7", "+3.0", "ms")."""
    factor, name = _unit_for(max(abs(low), abs(high)), unit)
    digits = decimals((high - low) * factor)
    return _with_sign(low * factor, digits), _with_sign(high * factor, digits), name


def amount_end(value: float, unit: str) -> str:
    """One end of an added amount alone, in two digits: "+36 ms"."""
    factor, name = _unit_for(abs(value), unit)
    return f"{_with_sign(value * factor, decimals(abs(value * factor)))} {name}"


def _unit_for(greatest: float, unit: str) -> tuple[float, str]:
    """The factor and the name of the unit in which a figure has one to four digits before the point."""
    name, slash, per = unit.partition("/")
    name = _SAME.get(name, name)
    names, step = (_TIMES, 1_000.0) if name in _TIMES else (SIZES, 1_024.0) if unit in SIZES else ((), 1.0)
    if not names:
        return 1.0, f"{name}{slash}{per}"
    at, factor = names.index(name), 1.0
    while greatest * factor >= 10_000 and at + 1 < len(names):
        at, factor = at + 1, factor / step
    while 0 < greatest * factor < 0.1 and at:
        at, factor = at - 1, factor * step
    return factor, f"{names[at]}{slash}{per}"


def _scaled(value: float, names: Sequence[str], step: float) -> tuple[float, str]:
    for name in names[:-1]:
        if abs(value) < step:
            return value, name
        value /= step
    return value, names[-1]


def _digits(value: float) -> str:
    whole = abs(value)
    digits = 0 if whole >= 1_000 else 1 if whole >= 100 else 2 if whole >= 1 else 4
    return _plain(value, digits)


def when(at: float) -> str:
    """A UNIX time to the minute: "2026-11-26 14:05 UTC"."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def day(at: float) -> str:
    """The day of a UNIX time, in UTC: "2026-11-26"."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


def span(seconds: float) -> str:
    """A duration: "12 s", "3 min 05 s", "2 h 05 min"; from four days on in days."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 96:
        return f"{hours / 24:,.0f} days"
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def forecast(seconds: float) -> str:
    """A duration that few blocks foretell, in two digits at most: "55 s", "18 min", "2.4 h", "13 h", "9 days"."""
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        amount = float(f"{seconds / size:.2g}")
        if amount >= (4 if unit == "days" else 1):
            return f"{amount:,g} {unit}"
    return f"{float(f'{seconds:.2g}'):g} s"


def rough(number: int) -> str:
    """A number that is not known better than by two digits: "37", "3,700"."""
    return f"{float(f'{number:.2g}'):,.0f}"


def some(names: Sequence[str], most: int) -> str:
    """The first ``most`` names, and how many more there are: "a, b and 3 more"."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def number_of(count: int, noun: str) -> str:
    """A count and its noun, which is a regular one: "1 block", "2 blocks"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def all_failed(trials: int) -> str:
    """That none of so many trials has a result."""
    return "its only trial failed" if trials == 1 else f"all {trials} trials failed"


def scaled(value: float) -> str:
    """A number in four digits: 321, 5,604, 53.61 M."""
    for size, name in ((1e9, "G"), (1e6, "M")):
        if value >= size:
            digits = 3 if value < 10 * size else 2 if value < 100 * size else 1
            return f"{value / size:.{digits}f} {name}"
    return f"{value:,.0f}"
