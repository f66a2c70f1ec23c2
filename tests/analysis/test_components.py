from __future__ import annotations

import numpy as np
import pytest

from refused import refused
from tare.analysis.quality.variance import Components, best_rounds, components, standard_error
from tare.estimates.intervals import Interval


def two_level(rng: np.random.Generator, blocks: int, rounds: int, between: float, within: float) -> np.ndarray:
    """Values by block and round with these standard deviations."""
    return 50 + rng.normal(0, between, (blocks, 1)) + rng.normal(0, within, (blocks, rounds))


def test_a_worked_example() -> None:
    # Means 2, 5 and 8, squares within 2, 2 and 2: MSB = 2 x 9 = 18 and MSW = 6 / 3 = 2, so between = (18 - 2) / 2.
    parts = components([[1.0, 3.0], [4.0, 6.0], [7.0, 9.0]])
    assert (parts.mean_square_between, parts.mean_square_within, parts.rounds) == pytest.approx((18, 2, 2))
    assert (parts.between, parts.within, parts.icc.point) == pytest.approx((8, 2, 0.8))
    assert 0 <= parts.icc.low < 0.8 < parts.icc.high < 1


def test_the_truth_is_hit_on_average_when_blocks_have_different_numbers_of_rounds() -> None:
    rng = np.random.default_rng(31)
    between, within = [], []
    for _ in range(400):
        values = two_level(rng, 12, 9, 2.0, 3.0)
        parts = components([row[: rng.integers(1, 10)] for row in values])
        # Unbiased before what is below zero is set to zero, so that is undone here.
        between.append((parts.mean_square_between - parts.mean_square_within) / parts.rounds)
        within.append(parts.within)
    assert np.mean(between) == pytest.approx(4, rel=0.1)
    assert np.mean(within) == pytest.approx(9, rel=0.05)


def test_rounds_that_scatter_more_than_their_blocks_leave_nothing_between() -> None:
    parts = components([[1.0, 9.0], [9.0, 1.0], [1.2, 9.0]])
    assert (parts.between, parts.icc.point, parts.icc.low) == (0, 0, 0)
    assert best_rounds(parts, block_cost=10, round_cost=1) is None


def parts(between: float, within: float) -> Components:
    return Components(10, 50, 5, 0, 0, within, between, Interval(0, 0, 0))


@pytest.mark.parametrize("between", [0.01, 0.3, 1.0, 7.0])
@pytest.mark.parametrize("block_cost", [0.0, 0.4, 3.0, 90.0])
def test_the_best_number_of_rounds_against_trying_all(between: float, block_cost: float) -> None:
    def error_for_the_cost(rounds: int) -> float:
        blocks = 1e6 / (block_cost + rounds * 0.7)
        return (between + 2.0 / rounds) / blocks

    rounds_each = best_rounds(parts(between, 2.0), block_cost=block_cost, round_cost=0.7)
    assert rounds_each is not None
    assert error_for_the_cost(rounds_each) == pytest.approx(min(error_for_the_cost(rounds) for rounds in range(1, 500)))


def test_kalibera_and_jones_formula_is_next_to_it() -> None:
    # sqrt(20 / 1 x 9 / 4) = 6.7
    assert best_rounds(parts(4, 9), block_cost=20, round_cost=1) in {6, 7}


def test_the_predicted_standard_error_is_what_new_data_show() -> None:
    rng = np.random.default_rng(8)
    predicted = standard_error(parts(4, 9), blocks=10, rounds=4)
    means = [two_level(rng, 10, 4, 2, 3).mean() for _ in range(2_000)]
    assert np.std(means) == pytest.approx(predicted, rel=0.06)


@pytest.mark.parametrize(
    ("blocks", "why"),
    [
        ([], "at least two blocks"),
        ([[1.0, 2.0]], "at least two blocks"),
        ([[1.0], [2.0], [3.0]], "a block with at least two values"),
        ([[1.0, 2.0], []], "block 1: 0 values"),
        ([[1.0, np.nan], [1.0, 2.0]], "block 0: 1 of 2 values missing"),
        ([[1.0, 1.0], [2.0, 2.0]], "no variance within blocks"),
        ([[0.0, 0.0], [0.0, 0.0]], "no variance within blocks"),
    ],
)
def test_no_figure_where_there_is_no_answer(blocks, why: str) -> None:
    with refused(why):
        components(blocks)


@pytest.mark.parametrize(("block_cost", "round_cost"), [(-1, 1), (1, 0), (1, -1), (np.nan, 1), (1, np.inf)])
def test_costs_are_positive(block_cost: float, round_cost: float) -> None:
    with refused("costs"):
        best_rounds(parts(1, 1), block_cost=block_cost, round_cost=round_cost)


@pytest.mark.parametrize(("blocks", "rounds"), [(0, 1), (1, 0)])
def test_nothing_has_no_standard_error(blocks: int, rounds: int) -> None:
    with refused("at least one"):
        standard_error(parts(1, 1), blocks=blocks, rounds=rounds)
