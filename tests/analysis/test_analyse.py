from __future__ import annotations

import math
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fake_campaign
from tare.analysis import MetricResult, PlatformResult, VerdictKind, analyse
from tare.analysis.quality.findings import Finding, FindingKind
from tare.analysis.verdicts import EQUAL, Reason
from tare.estimates.grid import Grid, block_ratios
from tare.model import Arm
from tare.store import CampaignRecord, read_store

SHAPE = fake_campaign.Shape()


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> tuple[CampaignRecord, pl.DataFrame, pl.DataFrame]:
    path = fake_campaign.write(tmp_path_factory.mktemp("store") / "a.tare", SHAPE)
    with read_store(path) as store:
        return store.record, store.samples(), store.trials()


def find(results: list[MetricResult], workload: str, metric: str) -> MetricResult:
    (match,) = (result for result in results if (result.workload, result.metric) == (workload, metric))
    return match


def platform(result: MetricResult, name: str) -> PlatformResult:
    (match,) = (entry for entry in result.platforms if entry.platform == name)
    return match


def of_workload(
    record: CampaignRecord, samples: pl.DataFrame, trials: pl.DataFrame, workload: str = "prime-slices"
) -> list[MetricResult]:
    """The results of one workload: those of the others are not looked at."""
    named = [workload_record for workload_record in record.workloads if workload_record.name == workload]
    return analyse(record.model_copy(update={"workloads": named}), samples, trials)


def rate_where(condition: pl.Expr, value: float | pl.Expr) -> pl.Expr:
    """Replace the value of the probe's rate under a condition."""
    here = (pl.col("workload") == "prime-slices") & (pl.col("metric") == "rate") & condition
    return pl.when(here).then(value).otherwise(pl.col("value")).alias("value")


NATIVE = (pl.col("platform") == "native") & (pl.col("replica") == 0)
NATIVE2 = (pl.col("platform") == "native") & (pl.col("replica") == 1)
DOCKER = pl.col("platform") == "docker"


@pytest.mark.thorough
def test_known_effects_are_recovered_with_their_verdicts(frames) -> None:
    results = analyse(*frames)
    assert [(result.workload, result.metric) for result in results] == [
        (workload.name, metric.name) for workload in frames[0].workloads for metric in workload.metrics
    ]
    rate = find(results, "prime-slices", "rate")
    kinds = {entry.platform: entry.verdict.kind for entry in rate.platforms}
    assert kinds == {
        "native": VerdictKind.BASELINE,
        "runc": VerdictKind.EQUIVALENT,
        "docker": VerdictKind.EQUIVALENT,
        "gvisor-systrap": VerdictKind.SLOWER,
        "gvisor-ptrace": VerdictKind.SLOWER,
    }
    for name, slowdown in fake_campaign.SLOWDOWN.items():
        if name != "native":
            ratio = platform(rate, name).ratio
            assert ratio is not None
            assert ratio.point == pytest.approx(1 / slowdown, abs=0.004)
            assert ratio.low < ratio.point < ratio.high
    assert rate.noise_floor is not None
    assert rate.noise_floor.interval is not None
    assert abs(rate.noise_floor.interval.point) < 0.005


def test_mean_sd_and_median_are_those_of_block_values(frames) -> None:
    _, samples, _ = frames
    entry = platform(find(of_workload(*frames), "prime-slices", "rate"), "docker")
    rows = samples.filter((pl.col("workload") == "prime-slices") & (pl.col("metric") == "rate") & DOCKER)
    blocks = [float(part["value"].to_numpy().mean()) for part in rows.partition_by("block")]  # rates of equal times
    assert entry.described.n == len(blocks) == SHAPE.blocks
    assert entry.described.mean == pytest.approx(np.mean(blocks))
    assert entry.described.sd == pytest.approx(np.std(blocks, ddof=1))
    assert entry.described.median == pytest.approx(np.median(blocks))


def test_failed_and_unsupported_trials_are_counted_and_said(frames) -> None:
    results = analyse(*frames)
    failing = platform(find(results, "iperf3-tcp", "throughput"), "gvisor-ptrace")
    assert (failing.counts.ok, failing.counts.failed, failing.n_blocks, failing.n_left_out) == (8, 4, 8, 4)
    assert Finding(FindingKind.BLOCKS_LEFT_OUT, {"missing": 4, "blocks": 12}) in failing.notes
    lacking = platform(find(results, "fileio-seqwr", "throughput"), "gvisor-ptrace")
    assert lacking.verdict.kind is VerdictKind.NO_DATA
    assert lacking.verdict.reason is Reason.UNSUPPORTED
    assert lacking.counts.unsupported == 12
    assert lacking.ratio is None


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_value_without_a_logarithm_refuses_its_cell_and_no_other(frames, bad: float) -> None:
    record, samples, trials = frames
    spoiled = samples.with_columns(rate_where(DOCKER & (pl.col("block") == 3) & (pl.col("round") == 1), bad))
    rate = find(of_workload(record, spoiled, trials), "prime-slices", "rate")
    docker = platform(rate, "docker")
    assert docker.verdict.kind is VerdictKind.NO_DATA
    assert (docker.verdict.reason, docker.verdict.numbers) == (Reason.UNFIT, {"unfit": 1, "samples": 240})
    assert docker.ratio is None
    assert docker.overhead is None
    assert platform(rate, "runc").verdict.kind is VerdictKind.EQUIVALENT


