from __future__ import annotations

import numpy as np
import pytest

from refused import refused
from tare.features.studies.analysis.scores import (
    overhead_ratio,
    percent_of_baseline,
    row_scores,
    standardised,
    trial_count_overhead,
)
from tare.model import Direction

# On the studies' own figures: test_literature.py
HIGHER, LOWER = Direction.HIGHER, Direction.LOWER


def test_standardised_scores_are_equations_2_and_3() -> None:
    assert standardised([2.0, 8.0, 4.0], HIGHER).tolist() == [0.25, 1.0, 0.5]
    assert standardised([2.0, 8.0, 4.0], LOWER).tolist() == [1.0, 0.25, 0.5]


def test_overhead_ratio_has_no_sign_and_may_ignore_what_is_small() -> None:
    assert overhead_ratio(80, 100) == overhead_ratio(120, 100) == pytest.approx(0.2)
    assert overhead_ratio(100.9, 100, ignored_below=0.01) == 0
    assert overhead_ratio(101, 100, ignored_below=0.01) == pytest.approx(0.01)


def test_trials_that_fit_into_the_same_time() -> None:
    assert trial_count_overhead(75, 100) == 0.25
    assert trial_count_overhead(0, 100) == 1


def test_percent_of_the_baseline_with_the_scatter_of_the_platform() -> None:
    score = percent_of_baseline([8.0, 10.0, 12.0], [19.0, 21.0])
    assert (score.percent, score.rsd, score.n) == pytest.approx((50, 20, 3))
    assert percent_of_baseline([5.0], [10.0]).rsd is None


def test_row_score_is_the_mean_share_of_the_column_maximum() -> None:
    table = [[10.0, 0.0], [5.0, 4.0], [0.0, 2.0]]
    assert row_scores(table).tolist() == [0.5, 0.75, 0.25]
    assert row_scores([[10.0, 2.0], [5.0, 4.0]], [HIGHER, LOWER]).tolist() == [1.0, 0.5]


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda: overhead_ratio(1, 0), "the baseline must be positive: 0"),
        (lambda: overhead_ratio(1, float("nan")), "the baseline must be positive: nan"),
        (lambda: overhead_ratio(float("nan"), 1), "the measured figure is nan"),
        (lambda: trial_count_overhead(3, 0), "3 against 0"),
        (lambda: trial_count_overhead(-1, 3), "-1 against 3"),
        (lambda: standardised([], HIGHER), "0 values"),
        (lambda: standardised([1.0, 0.0], LOWER), "1 of 2 values zero or negative"),
        (lambda: standardised([0.0, 0.0], HIGHER), "2 of 2 values zero or negative"),
        (lambda: standardised([1.0, np.inf], HIGHER), "1 of 2 values missing or not finite"),
        (lambda: percent_of_baseline([], [1.0]), "the platform: 0 values"),
        (lambda: percent_of_baseline([1.0], [0.0]), "the baseline: 1 of 1 value zero or negative"),
        (lambda: row_scores([]), "rows and columns"),
        (lambda: row_scores([1.0]), "rows and columns"),
        (lambda: row_scores([[1.0, np.nan]]), "1 cells are missing"),
        (lambda: row_scores([[1.0, 0.0], [2.0, 0.0]]), "a column needs a positive value"),
        (lambda: row_scores([[1.0], [-2.0]]), "none that is negative"),
        (lambda: row_scores([[1.0, 2.0]], [HIGHER]), "2 columns need as many directions"),
    ],
)
def test_no_figure_where_there_is_no_answer(ask, why: str) -> None:
    with refused(why):
        ask()
