"""A difference is written on one scale wherever it stands: percents up to twice, factors beyond, either way."""

from __future__ import annotations

import math

import pytest

from tare.analysis.bounds import Bound, BoundKind, bound, merged
from tare.analysis.hidden import Hidden
from tare.analysis.verdicts import Question
from tare.estimates.intervals import Interval
from tare.estimates.looks import Look, Looks, Spread
from tare.model import Direction
from tare.report.sentences.scale import bound_difference, coarse, difference, overheads, spread, times_of

HIGHER, LOWER = Direction.HIGHER, Direction.LOWER
MINUS = "\N{MINUS SIGN}"


@pytest.mark.parametrize(
    ("times", "direction", "text"),
    [
        ((1.041, 1.036, 1.047), LOWER, ("+4.1 %", "+3.6 … +4.7")),
        ((1.041, 1.036, 1.047), HIGHER, ("+3.9 %", "+3.5 … +4.5")),
        ((2.4, 2.1, 2.7), LOWER, ("2.4 ×", "2.1 … 2.7")),
        ((2.4, 2.1, 2.7), HIGHER, ("2.4 ×", "2.1 … 2.7")),
        ((1 / 2.4, 1 / 2.7, 1 / 2.1), HIGHER, ("2.4 × better", "2.1 … 2.7")),
        ((1.3, 0.9, 2.2), HIGHER, ("1.3 ×", "0.9 … 2.2")),  # an end beyond twice
        ((1.16, 0.58, 1.9), LOWER, ("1.2 ×", "0.6 … 1.9")),  # wider than ± half
        ((0.4, 0.1, 1.6), HIGHER, ("0.4 ×", "0.1 … 1.6")),
    ],
)
def test_a_difference_and_its_interval_have_the_same_scale(
    times: tuple[float, float, float], direction: Direction, text: tuple[str, str]
) -> None:
    assert difference(Interval(*times), direction) == text


def test_the_interval_of_a_rate_never_leaves_a_hundred_per_cent() -> None:
    """Overheads of rates are bounded by +100 % and unbounded below; beyond twice either way they are factors."""
    for low in (0.02, 0.3, 0.51, 0.9):
        for high in (1.01, 1.4, 1.99, 30.0):
            _, ends = difference(Interval(math.sqrt(low * high), low, high), HIGHER)
            if "." in ends:
                numbers = [abs(float(part.replace(MINUS, "-"))) for part in ends.split(" … ")]
                assert max(numbers) <= 100


@pytest.mark.parametrize("direction", list(Direction))
def test_an_overhead_is_the_same_as_so_many_times_worse(direction: Direction) -> None:
    times = Interval(1.2, 0.7, 1.9)
    over = overheads(times, direction)
    again = times_of(over, direction)
    assert (again.point, again.low, again.high) == pytest.approx((1.2, 0.7, 1.9))


def test_what_has_no_interval_has_none_in_text() -> None:
    assert difference(Interval(1.3, 1.3, 1.3), LOWER, None) == ("+30.0 %", "")
    assert difference(Interval(1.3, 1.1, 1.6), LOWER, 0.995)[1].endswith(" (99.5 %)")


@pytest.mark.parametrize(
    ("over", "text"),
    [
        ((0.0, -0.003, 0.003), "±0.3 %"),
        ((0.05, -0.1, 0.22), f"{MINUS}10 … +22 %"),
        ((0.16, -0.25, 0.55), f"{MINUS}25 … +55 %"),
        ((0.16, -0.4, 0.63), "0.6 … 1.6 ×"),
        ((2.0, -0.9, 8.3), "0.1 … 9.3 ×"),
    ],
)
def test_a_plus_minus_is_for_what_is_symmetric(over: tuple[float, float, float], text: str) -> None:
    assert spread(Interval(*over), LOWER) == text


@pytest.mark.parametrize(
    ("times", "text"), [(1.4812, "+48 %"), (1.041, "+4.1 %"), (3.31, "3.3 ×"), (0.3, "3.3 × better")]
)
def test_a_glance_has_few_digits(times: float, text: str) -> None:
    assert coarse(times, LOWER) == text