def test_a_baseline_value_without_a_logarithm_refuses_the_row(frames) -> None:
    record, samples, trials = frames
    spoiled = samples.with_columns(rate_where(NATIVE & (pl.col("block") == 3), 0.0))
    rate = find(of_workload(record, spoiled, trials), "prime-slices", "rate")
    assert {entry.verdict.kind for entry in rate.platforms[1:]} == {VerdictKind.NO_DATA}
    assert {entry.verdict.reason for entry in rate.platforms[1:]} == {Reason.UNFIT_BASELINE}


@pytest.mark.parametrize("blocks", [0, 1])
def test_never_a_figure_from_fewer_than_two_blocks(frames, blocks: int) -> None:
    record, samples, trials = frames
    few = samples.filter(~DOCKER | (pl.col("block") < blocks))
    docker = platform(find(of_workload(record, few, trials), "prime-slices", "rate"), "docker")
    assert (docker.n_blocks, docker.ratio, docker.overhead) == (blocks, None, None)
    assert docker.verdict.kind is (VerdictKind.INCONCLUSIVE if blocks else VerdictKind.NO_DATA)


def test_an_empty_campaign_gives_rows_without_figures(frames) -> None:
    record, samples, trials = frames
    results = analyse(record, samples.clear(), trials.clear())
    assert {entry.verdict.kind for result in results for entry in result.platforms} == {VerdictKind.NO_DATA}


def test_a_metric_that_a_platform_cannot_show_has_no_figure_and_says_why(frames) -> None:
    record, samples, trials = frames
    ping = samples.filter(~(DOCKER & (pl.col("metric") == "ping")))
    results = of_workload(record, ping, trials, "startup")
    verdict = platform(find(results, "startup", "ping"), "docker").verdict
    assert (verdict.reason, verdict.numbers) == (Reason.NOT_SHOWN, {"ok": 12})
    # Twelve starts do not exclude rare slow ones.
    assert platform(find(results, "startup", "first-byte"), "docker").verdict.kind is VerdictKind.TYPICAL


def test_a_block_without_one_baseline_arm_uses_the_other_and_says_so(frames) -> None:
    record, samples, trials = frames
    fewer = samples.filter(~(NATIVE2 & (pl.col("block") < 3)))
    rate = find(of_workload(record, fewer, trials), "prime-slices", "rate")
    docker = platform(rate, "docker")
    assert docker.n_blocks == 12
    assert Finding(FindingKind.SINGLE_BASELINE, {"single": 3, "blocks": 12}) in docker.notes
    assert rate.noise_floor is not None
    assert rate.noise_floor.n_blocks == 9


def test_one_baseline_arm_in_the_whole_campaign_gives_no_aa_figure(frames) -> None:
    record, samples, trials = frames
    single = record.model_copy(update={"arms": [arm for arm in record.arms if arm != ("native", 1)]})
    rate = find(of_workload(single, samples.filter(~NATIVE2), trials), "prime-slices", "rate")
    assert rate.noise_floor is None
    assert platform(rate, "docker").verdict.kind is VerdictKind.EQUIVALENT
    assert Finding(FindingKind.ONE_BASELINE) in platform(rate, "docker").notes


def test_arms_that_differ_make_the_metric_invalid_and_still_show_what_was_seen(frames) -> None:
    record, samples, trials = frames
    tilted = samples.with_columns(rate_where(NATIVE2, pl.col("value") * 0.97))
    results = of_workload(record, tilted, trials)
    rate = find(results, "prime-slices", "rate")
    assert {entry.verdict.kind for entry in rate.platforms[1:]} == {VerdictKind.INVALID}
    assert {entry.verdict.reason for entry in rate.platforms[1:]} == {Reason.BASELINES_DIFFER}
    assert platform(rate, "docker").verdict.basis is not None
    assert platform(rate, "docker").overhead is not None
    assert platform(find(results, "prime-slices", "cpu-cost"), "docker").verdict.kind in EQUAL


def test_equality_below_the_noise_floor_is_not_claimed(frames) -> None:
    record, samples, trials = frames
    # The second native arm jumps by 3 % up and down from block to block: the mean of arms moves, and so does docker.
    jump = pl.when(pl.col("block") % 2 == 0).then(1.03).otherwise(1 / 1.03)
    loud = samples.with_columns(rate_where(NATIVE2, pl.col("value") * jump))
    loud = loud.with_columns(rate_where(DOCKER, pl.col("value") * jump.sqrt()))
    rate = find(of_workload(record, loud, trials), "prime-slices", "rate")
    assert rate.noise_floor is not None
    assert rate.noise_floor.interval is not None
    assert rate.noise_floor.interval.half_width > rate.margin
    docker = platform(rate, "docker")
    assert docker.verdict.kind is VerdictKind.INCONCLUSIVE
    assert docker.verdict.reason is Reason.WIDE_FLOOR
    assert docker.verdict.numbers == {"half_width": rate.noise_floor.interval.half_width}


