"""Does the whole estimator keep its promise? Seeded campaigns with a known truth, analysed by the code that ships."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tare.analysis.rule import LogIntervals, aa_gate, decide
from tare.analysis.verdicts import Question, VerdictKind
from tare.estimates.grid import Grid, block_ratios
from tare.estimates.intervals import t_interval
from tare.model import Arm, Direction

pytestmark = pytest.mark.simulation

CAMPAIGNS = 2_000
ARMS = (Arm("native"), Arm("native", 1), Arm("docker"))
QUESTION = Question("wall", Direction.LOWER, 0.01)


@dataclass(frozen=True)
class World:
    """A noisy machine: drift and neighbours that hit all arms, heavy-tailed rounds, instances that differ."""

    blocks: int
    rounds: int
    effect: float = 0.0  # log ratio of docker to native
    instance: float = 0.003
    round: float = 0.008
    holes: float = 0.0  # share of samples that are missing


def campaign(world: World, rng: np.random.Generator) -> Grid:
    shape = (len(ARMS), world.blocks, world.rounds)
    drift = np.linspace(0, 0.3, world.blocks)[:, None] + rng.normal(0, 0.2, shape[1:])
    logs = drift + rng.normal(0, world.instance, (*shape[:2], 1)) + world.round * rng.standard_t(3, shape)
    logs[2] += world.effect
    values = np.exp(logs)
    values[rng.random(shape) < world.holes] = np.nan
    nothing = np.zeros(len(ARMS), dtype=np.int64)
    return Grid(ARMS, np.arange(world.blocks), values, nothing, nothing + world.blocks * world.rounds)


def intervals(grid: Grid, arm: int, baseline: list[int]) -> LogIntervals:
    logs = block_ratios(grid, arm, baseline).logs
    return LogIntervals(*(t_interval(logs, level) for level in (0.95, 0.90, 0.99)))


@pytest.mark.parametrize(
    "world",
    [
        World(blocks=10, rounds=1),
        World(blocks=10, rounds=5, effect=0.01),
        World(blocks=30, rounds=1, effect=0.04),
        World(blocks=10, rounds=5, effect=1.2, holes=0.1),
    ],
    ids=str,
)
def test_the_95_percent_interval_holds_the_truth_93_to_97_times_in_100(world: World) -> None:
    rng = np.random.default_rng(2026)
    held, errors = 0, []
    for _ in range(CAMPAIGNS):
        interval = intervals(campaign(world, rng), 2, [0, 1]).wide
        held += interval.low <= world.effect <= interval.high
        errors.append(interval.point - world.effect)
    assert 0.93 <= held / CAMPAIGNS <= 0.97
    assert abs(float(np.mean(errors))) < 0.001


@pytest.mark.parametrize("blocks", [6, 10, 30])
def test_between_a_platform_and_itself_the_instrument_is_silent(blocks: int) -> None:
    rng = np.random.default_rng(7)
    world = World(blocks=blocks, rounds=4)
    kinds, closed = [], 0
    for _ in range(CAMPAIGNS):
        grid = campaign(world, rng)
        kinds.append(decide(QUESTION, intervals(grid, 2, [0, 1])))
        closed += aa_gate(QUESTION, intervals(grid, 1, [0])) is not None
    alarms = sum(kind in {VerdictKind.SLOWER, VerdictKind.FASTER} for kind in kinds)
    assert alarms / CAMPAIGNS <= 0.01
    assert closed / CAMPAIGNS <= 0.025


def test_equal_is_claimed_wrongly_at_most_5_times_in_100_on_the_edge_of_the_margin() -> None:
    rng = np.random.default_rng(9)
    world = World(blocks=10, rounds=4, effect=float(np.log(1.01)))
    wrong = sum(
        decide(QUESTION, intervals(campaign(world, rng), 2, [0, 1])) is VerdictKind.EQUIVALENT for _ in range(CAMPAIGNS)
    )
    assert 0 < wrong / CAMPAIGNS <= 0.065


def test_a_difference_well_beyond_the_margin_is_found() -> None:
    rng = np.random.default_rng(10)
    world = World(blocks=10, rounds=10, effect=0.04)
    kinds = [decide(QUESTION, intervals(campaign(world, rng), 2, [0, 1])) for _ in range(300)]
    assert kinds.count(VerdictKind.SLOWER) / 300 > 0.9
