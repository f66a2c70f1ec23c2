"""A difference in text, on one scale wherever it is shown: percents up to twice, factors beyond, either way.

Percents are overheads, so that + is worse; of a rate, half as fast is +50 %, and twice as fast is -100 %. Factors are
of how many times worse, or better.
"""

from __future__ import annotations

import math

from tare.analysis.bounds import Bound, BoundKind
from tare.estimates.intervals import Amount, Interval
from tare.model import Direction
from tare.report.sentences.numbers import (
    DOTS,
    MINUS,
    TO,
    amount_end,
    amount_ends,
    amount_range,
    decimals,
    magnitude_range,
    percent,
    signed,
    signed_percents,
    times_range,
)
from tare.report.sentences.wording import Wording

#: Beyond this factor, either way, a percentage is hard to read; and so is an interval of more than ± half.
FACTOR_FROM = 2.0
_WIDEST = math.log(1.5)
#: An interval that is wider to either side, as a fraction, is not written with a ±: it is not symmetric.
_PLUS_MINUS = 0.15
USUAL_LEVEL = 0.95
#: Less is nothing: the rate of an arm that does next to no work.
_LEAST = 1e-12


def is_factor(times: Interval) -> bool:
    """Return True if a difference is written as a factor and not in per cent."""
    apart = max(abs(math.log(end)) for end in (times.point, times.low, times.high))
    return apart > math.log(FACTOR_FROM) or math.log(times.high / times.low) / 2 > _WIDEST


def overheads(times: Interval, direction: Direction) -> Interval:
    """Return how many times worse, as overheads (fractions)."""
    if direction is Direction.LOWER:
        return Interval(times.point - 1, times.low - 1, times.high - 1)
    return Interval(1 - 1 / times.point, 1 - 1 / times.low, 1 - 1 / times.high)


def times_of(over: Interval, direction: Direction) -> Interval:
    """Overheads (fractions) as how many times worse: the inverse of `overheads`."""

    def times(value: float) -> float:
        return max(_LEAST, 1 + value) if direction is Direction.LOWER else 1 / max(_LEAST, 1 - value)

    return Interval(times(over.point), times(over.low), times(over.high))


def difference(times: Interval, direction: Direction, level: float | None = USUAL_LEVEL) -> tuple[str, str]:
    """For a table: the difference and its interval, "" where there is none (``level``: None).

    ("+4.1 %", "+3.6 … +4.7"), ("2.4 ×", "2.1 … 2.7"), ("2.4 × better", "2.1 … 2.7").
    """
    better = times.high < 1 and is_factor(times)
    if is_factor(times):
        size, ends = times_range(_inverse(times) if better else times, DOTS)
        size = f"{size} ×{' better' if better else ''}"
    else:
        size, ends = signed_percents(overheads(times, direction), DOTS, whole=level is not None)
    return size, "" if level is None else f"{ends}{level_text(level)}"


def coarse(times: float, direction: Direction) -> str:
    """The difference alone, in as many digits as a glance takes: "+48 %", "+4.1 %", "3.3 ×"."""
    point = Interval(times, times, times)
    if is_factor(point):
        return difference(point, direction, None)[0]
    percents = 100 * overheads(point, direction).point
    return f"{signed(percents, 0 if abs(percents) >= 10 else 1)} %"


def phrase(times: Interval, direction: Direction, words: Wording, level: float | None = USUAL_LEVEL) -> tuple[str, str]:
    """In words: the difference and its interval: ("4.1 % slower", "3.6 to 4.7"), ("2.4 times slower", "2.1 to 2.7").

    Without a direction where the interval holds none: ("+0.4 %", "−0.1 to +0.9"), ("1.3 times", "0.8 to 2.1").
    """
    open_ended = level is not None and times.low <= 1 <= times.high
    if open_ended and is_factor(times):
        size, ends = times_range(times)
        size = f"{size} times"
    elif open_ended:
        size, ends = signed_percents(overheads(times, direction), TO)
    else:
        size, ends = _directed(times, direction, words, lone=level is None)
    return size, "" if level is None else f"{ends}{level_text(level)}"


def _directed(times: Interval, direction: Direction, words: Wording, *, lone: bool) -> tuple[str, str]:
    worse = times.point > 1
    if is_factor(times):
        size, ends = times_range(times if worse else _inverse(times))
        return (words.times_worse if worse else words.times_better).format(size), ends
    over = overheads(times, direction)
    size, ends = magnitude_range(over) if not lone else (percent(over.point), "")
    if not float(size.removesuffix(" %").replace(",", "")):
        return size, ends  # of nothing there is no direction
    return (words.worse if worse else words.better).format(size), ends


def amount(added: Amount, to: str = TO) -> tuple[str, str]:
    """An added amount and its interval: ("+132 ms", "128 to 137")."""
    return amount_range(added.point, added.ends, added.unit, to)


