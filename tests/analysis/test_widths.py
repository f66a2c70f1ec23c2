"""How well workloads are known, how wide is narrow enough, and how many blocks that takes."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

import fake_campaign
from tare.analysis import analyse
from tare.campaign.plan.interim import Interim
from tare.estimates.intervals import Interval
from tare.estimates.running import RunningEstimates, Watched
from tare.estimates.widths import CLEAR, LOOSEST, MAX_BLOCKS, WidthRow, WorkloadWidths, blocks_needed
from tare.model import Direction, Mode
from tare.store import read_store, workload_seconds


def ratio_of(over, direction):
    """The ratio that an overhead is of."""
    if direction is Direction.LOWER:
        return Interval(1 + over.point, 1 + over.low, 1 + over.high)
    return Interval(1 - over.point, 1 - over.high, 1 - over.low)


def estimates_of(store):
    """Those of all blocks of a file."""
    estimates = Interim(store).estimates
    for block in store.samples()["block"].unique():
        estimates.close(block)
    return estimates


@pytest.fixture
def campaign(tmp_path):
    shape = replace(fake_campaign.Shape(), failing=None, unsupported=None)
    with read_store(fake_campaign.write(tmp_path / "x.tare", shape)) as store:
        yield store


def test_rows_are_headline_and_cost_of_every_platform_with_the_reports_own_intervals(campaign):
    by_workload = estimates_of(campaign).known()
    results = analyse(campaign.record, campaign.samples(), campaign.trials())
    for workload in campaign.record.workloads:
        headline = workload.metrics[0].name
        shown = [
            (result.direction, platform)
            for result in results
            if result.workload == workload.name and result.metric in {headline, "cpu-cost"}
            for platform in result.platforms
            if platform.ratio is not None
        ]
        looks = [(platform.ratio, platform.n_blocks) for _, platform in shown]
        looks += [
            (ratio_of(platform.totals, direction), platform.n_blocks)
            for direction, platform in shown
            if workload.mode is Mode.SLICES
        ]
        expected = [
            (math.log(interval.point), math.log(interval.high / interval.low) / 2, n_blocks)
            for interval, n_blocks in looks
        ]
        rows = [(row.point, row.half_width, row.n_blocks) for row in by_workload[workload.name].rows]
        assert np.array(sorted(rows)) == pytest.approx(np.array(sorted(expected)))


@pytest.mark.parametrize("what", ["nothing", "one block", "zeros", "a late zero"])
def test_what_has_no_interval_has_no_row_and_wants_nothing(campaign, what):
    samples = campaign.samples()
    last = samples["block"].max()
    value = pl.when((pl.col("block") == last) | (what == "zeros")).then(0.0).otherwise(pl.col("value"))
    frames = {"nothing": [], "one block": [samples.filter(pl.col("block") == 0)]}
    zeros = samples.with_columns(value.alias("value"))
    record = campaign.record
    watched = {(workload.name, workload.metrics[0].name): Watched(harmonic=False) for workload in record.workloads}
    estimates = RunningEstimates(record.all_arms(), record.baseline, record.design, watched)
    for frame in frames.get(what, [zeros.filter(pl.col("block") < last), zeros.filter(pl.col("block") == last)]):
        estimates.read(frame.with_columns(weight=None))
        for block in frame["block"].unique():
            estimates.close(block)
        estimates.figures()
    by_workload = estimates.known()
    assert set(by_workload.values()) == {WorkloadWidths()}
    assert {estimate.missing(0.005, 0.01) for estimate in by_workload.values()} == {0}


@pytest.mark.parametrize("blocks", [3, 6])
def test_what_the_baseline_cannot_run_wants_six_blocks(campaign, blocks):
    """A look failed: the baseline has no snapshots."""
    record, workload = campaign.record, campaign.record.workloads[-1]
    samples = campaign.samples().filter(
        (pl.col("block") < blocks) & (pl.col("workload") == workload.name) & (pl.col("platform") != record.baseline)
    )
    watched = {(workload.name, workload.metrics[0].name): Watched(harmonic=False)}
    estimates = RunningEstimates(record.all_arms(), record.baseline, record.design, watched)
    estimates.read(samples.with_columns(weight=None))
    for block in range(blocks):
        estimates.close(block)
    known = estimates.known()[workload.name]
    assert (known.rows, known.missing_for_answers()) == ((), 6 - blocks)
    assert known.missing(0.005, 0.01) == 6 - blocks


def test_a_width_is_that_of_the_log_ratio_whatever_the_ratio():
    """The overhead's own half-width is 66 times that; it took all of a long campaign for start-up."""
    goal = math.log1p(0.025)
    near = WidthRow(0.0, 1.5 * goal, 10)
    assert near.missing(0.025, 0.05) > 0
    assert WidthRow(math.log(66), 1.5 * goal, 10).missing(0.025, 0.05) == 0