def _drifting(frames, a_block):
    """Docker's rate, or that of the second native arm, going up by so much a block, where the rest is well."""
    record, samples, trials = frames
    return record, samples.with_columns(rate_where(DOCKER, pl.col("value") * (1 + a_block * pl.col("block")))), trials


def test_a_drift_beyond_half_of_the_margin_is_no_figure_to_trust(frames) -> None:
    docker = platform(find(of_workload(*_drifting(frames, 0.002)), "prime-slices", "rate"), "docker")
    assert docker.verdict.kind is VerdictKind.INVALID
    assert docker.verdict.reason is Reason.DRIFT
    assert docker.verdict.numbers["correlation"] > 0.9
    assert docker.verdict.numbers["size"] == pytest.approx(math.log1p(0.002 * 11), rel=0.2)
    assert docker.verdict.basis is not None
    assert docker.overhead is not None, "what was seen is still told"


def test_a_drift_within_half_of_the_margin_is_noted(frames) -> None:
    record, samples, trials = frames
    steady = samples.with_columns(
        value=pl.when(pl.col("workload") == "prime-slices").then(1000.0 + 0.01 * pl.col("round")).otherwise("value")
    )
    docker = platform(find(of_workload(*_drifting((record, steady, trials), 0.0003)), "prime-slices", "rate"), "docker")
    assert docker.verdict.kind is VerdictKind.EQUIVALENT
    assert FindingKind.DRIFT in {note.kind for note in docker.notes}


def test_baseline_arms_that_drift_apart_shut_the_gate_for_all(frames) -> None:
    record, samples, trials = frames
    second = (pl.col("platform").cast(pl.String) == "native") & (pl.col("replica") == 1)
    apart = samples.with_columns(rate_where(second, pl.col("value") * (1 + 0.004 * (pl.col("block") - 5.5))))
    rate = find(of_workload(record, apart, trials), "prime-slices", "rate")
    for entry in rate.platforms[1:]:
        assert entry.verdict.kind is VerdictKind.INVALID
        assert entry.verdict.reason in {Reason.BASELINES_DIFFER, Reason.BASELINES_DRIFT}


def test_contaminated_trials_are_counted_and_kept(frames) -> None:
    results = analyse(*frames)
    contaminated = {
        (result.workload, entry.platform): entry.counts.contaminated
        for result in results
        for entry in result.platforms
        if entry.counts.contaminated
    }
    trials = frames[2].filter((pl.col("steal") > 0.02) & (pl.col("status") == "ok"))
    assert sum(contaminated.values()) == trials.height > 0


def test_cost_that_disagrees_with_the_headline_is_flagged(tmp_path: Path) -> None:
    path = fake_campaign.write(tmp_path / "a.tare", replace(SHAPE, workloads=("prime-slices",)))
    with read_store(path) as store:
        dear = pl.when(DOCKER & (pl.col("metric") == "cpu-cost")).then(pl.col("value") * 1.2).otherwise(pl.col("value"))
        results = analyse(store.record, store.samples().with_columns(dear.alias("value")), store.trials())
    cost = platform(find(results, "prime-slices", "cpu-cost"), "docker")
    assert cost.verdict.kind is VerdictKind.SLOWER
    assert Finding(FindingKind.HEADLINE_DIFFERS, verdict=VerdictKind.EQUIVALENT, metric="rate") in cost.notes


def test_block_ratio_is_hodges_lehmann_of_what_is_paired() -> None:
    arms = [Arm("native"), Arm("native", 1), Arm("docker")]
    rows = [("native", 0, 0, 2.0), ("native", 0, 1, 4.0), ("native", 1, 0, 8.0), ("docker", 0, 0, 8.0)]
    rows += [("docker", 0, 1, 12.0), ("docker", 0, 2, 99.0)]
    samples = pl.DataFrame(
        [(0, name, replica, index, value) for name, replica, index, value in rows],
        schema={"block": pl.Int32, "platform": pl.String, "replica": pl.Int8, "round": pl.Int32, "value": pl.Float64},
        orient="row",
    )
    ratios = block_ratios(Grid.of(samples, arms), 2, [0, 1])
    # against the first arm: 8 to 2 and 12 to 4; against the second: 8 to 8; round 2 has no baseline
    assert ratios.logs == pytest.approx([((math.log(4) + math.log(3)) / 2 + math.log(1)) / 2])
    assert ratios.single_baseline == 0


def test_blocks_that_are_worlds_apart_have_no_smallest_difference() -> None:
    detectable = import_module("tare.analysis.analyse")._detectable
    assert detectable(50.0, 1.0) is None  # two blocks of a busy host: `math.expm1` overflows
    assert detectable(0.0, 5.0) is None
    assert detectable(0.01, 10.0) == pytest.approx(math.expm1(0.01 * (2.2281 + 1.3722)), rel=1e-3)  # t at 97.5 and 90 %
