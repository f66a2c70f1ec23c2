"""Do moderated intervals hold the truth from three blocks on? Campaigns with a known truth, by the code that ships."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy import integrate, stats

from tare.estimates.contrasts import Contrast
from tare.estimates.grid import BlockRatios
from tare.estimates.hodges_lehmann import hodges_lehmann_rows
from tare.estimates.looks import Looks
from tare.estimates.moderated import (
    FLOOR_UP_TO,
    GUARD,
    MIN_PAIRS,
    FigureRow,
    Rows,
    moderated,
    moderated_looks,
    prior_of,
    squeezed,
)

Rng = np.random.Generator
PLATFORMS = 3
#: Workloads by their rounds a block: eight that are cut into slices, and three of one run.
ROUNDS = (4,) * 8 + (1,) * 3
#: An arm's noise is of its starts by this share, and else of rounds.
STARTS = 0.3


@dataclass(frozen=True)
class World:
    """How rounds and starts vary, in the unit of a metric's own scale; arms are the platforms and two baselines."""

    rounds: Callable[[Rng, tuple[int, ...]], np.ndarray] = Rng.normal
    starts: Callable[[Rng, tuple[int, ...]], np.ndarray] = Rng.normal
    share_of_starts: float = STARTS
    first: float = 1.0  # times as much noise of the first platform
    first_starts: float = 1.0  # of its starts alone
    one_workload: bool = False  # and in one workload alone
    arms_differ: float = 0.0  # SD of the logarithm of an arm's scale in a workload
    blocks_differ: float = 0.0  # SD of the logarithm of a block's scale
    drift: float = 0.0  # of all arms alike