def test_far_from_the_margin_a_quarter_of_the_way_is_narrow_enough_up_to_a_tenth():
    margin = math.log1p(0.01)
    assert WidthRow(0.003, 1, 10).goal(0.005, 0.01) == math.log1p(0.005)
    assert WidthRow(-0.1, 1, 10).goal(0.005, 0.01) == pytest.approx((0.1 - margin) / CLEAR)
    assert WidthRow(math.log(66), 1, 10).goal(0.005, 0.01) == LOOSEST
    assert WidthRow(math.log(66), 1, 10).goal(0.002, 0.01) == math.log1p(0.002), (
        "a precision that was asked for is kept"
    )


def test_a_workload_lacks_what_its_widest_row_lacks():
    rows = WidthRow(0.0, 0.004, 10), WidthRow(0.0, 0.02, 10)
    assert WorkloadWidths(rows).missing(0.005, 0.01) == rows[1].missing(0.005, 0.01) > 0
    assert rows[0].missing(0.005, 0.01) == 0


def test_blocks_needed_are_the_least_at_which_students_interval_is_narrow_enough():
    n_blocks, deviation = 400, 0.02
    half_width = float(stats.t.ppf(0.975, n_blocks - 1)) * deviation / math.sqrt(n_blocks)
    for target in (0.0005, 0.0019):
        needed = blocks_needed(half_width, n_blocks, target)
        widths = [float(stats.t.ppf(0.975, n - 1)) * deviation / math.sqrt(n) for n in (needed - 1, needed)]
        assert widths[0] > target * 0.998  # the median of s is a trifle below s
        assert widths[1] <= target * 1.002
    assert blocks_needed(0.01, 10, 0.01) == 10
    assert blocks_needed(1e9, 10, 1e-9) == MAX_BLOCKS


@pytest.mark.thorough
@pytest.mark.parametrize("n_blocks", [2, 3, 5, 6, 10])
def test_from_few_blocks_the_median_answer_is_near_what_it_takes(n_blocks):
    """It took 18, and 299, 51, 26, 23, 20 were said."""
    rng = np.random.default_rng(5)
    deviations = rng.normal(0, 0.01, (2_000, n_blocks)).std(axis=1, ddof=1)
    half_widths = stats.t.ppf(0.975, n_blocks - 1) * deviations / math.sqrt(n_blocks)
    answers = [blocks_needed(half_width, n_blocks, 0.005) for half_width in half_widths.tolist()]
    assert 16 <= np.median(answers) <= 20


def test_what_could_not_be_told_says_what_it_would_take(tmp_path):
    shape = replace(fake_campaign.Shape(), blocks=4, block_noise=0.03, failing=None, unsupported=None)
    with read_store(fake_campaign.write(tmp_path / "x.tare", shape)) as store:
        results = analyse(store.record, store.samples(), store.trials())
        by_workload = workload_seconds(store.trials())
        seconds = by_workload["sysbench-cpu"] + by_workload["startup"]
    open_ones = {
        (result.workload, platform.platform): platform
        for result in results
        if result.metric == "rate"
        for platform in result.platforms
        if platform.verdict.kind == "inconclusive"
    }
    platform = open_ones["sysbench-cpu", "docker"]
    rows = [WidthRow.of(look) for look in platform.looks.all()]
    blocks = max(blocks_needed(row.half_width, 4, math.log1p(0.005), row.df) for row in rows)
    assert platform.verdict.enough is not None
    assert platform.verdict.enough.blocks == blocks
    assert platform.verdict.enough.seconds == pytest.approx(blocks * seconds)
