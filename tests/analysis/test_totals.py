"""What a typical round does not show: stalls, rare modes, failed trials, and steps of the metric."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

import fake_campaign
from tare.analysis import MetricResult, PlatformResult, VerdictKind, analyse
from tare.analysis.evidence import evidence
from tare.analysis.hidden import Trials, hidden, highest_share, loss
from tare.analysis.quality.findings import FindingKind
from tare.analysis.quality.slow_rounds import stalls, tails
from tare.analysis.rule import settle
from tare.analysis.verdicts import Question, Reason
from tare.estimates.grid import Grid, harmonic, total_ratios, weighted
from tare.model import Arm, Design, Direction, Mode
from tare.store import CampaignRecord, read_store

ARMS = (Arm("native"), Arm("native", 1), Arm("docker"))
RATE = Question("rate", Direction.HIGHER, 0.01)
RUN = Question("throughput", Direction.HIGHER, 0.05)


def grid_of(values: np.ndarray, **facts: object) -> Grid:
    nothing = np.zeros(len(ARMS), dtype=np.int64)
    return Grid(ARMS, np.arange(values.shape[1]), values, nothing, nothing + values[0].size, **facts)


def verdict(question: Question, grid: Grid, trials: Trials | None = None) -> VerdictKind:
    return settle(question, evidence(grid, 2, [0, 1], trials=trials)).kind


def quiet(rng: np.random.Generator, blocks: int, rounds: int) -> np.ndarray:
    shape = (len(ARMS), blocks, rounds)
    return rng.normal(0, 0.002, (*shape[:2], 1)) + rng.normal(0, 0.004, shape)


def stalling(rng: np.random.Generator, share: float, whose: list[int], blocks: int = 12, rounds: int = 20) -> Grid:
    logs = quiet(rng, blocks, rounds)
    for arm in whose:
        logs[arm] += np.where(rng.random((blocks, rounds)) < share, math.log(0.5), 0.0)
    return grid_of(np.exp(logs))


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> tuple[CampaignRecord, pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    shape = fake_campaign.Shape(workloads=("prime-slices", "iperf3-tcp"), failing=None, stolen=False)
    with read_store(fake_campaign.write(tmp_path_factory.mktemp("totals") / "a.tare", shape)) as store:
        return store.record, store.samples(), store.trials(), store.slices()


def entry(results: list[MetricResult], metric: str, platform: str = "docker") -> PlatformResult:
    [result] = [result for result in results if result.metric == metric and result.workload == "prime-slices"]
    [match] = [match for match in result.platforms if match.platform == platform]
    return match


# --- the ratio of totals ---------------------------------------------------------------------------------------------


def test_the_ratio_of_totals_is_work_over_time_of_the_whole_block() -> None:
    rng = np.random.default_rng(1)
    work, times, cpu = (rng.uniform(1, 2, (3, 4, 5)) for _ in range(3))
    by_hand = {
        "rate": work.sum(axis=2) / times.sum(axis=2),
        "cost": cpu.sum(axis=2) / work.sum(axis=2),
    }
    rates = grid_of(work / times, weights=times, harmonic=harmonic(Direction.HIGHER, Mode.SLICES))
    costs = grid_of(cpu / work, weights=cpu, harmonic=harmonic(Direction.LOWER, Mode.SLICES))
    for grid, totals in ((rates, by_hand["rate"]), (costs, by_hand["cost"])):
        for arm in range(3):
            assert grid.block_values(arm) == pytest.approx(totals[arm])
        logs = np.log(totals)
        assert total_ratios(grid, 2, [0, 1]).logs == pytest.approx(logs[2] - (logs[0] + logs[1]) / 2)


def test_iterations_of_a_run_are_equal_work_and_their_times_add_up() -> None:
    seconds = np.array([1.0, 3.0])
    times = grid_of(np.broadcast_to(seconds, (3, 1, 2)).copy(), harmonic=harmonic(Direction.LOWER, Mode.RUN))
    rates = grid_of(np.broadcast_to(1 / seconds, (3, 1, 2)).copy(), harmonic=harmonic(Direction.HIGHER, Mode.RUN))
    assert times.block_values(2) == pytest.approx([2.0])
    assert rates.block_values(2) == pytest.approx([0.5])


def test_totals_are_over_the_rounds_that_both_have() -> None:
    values = np.full((3, 2, 4), 10.0)
    values[0, :, 3] = 1.0  # a round that the platform has no sample of
    values[2, :, 3] = np.nan
    assert total_ratios(grid_of(values), 2, [0, 1]).logs == pytest.approx([0.0, 0.0])


def test_a_slice_that_takes_ten_times_as_long_weighs_ten_times_as_much(frames) -> None:
    record, samples, trials, slices = frames
    long = (pl.col("platform") == "docker") & (pl.col("round") == 0) & (pl.col("workload") == "prime-slices")
    stretched = slices.with_columns(pl.when(long).then(pl.col("wall_ns") * 10).otherwise("wall_ns").alias("wall_ns"))
    slow = samples.with_columns(pl.when(long).then(pl.col("value") / 10).otherwise("value").alias("value"))
    # 19 rounds at full speed and one of ten times the time in which one tenth of the rate was done.
    totals = entry(analyse(record, slow, trials, slices=stretched), "rate").totals
    assert totals is not None
    assert totals.point == pytest.approx(1 - (19 + 1) / (19 + 10), abs=0.005)
    unweighted = entry(analyse(record, slow, trials), "rate").totals
    assert unweighted is not None
    assert unweighted.point == pytest.approx(1 - 19.1 / 20, abs=0.005)
    assert weighted(samples, slices).filter(pl.col("workload") == "iperf3-tcp")["weight"].null_count() > 0


# --- stalls ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rounds", "share", "lost"), [(8, 0.05, 0.025), (20, 0.1, 0.05), (20, 0.2, 0.1)])
def test_a_platform_that_stalls_is_not_equivalent(rounds: int, share: float, lost: float) -> None:
    rng = np.random.default_rng(rounds)
    grids = [stalling(rng, share, [2], rounds=rounds) for _ in range(40)]
    kinds = [verdict(RATE, grid) for grid in grids]
    assert not {VerdictKind.EQUIVALENT, VerdictKind.TYPICAL, VerdictKind.FASTER} & set(kinds)
    means = [total_ratios(grid, 2, [0, 1]).logs.mean() for grid in grids]
    assert -math.expm1(float(np.mean(means))) == pytest.approx(lost, abs=0.005)


def test_stalls_are_told_with_their_share_speed_and_loss() -> None:
    rng = np.random.default_rng(3)
    grid = stalling(rng, 0.1, [2])
    finding = stalls(grid, 2, [0, 1], RATE, evidence(grid, 2, [0, 1], Design.BLOCKS))
    assert finding is not None
    assert finding.kind is FindingKind.STALLS
    numbers = finding.numbers
    assert (numbers["share"], numbers["speed"], numbers["lost"]) == pytest.approx((0.1, 0.5, 0.05), rel=0.3)
    assert numbers["baseline_share"] == numbers["baseline_lost"] == 0.0


def test_a_machine_that_stalls_for_all_is_no_stalling_platform() -> None:
    rng = np.random.default_rng(4)
    claims = 0
    for _ in range(60):
        grid = stalling(rng, 0.1, [0, 1, 2])
        claims += stalls(grid, 2, [0, 1], RATE, evidence(grid, 2, [0, 1], Design.BLOCKS)) is not None
    assert claims <= 3


def test_a_report_tells_stalls_and_its_mean_and_sd_show_them(frames) -> None:
    record, samples, trials, slices = frames
    mine = (pl.col("platform") == "docker") & (pl.col("workload") == "prime-slices") & (pl.col("metric") == "rate")
    # Two rounds of 20, in two of three blocks.
    here = mine & pl.col("round").is_in([4, 9]) & (pl.col("block") % 3 != 0)
    slow = samples.with_columns(pl.when(here).then(pl.col("value") / 2).otherwise("value").alias("value"))
    usual, stalled = (entry(analyse(record, frame, trials, slices=slices), "rate") for frame in (samples, slow))
    assert usual.verdict.kind is VerdictKind.EQUIVALENT
    assert usual.totals is not None
    assert stalled.totals is not None
    assert stalled.totals.point - usual.totals.point == pytest.approx(0.05 * 2 / 3, abs=0.003)
    assert stalled.verdict.kind is VerdictKind.SLOWER
    assert stalled.verdict.reason is Reason.WHOLE_BLOCKS
    assert [finding.kind for finding in stalled.findings] == [FindingKind.STALLS, FindingKind.UNSEEN]
    assert FindingKind.STALLS in {note.kind for note in stalled.notes}
    assert stalled.described.mean is not None
    assert usual.described.mean is not None
    assert stalled.described.mean / usual.described.mean == pytest.approx(1 - 0.05 * 2 / 3, abs=0.003)


def test_tails_are_beside_where_five_rounds_lie_beyond_them() -> None:
    rng = np.random.default_rng(5)
    grid = stalling(rng, 0.03, [2], blocks=30)
    tail_ratios = tails(grid, 2, [0, 1], Direction.HIGHER)
    assert tail_ratios is not None
    assert tail_ratios.p95 == pytest.approx(0.0, abs=0.01)
    assert tail_ratios.p99 == pytest.approx(0.5, abs=0.02)
    few = tails(stalling(rng, 0.03, [2], blocks=6), 2, [0, 1], Direction.HIGHER)
    assert few is not None
    assert few.p95 is not None
    assert few.p99 is None
    assert tails(stalling(rng, 0.0, [2], rounds=1), 2, [0, 1], Direction.HIGHER) is None


# --- rare modes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("draws", "share"), [(10, 1 - 0.05**0.1), (100, 0.0295), (300, 0.00994)])
def test_what_nobody_saw_is_at_most_by_the_rule_of_three(draws: int, share: float) -> None:
    assert highest_share(0, draws) == pytest.approx(share, rel=0.01)
    assert hidden(draws, draws, Trials()).possible == pytest.approx(-math.log(1 - share / 2), rel=0.01)


@pytest.mark.simulation
@pytest.mark.parametrize(("blocks", "share"), [(3, 0.15), (6, 0.15), (10, 0.15), (30, 0.15), (30, 0.10)])
def test_a_mode_that_breaks_the_margin_is_rarely_called_equivalent(blocks: int, share: float) -> None:
    rng = np.random.default_rng(blocks)
    claims = 0
    for _ in range(200):
        logs = rng.normal(0, 0.01, (3, blocks, 1))
        logs[2] += np.where(rng.random((blocks, 1)) < share, math.log(0.5), 0.0)
        claims += verdict(RUN, grid_of(np.exp(logs))) is VerdictKind.EQUIVALENT
    assert claims / 200 <= 0.05


@pytest.mark.parametrize(("blocks", "kind"), [(10, VerdictKind.TYPICAL), (40, VerdictKind.EQUIVALENT)])
def test_an_equal_platform_is_typical_at_first_and_equivalent_with_enough_blocks(
    blocks: int, kind: VerdictKind
) -> None:
    rng = np.random.default_rng(blocks)
    kinds = [verdict(RUN, grid_of(np.exp(rng.normal(0, 0.01, (3, blocks, 1))))) for _ in range(50)]
    assert kinds.count(kind) >= 45


def test_rounds_of_slices_are_draws(frames) -> None:
    row = entry(analyse(*frames[:3]), "rate")
    assert row.verdict.kind is VerdictKind.EQUIVALENT
    assert row.verdict.basis is not None
    unseen_by_verdict = row.verdict.basis.unseen
    assert (unseen_by_verdict.draws, unseen_by_verdict.blocks) == (240, 12)
    assert unseen_by_verdict.share == pytest.approx(0.0124, abs=1e-4)
    [unseen] = [finding for finding in row.findings if finding.kind is FindingKind.UNSEEN]
    assert unseen.numbers["draws"] == 240
    assert unseen.numbers["blocks_share"] == pytest.approx(1 - 0.05 ** (1 / 12))


# --- failures --------------------------------------------------------------------------------------------------------


def test_failed_trials_take_the_verdict_when_they_are_more_than_a_tenth() -> None:
    rng = np.random.default_rng(12)
    grid = grid_of(np.exp(rng.normal(0, 0.005, (3, 12, 1))))
    assert verdict(RUN, grid, Trials(0, 12, 0, 24)) is VerdictKind.TYPICAL
    assert verdict(RUN, grid, Trials(5, 17, 0, 24)) is VerdictKind.INCONCLUSIVE
    assert verdict(RUN, grid, Trials(0, 12, 4, 24)) is VerdictKind.INCONCLUSIVE
    far = grid_of(np.exp(rng.normal(0, 0.005, (3, 12, 1)) + np.log([[[1.0]], [[1.0]], [[0.5]]])))
    assert verdict(RUN, far, Trials(1, 13, 0, 24)) is VerdictKind.SLOWER
    assert verdict(RUN, far, Trials(5, 17, 0, 24)) is VerdictKind.INCONCLUSIVE


def test_failed_trials_count_as_slow_where_that_would_leave_the_margin() -> None:
    rng = np.random.default_rng(13)
    logs = rng.normal(0, 0.005, (3, 20, 1))
    logs[2] -= 0.02
    grid = grid_of(np.exp(logs))
    assert verdict(RUN, grid, Trials(0, 20)) is VerdictKind.TYPICAL
    assert verdict(RUN, grid, Trials(2, 22)) is VerdictKind.INCONCLUSIVE  # 2 % and 4.5 % of the speed
    fast = grid_of(np.exp(-logs * 3.5))
    assert verdict(RUN, fast, Trials(0, 20)) is VerdictKind.FASTER
    assert verdict(RUN, fast, Trials(2, 22)) is VerdictKind.INCONCLUSIVE
    assert loss(2 / 22) == pytest.approx(-math.log(1 - 1 / 22))


# --- steps -----------------------------------------------------------------------------------------------------------


def test_equal_blocks_make_no_verdict_until_there_are_eight() -> None:
    slower = Question("time", Direction.LOWER, 0.05)

    def constant(blocks: int, resolution: float | None = None) -> Grid:
        return grid_of(np.repeat([41.0, 41.0, 250.0], blocks).reshape(3, blocks, 1), resolution=resolution)

    assert [verdict(slower, constant(blocks)) for blocks in (2, 7, 8)] == [
        VerdictKind.INCONCLUSIVE,
        VerdictKind.INCONCLUSIVE,
        VerdictKind.SLOWER,
    ]
    looks = evidence(constant(4, resolution=8.0), 2, [0, 1]).looks
    assert looks is not None
    assert looks.typical.interval(0.95).half_width == pytest.approx(math.log1p(4 / 41) + math.log1p(4 / 250))
    assert verdict(slower, constant(4, resolution=8.0)) is VerdictKind.SLOWER


@pytest.mark.simulation
@pytest.mark.parametrize("blocks", [2, 3, 6])
def test_quantised_noise_gives_hardly_a_false_verdict(blocks: int) -> None:
    rng = np.random.default_rng(blocks)
    question = Question("time", Direction.LOWER, 0.05)
    false = 0
    for _ in range(600):
        grid = grid_of(np.round(20.3 + rng.normal(0, 0.4, (3, blocks, 1))))
        false += verdict(question, grid) in {VerdictKind.SLOWER, VerdictKind.FASTER}
    assert false / 600 <= 0.01


def test_the_step_is_the_metrics_own_or_the_least_difference_within_an_arm() -> None:
    values = np.array([[16.0, 24.0], [16.0, 16.0], [80.0, 80.0]]).reshape(3, 2, 1)
    assert grid_of(values).step == 8.0
    assert grid_of(values, resolution=4.0).step == 4.0
    assert grid_of(np.repeat([16.0, 16.0, 80.0], 2).reshape(3, 2, 1)).step is None