def _normal(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return rng.normal(size=shape)


def _heavy(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return rng.standard_t(3, shape) / np.sqrt(3)


def _skewed(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return (rng.lognormal(0, 1, shape) - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e)


def _bimodal(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return rng.normal(size=shape) + 3 * (rng.random(shape) < 0.15)


WORLDS = {
    "normal": World(_normal, _normal),
    "heavy tails": World(_heavy, _heavy),
    "skewed": World(_skewed, _normal),
    "shared drift": World(_normal, _normal, drift=4.0),
    "noise differs by block": World(_normal, _normal, blocks_differ=0.7),
    "starts alone": World(_normal, _normal, share_of_starts=1.0),
    "arms differ": World(_normal, _normal, arms_differ=0.45),
    "a platform five times as noisy": World(_normal, _normal, first=5.0, first_starts=5.0),
    "its starts alone": World(_normal, _normal, first_starts=5.0),
    "in one workload alone": World(_normal, _normal, first=5.0, first_starts=5.0, one_workload=True),
    "bimodal starts": World(_normal, _bimodal),
    "bimodal rounds": World(_bimodal, _normal),
}


def campaign(world: World, rng: Rng, blocks: int) -> dict[FigureRow, Contrast]:
    """The contrasts of a campaign in which nothing differs: a headline and a CPU cost for each workload."""
    contrasts = {}
    for workload, rounds in enumerate(ROUNDS):
        scale = 0.05 * np.exp(rng.normal(0, 0.7))
        arms = np.exp(rng.normal(0, world.arms_differ, (PLATFORMS + 2, 1, 1))) if world.arms_differ else 1.0
        odd = np.ones((2, PLATFORMS + 2, 1, 1))
        if not (world.one_workload and workload):
            odd[0, 0], odd[1, 0] = world.first, world.first_starts
        starts = world.starts(rng, (PLATFORMS + 2, blocks, 1)) * world.share_of_starts * odd[1] * arms
        shape = (PLATFORMS + 2, blocks, rounds)
        noise = world.rounds(rng, shape) * np.sqrt(1 - world.share_of_starts**2) * odd[0] * arms
        if world.blocks_differ:
            noise = noise * np.exp(rng.normal(0, world.blocks_differ, (1, blocks, 1)))
        headline = scale * (starts + noise + world.drift * np.linspace(0, 1, blocks)[:, None])
        cost = -0.9 * headline + np.sqrt(1 - 0.81) * scale * rng.normal(size=shape)
        for metric, logs in (("headline", headline), ("cpu-cost", cost)):
            *platforms, first, second = logs
            for at, arm in enumerate(platforms):
                contrasts[FigureRow(str(workload), metric, str(at))] = _contrast(arm, [first, second])
            contrasts[FigureRow(str(workload), metric, None)] = _contrast(second, [first])
    return contrasts


def _contrast(arm: np.ndarray, baseline: list[np.ndarray]) -> Contrast:
    blocks, rounds = arm.shape
    logs = np.mean([hodges_lehmann_rows(arm - base) for base in baseline], axis=0)
    within = np.full(blocks, np.nan)
    if rounds > 1:
        within = (arm - np.mean(baseline, axis=0)).var(axis=1, ddof=1) / rounds
    pairs = BlockRatios(np.arange(blocks), logs, np.zeros(blocks, dtype=bool), within)
    return Contrast(pairs, None, rounds * blocks, len(baseline))


@dataclass
class Held:
    """Of intervals of platforms: whether they hold the truth, and their widths beside those of plain intervals."""

    holds: list[bool] = field(default_factory=list)
    holds_odd: list[bool] = field(default_factory=list)  # of the first platform alone
    beyond: list[bool] = field(default_factory=list)  # the 99 % interval that verdicts rest on excludes it
    widths: list[float] = field(default_factory=list)


def simulated(world: World, blocks: int, campaigns: int = 60, seed: int = 1) -> Held:
    rng, held = np.random.default_rng([seed, blocks]), Held()
    for _ in range(campaigns):
        contrasts = campaign(world, rng, blocks)
        for figure, looks in moderated_looks(contrasts, frozenset(contrasts)).items():
            if figure.platform is None:
                continue
            wide, sure = looks.typical.interval(0.95), looks.typical.judged_at(0.99)
            holds = wide.low <= 0 <= wide.high
            held.holds.append(holds)
            if figure.platform == "0":
                held.holds_odd.append(holds)
            held.beyond.append(not sure.low <= 0 <= sure.high)
            plain = contrasts[figure].looks()
            assert plain is not None
            held.widths.append(wide.half_width / plain.typical.interval(0.95).half_width)
    return held


@pytest.mark.simulation
@pytest.mark.parametrize("blocks", [3, 4, 6])
@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_few_blocks_hold_the_truth_and_give_few_false_verdicts(world: World, blocks: int) -> None:
    held = simulated(world, blocks)
    assert 0.92 <= np.mean(held.holds) <= 0.985
    assert np.mean(held.holds_odd) >= 0.905  # of a platform that is like no other
    assert np.mean(held.beyond) <= 0.016


@pytest.mark.simulation
def test_three_blocks_tell_a_third_more() -> None:
    assert np.mean(simulated(WORLDS["normal"], 3).widths) < 0.85  # of ratios; of absolute widths it is 0.65
    assert np.mean(simulated(WORLDS["normal"], 10).widths) == pytest.approx(1, abs=0.06)


@pytest.mark.simulation
def test_blocks_that_depend_on_each_other_borrow_nothing() -> None:
    rng = np.random.default_rng(6)
    contrasts = campaign(WORLDS["normal"], rng, 12)
    wander = np.linspace(0, 3, 12)
    depending = {
        figure: Contrast(
            BlockRatios(
                contrast.pairs.blocks, contrast.pairs.logs + wander, contrast.pairs.lone, contrast.pairs.within
            ),
            None,
            contrast.draws,
            contrast.arms,
        )
        for figure, contrast in contrasts.items()
    }
    for figure, looks in moderated_looks(depending, frozenset(depending)).items():
        assert looks == depending[figure].looks()


def rows_of(variances: np.ndarray, df: float, workloads: int, within: float = np.nan) -> Rows:
    figures = [FigureRow(str(at % workloads), "m", str(at // workloads)) for at in range(variances.size)]
    size = variances.size
    return Rows(
        figures, variances, np.full(size, df), np.full(size, 2.0), np.full(size, within), np.ones(size, dtype=bool)
    )


def test_too_few_pairs_borrow_nothing() -> None:
    variances = np.random.default_rng(1).chisquare(2, MIN_PAIRS - 1)
    assert np.array_equal(moderated(rows_of(variances, 2, 7))[0], variances)


def test_equal_variances_are_drawn_together_and_one_that_does_not_fit_keeps_its_own() -> None:
    rng = np.random.default_rng(2)
    variances = 0.01 * rng.chisquare(2, 40) / 2
    drawn, dfs = moderated(rows_of(variances, 2, 10))
    moved = dfs > 2
    assert moved.sum() > 30
    assert np.log(drawn[moved]).std() < 0.5 * np.log(variances[moved]).std()
    variances[7] = 5.0
    drawn, dfs = moderated(rows_of(variances, 2, 10))
    assert (drawn[7], dfs[7]) == (5.0, 2.0)
    assert (dfs > 2).sum() > 30


def test_the_floor_is_for_verdicts_and_for_few_blocks() -> None:
    rng = np.random.default_rng(3)
    for blocks, floored in ((3, True), (FLOOR_UP_TO, True), (FLOOR_UP_TO + 1, False)):
        contrasts = campaign(WORLDS["normal"], rng, blocks)
        looks = moderated_looks(contrasts, frozenset(contrasts)).values()
        assert any(look.typical.judged.error > look.typical.shown.error for look in looks) is floored
        assert all(look.typical.judged.error >= look.typical.shown.error for look in looks)
        assert all(look.typical.judged.df == look.typical.shown.df for look in looks)


def test_what_varies_by_nothing_keeps_its_own() -> None:
    variances = np.concatenate(([0.0], np.random.default_rng(4).chisquare(2, 20)))
    drawn, dfs = moderated(rows_of(variances, 2, 7))
    assert (drawn[0], dfs[0]) == (0.0, 2.0)


def test_a_moderated_variance_is_the_posterior_mean_of_its_inverse() -> None:
    """By numerical integration of the prior's density times the likelihood, instead of by the conjugate formula."""
    prior, df = (float(value[0]) for value in prior_of(np.array([np.log(0.3)]), np.array([0.8])))
    seen, seen_df = 0.7, 2.0

    def weight(precision: float) -> float:
        likelihood = stats.chi2.pdf(seen_df * seen * precision, seen_df) * precision
        return float(likelihood * stats.chi2.pdf(df * prior * precision, df) * df * prior)

    whole = integrate.quad(weight, 0, np.inf)[0]
    mean = integrate.quad(lambda precision: precision * weight(precision), 0, np.inf)[0] / whole
    drawn = squeezed(np.array([seen]), np.array([seen_df]), np.array([prior]), np.array([df]))[0]
    assert 1 / mean == pytest.approx(drawn, rel=1e-6)
    moments = stats.chi2(df)  # of df prior precision: its logarithm's variance is what was asked for
    logs = np.log(moments.rvs(200_000, random_state=5))
    assert logs.var() == pytest.approx(0.8, rel=0.02)


def test_looks_of_totals_are_moderated_by_themselves() -> None:
    rng = np.random.default_rng(7)
    contrasts = {
        figure: Contrast(contrast.pairs, contrast.pairs, contrast.draws, contrast.arms)
        for figure, contrast in campaign(WORLDS["normal"], rng, 3).items()
    }
    for looks in moderated_looks(contrasts, frozenset(contrasts)).values():
        assert looks == Looks(looks.typical, looks.typical)
    assert GUARD < 1
