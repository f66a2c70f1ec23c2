from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tare.estimates.intervals import BOOTSTRAP_FROM, Interval, bca_interval, t_interval
from tare.estimates.overhead import overhead, ratio, times_worse, variability_overhead
from tare.model import Direction


def test_t_interval_is_that_of_scipy() -> None:
    values = np.array([1.0, 2.0, 4.0, 4.5])
    interval = t_interval(values, 0.95)
    theirs = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (interval.low, interval.high) == pytest.approx((theirs.low, theirs.high))
    assert interval.point == pytest.approx(2.875)


def test_t_interval_needs_two_blocks() -> None:
    with pytest.raises(ValueError, match="two blocks"):
        t_interval(np.array([1.0]), 0.95)


def test_bootstrap_is_the_same_every_time_and_near_the_t_interval_for_normal_values() -> None:
    values = np.random.default_rng(1).normal(10, 1, 40)
    first, again, student = bca_interval(values, 0.95), bca_interval(values, 0.95), t_interval(values, 0.95)
    assert first == again
    assert first is not None
    assert first.low == pytest.approx(student.low, abs=0.1)
    assert first.high == pytest.approx(student.high, abs=0.1)


def test_bootstrap_says_nothing_from_few_or_equal_values() -> None:
    assert bca_interval(np.arange(BOOTSTRAP_FROM - 1.0), 0.95) is None
    assert bca_interval(np.ones(20), 0.95) is None


def test_overhead_is_equation_1_of_li_with_the_sign_kept() -> None:
    logs = Interval(np.log(1.25), np.log(1.2), np.log(1.3))
    lower = overhead(logs, Direction.LOWER)
    assert (lower.point, lower.low, lower.high) == pytest.approx((0.25, 0.2, 0.3))
    higher = overhead(logs, Direction.HIGHER)
    assert (higher.point, higher.low, higher.high) == pytest.approx((-0.25, -0.3, -0.2))


def test_times_worse_is_more_than_one_for_what_is_worse() -> None:
    logs = Interval(np.log(0.25), np.log(0.2), np.log(0.5))
    higher = times_worse(logs, Direction.HIGHER)
    assert (higher.point, higher.low, higher.high) == pytest.approx((4.0, 2.0, 5.0))
    lower = times_worse(logs, Direction.LOWER)
    assert (lower.point, lower.low, lower.high) == pytest.approx((0.25, 0.2, 0.5))


def test_blocks_that_have_nothing_in_common_give_a_finite_figure() -> None:
    assert np.isfinite(ratio(Interval(0.0, -1e9, 1e9)).high)


def test_variability_overhead_of_li() -> None:
    assert variability_overhead(3.0, 2.0) == pytest.approx(0.5)
    assert variability_overhead(1.0, 2.0) == 0
    assert variability_overhead(1.0, 0.0) is None
    assert variability_overhead(None, 1.0) is None
