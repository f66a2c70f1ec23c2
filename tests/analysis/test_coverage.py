"""Do intervals contain the truth as often as they say, and is the false-positive rate what it should be? Simulations.

`test_simulation.py` does this for whole campaigns on a noisy machine; here it is every estimate by itself, on four
kinds of data and at 10, 30 and 100 blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from tare.analysis.comparisons.many import Method, all_pairs
from tare.analysis.comparisons.unpaired import games_howell, tukey, welch
from tare.analysis.evidence import evidence
from tare.analysis.quality.spread import sd_ratio_bonett
from tare.analysis.quality.variance import components
from tare.analysis.rule import settle
from tare.analysis.verdicts import Question, VerdictKind
from tare.estimates.grid import Grid, block_ratios
from tare.estimates.hodges_lehmann import hodges_lehmann
from tare.estimates.intervals import bca_interval, t_interval
from tare.model import Arm, Direction

pytestmark = pytest.mark.simulation

Rng = np.random.Generator
ARMS = (Arm("native"), Arm("native", 1), Arm("docker"))
EFFECT = 0.04
#: More campaigns where they are small: the chance of a figure is then about as far from the bounds everywhere.
CAMPAIGNS = {10: 1_500, 30: 800, 100: 500}


def normal(rng: Rng, blocks: int) -> np.ndarray:
    return rng.normal(0, 0.02, (3, blocks, 1))


def lognormal(rng: Rng, blocks: int) -> np.ndarray:
    """Times that are never much shorter and now and then much longer than usual."""
    return np.log(1 + 0.05 * rng.lognormal(0, 1, (3, blocks, 1)))


def drifting(rng: Rng, blocks: int) -> np.ndarray:
    """A machine that gets slower, in jumps: a fortieth a block and a random walk, for all arms alike."""
    way = np.linspace(0, blocks / 40, blocks) + rng.normal(0, 0.1, blocks).cumsum()
    return way[:, None] + rng.normal(0, 0.02, (3, blocks, 1))


def two_level(rng: Rng, blocks: int) -> np.ndarray:
    """Instances that differ, and heavy-tailed rounds within them."""
    return rng.normal(0, 0.02, (3, blocks, 1)) + 0.01 * rng.standard_t(3, (3, blocks, 4))


@pytest.mark.parametrize("blocks", CAMPAIGNS)
@pytest.mark.parametrize("world", [normal, lognormal, drifting, two_level])
def test_the_interval_of_a_ratio_holds_the_truth_93_to_97_times_in_100(
    world: Callable[[Rng, int], np.ndarray], blocks: int
) -> None:
    rng = np.random.default_rng([blocks, 5])
    held = 0
    nothing = np.zeros(len(ARMS), dtype=np.int64)
    for _ in range(CAMPAIGNS[blocks]):
        logs = world(rng, blocks)
        logs[2] += EFFECT
        grid = Grid(ARMS, np.arange(blocks), np.exp(logs), nothing, nothing + blocks)
        interval = t_interval(block_ratios(grid, 2, [0, 1]).logs, 0.95)
        held += interval.low <= EFFECT <= interval.high
    assert 0.93 <= held / CAMPAIGNS[blocks] <= 0.97


def beside_busy_neighbours(rng: Rng, blocks: int) -> np.ndarray:
    """Rounds that mostly have the processor and else a half or a third of it: noise much wider than any margin."""
    return -np.log(rng.choice([1.0, 0.5, 1 / 3], p=[0.6, 0.25, 0.15], size=(3, blocks, 8)))


def test_no_difference_is_none_on_average_however_skewed_the_rounds_are() -> None:
    """One arm against two others: the pseudomedian of that contrast would be off by a percent and more here."""
    rng = np.random.default_rng(8)
    blocks = 12_000
    nothing = np.zeros(len(ARMS), dtype=np.int64)
    grid = Grid(ARMS, np.arange(blocks), np.exp(beside_busy_neighbours(rng, blocks)), nothing, nothing + blocks)
    interval = t_interval(block_ratios(grid, 2, [0, 1]).logs, 0.99)
    assert interval.low < 0 < interval.high
    assert interval.half_width < 0.007
    contrast = np.log(grid.values[2]) - np.log(grid.values[:2]).mean(axis=0)
    assert np.mean([hodges_lehmann(row) for row in contrast]) < -2 * interval.half_width


def test_noise_much_wider_than_the_margin_gives_one_false_alarm_in_a_hundred_at_most() -> None:
    rng = np.random.default_rng(9)
    campaigns, alarms = 2_000, 0
    nothing = np.zeros(len(ARMS), dtype=np.int64)
    question = Question("wall", Direction.LOWER, 0.01)
    for _ in range(campaigns):
        logs = rng.normal(0, 0.1, (3, 10, 1))
        grid = Grid(ARMS, np.arange(10), np.exp(logs), nothing, nothing + 10)
        alarms += settle(question, evidence(grid, 2, [0, 1])).kind in {VerdictKind.SLOWER, VerdictKind.FASTER}
    assert 0 < alarms / campaigns <= 0.015


@pytest.mark.parametrize(("blocks", "least", "skewed_least"), [(10, 0.87, 0.80), (30, 0.92, 0.85)])
@pytest.mark.parametrize("world", [normal, lognormal, drifting, two_level])
def test_the_bootstrap_that_checks_it_holds_less_with_few_blocks(
    world: Callable[[Rng, int], np.ndarray], blocks: int, least: float, skewed_least: float
) -> None:
    """Which is why it is the check, and t is what verdicts rest on (docs/method.md has the figures)."""
    rng = np.random.default_rng([blocks, 5])
    held, campaigns = 0, 200
    nothing = np.zeros(len(ARMS), dtype=np.int64)
    for _ in range(campaigns):
        logs = world(rng, blocks)
        logs[2] += EFFECT
        grid = Grid(ARMS, np.arange(blocks), np.exp(logs), nothing, nothing + blocks)
        interval = bca_interval(block_ratios(grid, 2, [0, 1]).logs, 0.95)
        assert interval is not None
        held += interval.low <= EFFECT <= interval.high
    assert (skewed_least if world is lognormal else least) <= held / campaigns <= 0.98


# All pairs over the same blocks


@dataclass(frozen=True)
class Platforms:
    """Four platforms that do not differ but, if asked, in how steady they are."""

    blocks: int
    steadiness: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)
    skewed: bool = False

    def draw(self, rng: Rng) -> np.ndarray:
        shape = (self.blocks, 4)
        noise = rng.lognormal(0, 0.7, shape) if self.skewed else rng.normal(0, 1, shape)
        return rng.normal(0, 5, (self.blocks, 1)) + noise * self.steadiness


UNEQUAL = (0.3, 1.0, 2.0, 6.0)
NAMES = ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    "platforms",
    [
        Platforms(8),
        *(Platforms(blocks, *kind) for blocks in (10, 30, 100) for kind in [(), (UNEQUAL,)]),
        Platforms(10, skewed=True),
        Platforms(30, skewed=True),
    ],
    ids=str,
)
def test_of_all_pairs_some_difference_is_claimed_wrongly_3_to_7_times_in_100(platforms: Platforms) -> None:
    # An interval excludes zero exactly when p is below 0.05 (test_many.py), so this is the coverage of all of them too.
    rng = np.random.default_rng([platforms.blocks, 6])
    runs = 500
    alarms = sum(min(pair.p for pair in all_pairs(platforms.draw(rng), NAMES).pairs) <= 0.05 for _ in range(runs))
    assert 0.03 <= alarms / runs <= 0.07


def test_without_adjustment_it_would_be_one_in_six() -> None:
    rng = np.random.default_rng(7)
    alarms = 0
    for _ in range(500):
        values = Platforms(10).draw(rng)
        intervals = [t_interval(values[:, i] - values[:, j], 0.95) for i in range(4) for j in range(i)]
        alarms += any(interval.low > 0 or interval.high < 0 for interval in intervals)
    assert alarms / 500 > 0.15


def test_true_differences_do_not_make_the_others_look_different() -> None:
    rng = np.random.default_rng(8)
    alarms = 0
    for _ in range(500):
        values = Platforms(10).draw(rng)
        values[:, 3] += 50
        pairs = all_pairs(values, NAMES).pairs
        alarms += any(pair.p <= 0.05 for pair in pairs if pair.second != "d")
        assert all(pair.p <= 0.05 for pair in pairs if pair.second == "d")
    assert alarms / 500 <= 0.07


def test_holm_in_few_blocks_does_not_cry_wolf() -> None:
    rng = np.random.default_rng(9)
    alarms = 0
    for _ in range(500):
        compared = all_pairs(Platforms(5).draw(rng), NAMES)
        assert compared.method is Method.HOLM
        alarms += min(pair.p for pair in compared.pairs) <= 0.05
    assert alarms / 500 <= 0.07


# Groups without common blocks


def test_where_the_small_group_scatters_most_tukey_cries_wolf_and_games_howell_does_not() -> None:
    rng = np.random.default_rng(10)
    runs = 160
    alarms = {tukey: 0, games_howell: 0}
    for _ in range(runs):
        groups = {"a": rng.normal(0, 5, 8), "b": rng.normal(0, 1, 16), "c": rng.normal(0, 1, 24)}
        for test in alarms:
            alarms[test] += min(pair.p for pair in test(groups, level=None)) <= 0.05
    assert 0.01 <= alarms[games_howell] / runs <= 0.09
    assert alarms[tukey] / runs > 0.15


def test_welchs_analysis_of_variance_cries_wolf_as_often_as_it_says() -> None:
    rng = np.random.default_rng(11)
    alarms = sum(
        welch({"a": rng.normal(0, 5, 8), "b": rng.normal(0, 1, 16), "c": rng.normal(0, 2, 24)}).p <= 0.05
        for _ in range(2_000)
    )
    assert 0.04 <= alarms / 2_000 <= 0.065


# Ratios of standard deviations

SHAPES: dict[str, Callable[[Rng, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(size=(2, n)),
    "lognormal": lambda rng, n: rng.lognormal(0, 0.4, (2, n)),
    "heavy-tailed": lambda rng, n: rng.standard_t(5, (2, n)),
    "drifting": lambda rng, n: rng.normal(size=(2, n)) + np.linspace(0, 1, n),
}


def held(shape: str, blocks: int, runs: int) -> float:
    """How often the interval of a true ratio of 2 holds it."""
    rng = np.random.default_rng([blocks, 12])
    count = 0
    for _ in range(runs):
        first, second = SHAPES[shape](rng, blocks)
        interval = sd_ratio_bonett(2 * first, second)
        count += interval.low <= 2 <= interval.high
    return count / runs


@pytest.mark.parametrize("blocks", [10, 30, 100])
@pytest.mark.parametrize("shape", SHAPES)
def test_bonetts_interval_of_an_sd_ratio_holds_the_truth_whatever_the_shape(shape: str, blocks: int) -> None:
    assert 0.93 <= held(shape, blocks, 700) <= 0.97


# Components of variance


@pytest.mark.parametrize("blocks", [10, 30, 100])
@pytest.mark.parametrize("equal", [True, False])
def test_the_interval_of_the_intraclass_correlation_holds_the_truth(blocks: int, equal: bool) -> None:
    rng = np.random.default_rng([blocks, 14])
    count = 0
    for _ in range(600):
        values = rng.normal(0, 2, (blocks, 1)) + rng.normal(0, 3, (blocks, 6))
        rows = values if equal else [row[: rng.integers(3, 7)] for row in values]
        interval = components(list(rows)).icc
        count += interval.low <= 4 / 13 <= interval.high
    assert 0.93 <= count / 600 <= 0.97
