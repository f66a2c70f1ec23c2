from __future__ import annotations

import itertools
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tare.estimates import hodges_lehmann as module
from tare.estimates.hodges_lehmann import hodges_lehmann


def brute_force(values: list[float]) -> float:
    pairs = itertools.combinations_with_replacement(values, 2)
    return statistics.median((a + b) / 2 for a, b in pairs)


def test_a_worked_example() -> None:
    # Walsh averages of 1, 2, 10: 1, 1.5, 2, 5.5, 6, 10
    assert hodges_lehmann(np.array([10.0, 1.0, 2.0])) == 3.75


FLOATS = st.floats(-1e6, 1e6, allow_nan=False, allow_subnormal=False)


@given(st.lists(FLOATS, min_size=1, max_size=40))
def test_few_values_against_brute_force(values: list[float]) -> None:
    assert hodges_lehmann(np.array(values)) == pytest.approx(brute_force(values), rel=1e-12, abs=1e-9)


@given(st.lists(st.one_of(FLOATS, st.integers(-3, 3).map(float)), min_size=1, max_size=60))
def test_the_search_against_brute_force(values: list[float]) -> None:
    estimate = module._by_bisection(np.sort(np.array(values)))
    assert estimate == pytest.approx(brute_force(values), rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("size", [61, 200, 601])
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: rng.normal(size=n),
        lambda rng, n: rng.standard_cauchy(n),
        lambda rng, n: rng.integers(0, 4, n).astype(float),
        lambda rng, n: np.full(n, 1 / 3),
        lambda rng, n: 1e-3 + 1e-12 * rng.normal(size=n),
        lambda rng, n: np.concatenate([np.zeros(n // 2), np.ones(n - n // 2)]),
    ],
    ids=["normal", "cauchy", "ties", "constant", "tight", "two-lumps"],
)
def test_many_values_against_all_pairs(draw, size: int) -> None:
    values = np.sort(draw(np.random.default_rng(3), size))
    rows, columns = np.triu_indices(size)
    exact = np.median((values[rows] + values[columns]) / 2)
    assert hodges_lehmann(values) == pytest.approx(exact, rel=1e-13, abs=1e-16)


def test_it_moves_with_the_values_and_withstands_a_quarter_of_wild_ones() -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(size=200)
    assert hodges_lehmann(values + 7) == pytest.approx(hodges_lehmann(values) + 7)
    values[:50] = 1e9
    assert abs(hodges_lehmann(values)) < 3


@pytest.mark.parametrize("values", [[], [1.0, float("nan")], [float("inf"), 1.0]])
def test_no_figure_from_nothing_or_from_what_is_no_number(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        hodges_lehmann(np.array(values))