def bound_difference(bound: Bound, direction: Direction, unit: str | None = None) -> str:
    """A bound for a table: "at most +6 %", "−2 to +4 %", "at least 4 ×"; as an amount where a ``unit`` is given."""
    if unit is not None and bound.added is not None:
        return _bound_amount(bound, unit)
    if bound.kind is BoundKind.BETWEEN:
        return f"{_signed(bound.low, direction, up=False)}{TO}{_signed(bound.high, direction, up=True)} %"
    if bound.kind is BoundKind.AT_LEAST:
        return f"at least {_one_end(bound.low, direction, up=False)}"
    if bound.high < 1:
        return f"at least {_better(bound.high, direction)} better"
    return f"at most {_one_end(bound.high, direction, up=True)}"


def at_most(times: float, direction: Direction) -> str:
    """The higher end of a change alone: "at most +6 %"."""
    return bound_difference(Bound(BoundKind.AT_MOST, 0.0, times), direction)


def bound_phrase(bound: Bound, direction: Direction, words: Wording, unit: str | None = None) -> str:
    """A bound in words: "at most 6 % slower", "between −2 and +4 %", "at least 4 times slower"."""
    if unit is not None and bound.added is not None:
        return _bound_amount(bound, unit, between=True)
    if bound.kind is BoundKind.BETWEEN:
        low, high = _signed(bound.low, direction, up=False), _signed(bound.high, direction, up=True)
        return f"between {low} and {high} %"
    if bound.kind is BoundKind.AT_MOST and bound.high < 1:
        factor = 1 / bound.high > FACTOR_FROM
        size = _better(bound.high, direction).removesuffix(" ×")
        return (words.times_better if factor else words.better).format(f"at least {size}")
    up = bound.kind is BoundKind.AT_MOST
    times, much = (bound.high, "at most") if up else (bound.low, "at least")
    size = _one_end(times, direction, up=up).removeprefix("+").removesuffix(" ×")
    return (words.times_worse if times > FACTOR_FROM else words.worse).format(f"{much} {size}")


def _bound_amount(bound: Bound, unit: str, *, between: bool = False) -> str:
    assert bound.added is not None
    if bound.kind is BoundKind.BETWEEN:
        low, high, name = amount_ends(*bound.added, unit)
        return f"between {low} and {high} {name}" if between else f"{low}{TO}{high} {name}"
    # One end stands alone, in a unit and with digits of its own: the other one may be a hundred times as far.
    least, most = bound.added
    much, end = ("at most", most) if bound.kind is BoundKind.AT_MOST else ("at least", least)
    return f"{much} {amount_end(end, unit)}"


def _one_end(times: float, direction: Direction, *, up: bool) -> str:
    return f"{_factor(times, up=up)} ×" if times > FACTOR_FROM else f"{_signed(times, direction, up=up)} %"


def _better(times: float, direction: Direction) -> str:
    """Return how much better so many times worse is: a factor, or per cent without a sign."""
    if 1 / times > FACTOR_FROM:
        return f"{_factor(1 / times, up=False)} ×"
    return f"{_signed(times, direction, up=True).removeprefix(MINUS)} %"


def _factor(times: float, *, up: bool) -> str:
    digits = 0 if times >= 10 else 1
    return f"{_outward(times, digits, up=up):,.{digits}f}"


def _signed(times: float, direction: Direction, *, up: bool) -> str:
    """An end of a bound in per cent, rounded to the outside, so that what is printed holds too."""
    value = 100 * overheads(Interval(times, times, times), direction).point
    digits = 0 if abs(value) >= 10 else 1
    return signed(_outward(value, digits, up=up), digits)


def _outward(value: float, digits: int, *, up: bool) -> float:
    """Rounded up or down; what is off by rounding of the arithmetic alone stays."""
    shifted = value * 10**digits
    if abs(shifted - round(shifted)) > 1e-6:
        shifted = math.ceil(shifted) if up else math.floor(shifted)
    return float(round(shifted, 3)) / float(10**digits)


def spread(over: Interval, direction: Direction) -> str:
    """Return how far no difference is from none: "±0.3 %"; both ends where that is not symmetric: "−31 … +63 %"."""
    times = times_of(over, direction)
    if is_factor(times):
        return f"{times_range(times, DOTS)[1]} ×"
    if over.half_width <= _PLUS_MINUS:
        return f"±{percent(over.half_width)}"
    digits = decimals(100 * (over.high - over.low))
    return f"{signed(100 * over.low, digits)}{DOTS}{signed(100 * over.high, digits)} %"


def _inverse(times: Interval) -> Interval:
    return Interval(1 / times.point, 1 / times.high, 1 / times.low)


def level_text(level: float) -> str:
    """The level of an interval, where it is not the usual one."""
    return "" if level == USUAL_LEVEL else f" ({100 * level:.3g} %)"
