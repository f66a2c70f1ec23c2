from __future__ import annotations

import numpy as np
import pytest

from refused import refused
from tare.analysis.quality.change_points import MAX_VALUES, MIN_STRETCH, _divergence, change_points


def test_the_divergence_is_that_of_the_formula_written_out() -> None:
    series = np.random.default_rng(2).normal(size=11)
    distances = np.abs(series[:, None] - series)
    for at, divergence in enumerate(_divergence(distances, 3), start=3):
        left, right = series[:at], series[at:]
        n, m = left.size, right.size
        between = 2 / (n * m) * sum(abs(a - b) for a in left for b in right)
        of_left = sum(abs(left[i] - left[j]) for i in range(n) for j in range(i)) / (n * (n - 1) / 2)
        of_right = sum(abs(right[i] - right[j]) for i in range(m) for j in range(i)) / (m * (m - 1) / 2)
        assert divergence == pytest.approx(n * m / (n + m) * (between - of_left - of_right))


def test_steps_are_found_where_they_are_with_the_medians_around_them() -> None:
    rng = np.random.default_rng(4)
    series = np.concatenate((rng.normal(10, 1, 40), rng.normal(13, 1, 30), rng.normal(9, 1, 30)))
    points = change_points(series)
    assert [point.at for point in points] == pytest.approx([40, 70], abs=2)
    assert [round(point.before) for point in points] == [10, 13]
    assert [round(point.after) for point in points] == [13, 9]
    assert all(point.p <= 0.01 for point in points)


def test_a_change_of_spread_is_a_change() -> None:
    rng = np.random.default_rng(5)
    points = change_points(np.concatenate((rng.normal(0, 1, 60), rng.normal(0, 8, 60))))
    assert points[0].at == pytest.approx(60, abs=10)


def test_a_few_wild_values_are_none() -> None:
    series = np.random.default_rng(6).normal(0, 1, 80)
    series[[11, 12, 50]] = 1e3
    assert change_points(series) == []


def test_the_same_series_gives_the_same_answer_in_any_unit() -> None:
    series = np.concatenate((np.random.default_rng(7).normal(5, 1, 30), np.random.default_rng(8).normal(7, 1, 30)))
    points, again, scaled = change_points(series), change_points(series), change_points(1e6 * series)
    assert points == again
    assert [(point.at, point.p) for point in scaled] == [(point.at, point.p) for point in points]
    assert len(points) == 1


@pytest.mark.parametrize("value", [0.0, 0.1, -3.0])
def test_constant_values_have_no_change(value: float) -> None:
    assert change_points(np.full(50, value)) == []


def test_one_step_without_noise_is_found_exactly() -> None:
    (point,) = change_points([0.0] * 20 + [1.0] * 20)
    assert (point.at, point.before, point.after) == (20, 0, 1)


@pytest.mark.simulation
def test_a_series_without_a_change_is_split_as_rarely_as_stated() -> None:
    rng = np.random.default_rng(9)
    draws = (rng.normal, rng.lognormal, lambda size: rng.standard_t(3, size))
    alarms = sum(bool(change_points(draws[at % 3](size=40), alpha=0.05)) for at in range(300))
    assert 4 <= alarms <= 26  # 15 are expected; this far off chance is in 1 of 200


@pytest.mark.simulation
def test_a_change_of_two_standard_deviations_is_found() -> None:
    rng = np.random.default_rng(10)
    count = sum(bool(change_points(np.concatenate((rng.normal(0, 1, 20), rng.normal(2, 1, 20))))) for _ in range(40))
    assert count >= 36


@pytest.mark.parametrize(
    ("series", "why"),
    [
        ([], "0 values, at least 10"),
        ([1.0] * (2 * MIN_STRETCH - 1), "9 values, at least 10"),
        ([1.0] * 10 + [np.nan], "1 of 11 values missing"),
        ([1.0] * (MAX_VALUES + 1), "give medians of some each"),
        (np.ones((20, 2)), "2 dimensions"),
    ],
)
def test_no_figure_where_there_is_no_answer(series, why: str) -> None:
    with refused(why):
        change_points(series)


@pytest.mark.parametrize("alpha", [0.0, 0.004, 1.0, np.nan])
def test_alpha_is_what_the_permutations_can_resolve(alpha: float) -> None:
    with refused("alpha"):
        change_points([1.0] * 20, alpha=alpha)


def test_a_stretch_has_two_values() -> None:
    with refused("at least two values"):
        change_points([1.0] * 20, shortest=1)