@pytest.mark.parametrize(
    ("of", "text"),
    [
        (Bound(BoundKind.BETWEEN, 0.98, 1.04), f"{MINUS}2.0 to +4.0 %"),
        (Bound(BoundKind.AT_MOST, 0.7, 1.06), "at most +6.0 %"),
        (Bound(BoundKind.AT_LEAST, 4.0, 90.0), "at least 4.0 ×"),
        (Bound(BoundKind.AT_MOST, 0.1, 0.4), "at least 2.5 × better"),
        (Bound(BoundKind.AT_MOST, 0.4, 0.7), "at least 30 % better"),
    ],
)
def test_a_bound_in_a_table(of: Bound, text: str) -> None:
    assert bound_difference(of, LOWER) == text


def test_a_bound_of_an_amount_is_in_its_unit() -> None:
    of = Bound(BoundKind.BETWEEN, 0.96, 1.08, (-1.68, 3.04))
    assert bound_difference(of, LOWER, "ms") == f"{MINUS}1.7 to +3.0 ms"
    assert bound_difference(Bound(BoundKind.AT_MOST, 0.5, 1.9, (-20.0, 36.0)), LOWER, "ms") == "at most +36 ms"
    far = Bound(BoundKind.AT_LEAST, 9.0, 4_000.0, (28.0, 13_600.0))
    assert bound_difference(far, LOWER, "ms") == "at least +28 ms"


# --- which bound ---------------------------------------------------------------------------------------------------


def looks(low: float, high: float, other: tuple[float, float] | None = None) -> Looks:
    """Looks whose 90 % intervals of the log ratio end there, with very many degrees of freedom."""

    def look(ends: tuple[float, float]) -> Look:
        spread = Spread((ends[1] - ends[0]) / 2 / 1.6448536, 1e9)
        return Look((ends[0] + ends[1]) / 2, 9, spread, spread)

    return Looks(look((low, high)), None if other is None else look(other))


@pytest.mark.parametrize(
    ("low", "high", "kind"),
    [
        (-0.2, 0.2, BoundKind.BETWEEN),
        (-0.3, 0.2, BoundKind.AT_MOST),
        (0.04, 0.30, BoundKind.BETWEEN),
        (-0.5, -0.1, BoundKind.BETWEEN),
        (-2.0, -0.9, BoundKind.AT_MOST),
        (1.4, 4.0, BoundKind.AT_LEAST),
        (0.02, 4.0, None),  # surely no better, and by how much worse nobody knows: less than the margin
        (-0.3, 0.8, None),
    ],
)
@pytest.mark.parametrize("direction", list(Direction))
def test_which_ends_are_worth_saying(low: float, high: float, kind: BoundKind | None, direction: Direction) -> None:
    question = Question("m", direction, 0.05)
    ends = (low, high) if direction is LOWER else (-high, -low)
    found = bound(question, looks(*ends), Hidden())
    assert (None if found is None else found.kind) == kind
    if found is not None:
        assert (math.log(found.low), math.log(found.high)) == pytest.approx((low, high), abs=1e-6)


def test_a_bound_is_the_worse_end_of_both_looks_and_of_failed_trials() -> None:
    question = Question("m", LOWER, 0.05)
    found = bound(question, looks(-0.1, 0.05, (-0.02, 0.12)), Hidden(failed=0.03, baseline_failed=0.01))
    assert found is not None
    assert (math.log(found.low), math.log(found.high)) == pytest.approx((-0.11, 0.15), abs=1e-6)
    assert bound(question, looks(-0.1, 0.05), Hidden(no_verdict=True)) is None


def test_several_figures_have_a_bound_that_holds_for_each() -> None:
    near, far = Bound(BoundKind.BETWEEN, 0.98, 1.04), Bound(BoundKind.AT_MOST, 0.7, 1.2)
    assert merged([near, far]) == Bound(BoundKind.AT_MOST, 0.7, 1.2)
    assert merged([near, Bound(BoundKind.BETWEEN, 1.01, 1.1)]) == Bound(BoundKind.BETWEEN, 0.98, 1.1)
    least = Bound(BoundKind.AT_LEAST, 3.0, 50.0)
    assert merged([near, least, far]) == least
