from __future__ import annotations

import numpy as np
import pytest

from refused import refused
from tare.analysis.quality.spread import sd_ratio_bonett, variability
from tare.estimates.intervals import Interval
from tare.estimates.overhead import variability_overhead

# Coverage: test_coverage.py.
RNG = np.random.default_rng(6)
X, Y = RNG.normal(10, 3, 12), RNG.normal(10, 1, 12)


def test_bonetts_interval_is_that_of_his_own_program() -> None:
    # The example in the manual of his R package statpsych, ci.ratio.sd2(.05, y1, y2); it iterates ten times.
    first = [32, 39, 26, 35, 43, 27, 40, 37, 34, 29]
    second = [36, 44, 47, 42, 49, 39, 46, 31, 33, 48]
    interval = sd_ratio_bonett(first, second)
    assert [interval.point, interval.low, interval.high] == pytest.approx([0.8854257, 0.486279, 1.728396], rel=2e-6)


def test_the_point_is_the_ratio_and_a_scale_goes_straight_through() -> None:
    interval, scaled = sd_ratio_bonett(X, Y), sd_ratio_bonett(1000 * X, Y)
    assert interval.point == pytest.approx(X.std(ddof=1) / Y.std(ddof=1))
    assert interval.low < interval.point < interval.high
    ends = [1000 * interval.point, 1000 * interval.low, 1000 * interval.high]
    assert [scaled.point, scaled.low, scaled.high] == pytest.approx(ends)


def test_the_other_way_round_is_the_inverse() -> None:
    interval, turned = sd_ratio_bonett(X, Y), sd_ratio_bonett(Y, X)
    assert [turned.low, turned.high] == pytest.approx([1 / interval.high, 1 / interval.low])


def test_variability_overhead_of_a_ratio_is_that_of_li() -> None:
    assert variability(Interval(1.5, 0.9, 2.0)) == Interval(0.5, 0.0, 1.0)
    assert variability(Interval(X.std() / Y.std(), 1, 1)).point == variability_overhead(X.std(), Y.std())


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ([], [], "first sample: 0 values"),
        ([1.0], [1.0, 2.0], "first sample: 1 value"),
        (X, [1.0] * 12, "second sample: 12 values, all the same"),
        ([0.0] * 12, Y, "first sample: 12 values, all the same"),
        ([0.1 + 0.2, 0.3, 0.3, 0.3, 0.3, 0.3], X[:6], "first sample: 6 values, all the same"),
        (X, [*Y[:11], np.nan], "second sample: 1 of 12 values missing"),
        (X.reshape(3, 4), Y, "an array of 2 dimensions"),
    ],
)
def test_no_figure_where_there_is_no_answer(first, second, why: str) -> None:
    with refused(why):
        sd_ratio_bonett(first, second)


def test_bonett_refuses_a_level_for_which_there_are_too_few_values() -> None:
    with refused(r"needs more than 5\.3 values"):
        sd_ratio_bonett(X[:5], Y[:5], level=1 - 1e-7)


def test_bonett_finds_its_ends_where_the_trimmed_mean_lies_far_from_the_mean() -> None:
    interval = sd_ratio_bonett([1.0, 1.0, 1.0, 1.0, 2.0], [1.0, 1.0, 1.0, 2.0, 3.0])
    assert interval.low < 0.5 < interval.high
