"""Whatever numbers come in: `NoAnswer` in one line, or figures that can be. Never a warning, a NaN, a p above 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tare.analysis.comparisons.many import all_pairs
from tare.analysis.comparisons.unpaired import games_howell, kruskal_wallis, one_way, rank_pairs, tukey, welch
from tare.analysis.quality.change_points import change_points
from tare.analysis.quality.spread import sd_ratio_bonett
from tare.analysis.quality.variance import components
from tare.analysis.refusals import NoAnswer
from tare.estimates.intervals import Interval
from tare.features.studies.analysis.scores import percent_of_baseline, row_scores, standardised
from tare.model import Direction
from tare.report.sentences.refusal_words import refusal_text

#: What a tool may print, and what it should not: huge, tiny, equal, zero, negative, missing.
NUMBERS = st.one_of(
    st.floats(1, 100),
    st.integers(0, 3).map(float),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0.0, -0.0, 1e-300, 1e300, -1e308, 0.1 + 0.2, 0.3, math.nan, math.inf]),
)
TAME = st.one_of(st.floats(1, 100), st.integers(0, 3).map(float), st.sampled_from([1e-29, 1e29, 0.3, 0.1 + 0.2]))
SAMPLE = st.one_of(st.lists(NUMBERS, max_size=12), st.lists(TAME, min_size=4, max_size=12))
GROUPS = st.lists(SAMPLE, max_size=3).map(lambda lists: dict(zip("abc", lists, strict=False)))


def figures(value: Any) -> Iterable[float]:
    """Every number in a result; the ends of intervals are checked to lie around their points."""
    if isinstance(value, Interval):
        assert value.low <= value.point * (1 + 1e-9) + 1e-300 or value.low <= value.point
        assert value.point <= value.high + 1e-9 * abs(value.high)
    if isinstance(value, (bool, str)) or value is None:
        return
    if isinstance(value, (int, float)):
        yield float(value)
    elif is_dataclass(value):
        for field in fields(value):
            yield from figures(getattr(value, field.name))
        if hasattr(value, "p"):
            assert 0 <= value.p <= 1
    else:
        for element in value:
            yield from figures(element)


def answered(ask: Callable[[], Any]) -> None:
    try:
        answer = ask()
    except NoAnswer as refusal:
        answer, message = [], refusal_text(refusal.refusal)
    else:
        message = "an answer"
    assert message
    assert "\n" not in message
    assert all(math.isfinite(figure) for figure in figures(answer)), answer


@pytest.mark.thorough
@pytest.mark.parametrize(
    "test",
    [
        one_way,
        welch,
        kruskal_wallis,
        rank_pairs,
        lambda groups: tukey(groups, level=None),
        lambda groups: games_howell(groups, level=None),
    ],
    ids=["one_way", "welch", "kruskal_wallis", "rank_pairs", "tukey", "games_howell"],
)
@settings(max_examples=60)
@given(groups=GROUPS)
def test_groups(test, groups) -> None:
    answered(lambda: test(groups))


@pytest.mark.thorough
@settings(max_examples=150)
@given(first=SAMPLE, second=SAMPLE)
def test_two_samples(first, second) -> None:
    answered(lambda: sd_ratio_bonett(first, second))
    answered(lambda: sd_ratio_bonett(first, first))


@settings(max_examples=100)
@given(rows=st.lists(st.lists(NUMBERS, min_size=3, max_size=3), max_size=12))
def test_blocks_of_platforms(rows) -> None:
    answered(lambda: all_pairs(np.array(rows, dtype=float).reshape(-1, 3), ["a", "b", "c"]))


@settings(max_examples=100)
@given(rows=st.lists(st.lists(TAME, min_size=3, max_size=3), min_size=2, max_size=12))
def test_blocks_of_platforms_with_numbers_in_all_cells(rows) -> None:
    answered(lambda: all_pairs(np.array(rows), ["a", "b", "c"]))


@settings(max_examples=100)
@given(blocks=st.lists(SAMPLE, max_size=5))
def test_blocks_of_rounds(blocks) -> None:
    answered(lambda: components(blocks))


@settings(max_examples=30)
@given(series=st.one_of(st.lists(NUMBERS, max_size=30), st.lists(TAME, min_size=10, max_size=30)))
def test_series(series) -> None:
    answered(lambda: change_points(series))


@settings(max_examples=100)
@given(values=SAMPLE, base=SAMPLE, direction=st.sampled_from(Direction))
def test_figures(values, base, direction) -> None:
    answered(lambda: standardised(values, direction))
    answered(lambda: percent_of_baseline(values, base))
    answered(lambda: row_scores([values, values], [direction] * len(values)))
