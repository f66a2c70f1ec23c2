"""What a calibration says of data whose truth is known."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

import fake_campaign
from refused import refused
from tare.analysis.calibration import Rate, injected, longer_trust, trust

METRIC = "rate"


def _campaign(arms, ratios, *, blocks, rounds=4, noise=0.004, block_noise=0.003, seed=1):
    """The record and samples of ``arms``; ``ratios``: the true ratio of each one's rate to the first's."""
    rng = np.random.default_rng(seed)
    shape = fake_campaign.Shape(workloads=("prime-slices",))
    record = fake_campaign.record(shape).model_copy(update={"arms": arms})
    common = rng.normal(0, 0.1, (blocks, 1, 1)) + rng.normal(0, 0.05, (blocks, 1, rounds))
    of_arms = rng.normal(0, block_noise, (blocks, len(arms), 1)) + rng.normal(0, noise, (blocks, len(arms), rounds))
    values = 1000 * np.exp(common + of_arms + np.log(ratios)[None, :, None])
    at = [axis.ravel() for axis in np.indices(values.shape)]
    [workload] = record.workloads
    frame = pl.DataFrame(
        {
            "block": at[0],
            "workload": workload.name,
            "platform": [arms[arm][0] for arm in at[1]],
            "replica": np.array([arms[arm][1] for arm in at[1]], dtype=np.int8),
            "metric": METRIC,
            "round": at[2],
            "value": values.ravel(),
        }
    )
    only = workload.model_copy(update={"metrics": workload.metrics[:1]})
    return record.model_copy(update={"workloads": [only]}), frame


def _same(comparisons, **how):
    arms = [("native", number) for number in range(9)]
    return _campaign(arms, how.pop("ratios", np.ones(9)), blocks=comparisons // 3 * 10, **how)


@pytest.mark.simulation
def test_an_honest_instrument_is_trusted():
    [trusted] = trust(*_same(600), block_s=9.0, blocks_each=10)
    assert trusted.covered.of == trusted.false_alarms.of == 600
    assert 0.93 <= trusted.covered.share <= 0.97
    assert trusted.false_alarms.count == 0
    assert trusted.bias.low < 0 < trusted.bias.high
    assert trusted.bias.half_width < 0.001
    assert trusted.seconds == pytest.approx(3.0)  # three arms of nine


@pytest.mark.simulation
def test_blocks_that_are_independent_or_drift_slowly_are_told_apart():
    [trusted] = trust(*_same(600), block_s=9.0, blocks_each=10)
    assert trusted.dependence.n_series == 3
    assert trusted.dependence.n_blocks == 2000
    low, high = trusted.dependence.interval
    assert low < 0 < high
    assert high - low < 0.06
    record, samples = _same(60)
    wave = 1 + 0.02 * (pl.col("replica") % 3 == 0) * (pl.col("block") * 2 * math.pi / 40).sin()
    [waving] = trust(record, samples.with_columns(value=pl.col("value") * wave), block_s=9.0, blocks_each=10)
    assert waving.dependence.correlation > 0.5
    assert waving.dependence.p <= 0.01


def test_the_same_blocks_make_longer_comparisons_where_there_are_enough():
    longer = longer_trust(*_same(120), block_s=9.0, lengths_s=(3.0, 300.0, 3000.0))  # three arms take 3 s
    assert [seconds for seconds, _ in longer] == [300.0]
    [(_, trusted)] = longer
    assert trusted.equivalent.of == 12  # of 400 blocks, 100 each, three at once
    assert trusted.half_width < 0.005
    assert trusted.equivalent.count == 12


def test_intervals_are_as_wide_as_the_stated_steps_make_them():
    record, samples = _same(12)
    [workload] = record.workloads
    stepped = workload.model_copy(
        update={"metrics": [workload.metrics[0].model_copy(update={"resolution": 50.0})]}  # of some 1000
    )
    [exact] = trust(record, samples, block_s=9.0, blocks_each=10)
    [coarse] = trust(record.model_copy(update={"workloads": [stepped]}), samples, block_s=9.0, blocks_each=10)
    assert exact.half_width < 0.01
    assert coarse.half_width > 0.04  # half a step of either side


def test_an_arm_that_is_slower_is_seen_in_bias_coverage_and_alarms():
    ratios = np.where(np.arange(9) % 3 == 0, 0.97, 1.0)  # what stands for the platform
    [trusted] = trust(*_same(60, ratios=ratios), block_s=9.0, blocks_each=10)
    assert trusted.bias.point == pytest.approx(0.03, abs=0.001)
    assert trusted.covered.count < 5
    assert trusted.false_alarms.count > 50


def test_baseline_arms_that_differ_shut_the_gate():
    ratios = np.where(np.arange(9) % 3 == 1, 0.95, 1.0)
    [trusted] = trust(*_same(60, ratios=ratios), block_s=9.0, blocks_each=10)
    assert trusted.invalid == 60
    assert trusted.false_alarms.count == 0


@pytest.mark.simulation
def test_what_a_time_resolves_goes_with_the_root_of_its_blocks():
    [trusted] = trust(*_same(300, noise=0.0, block_noise=0.004), block_s=9.0, blocks_each=10)
    assert trusted.block_sd == pytest.approx(0.004 * math.sqrt(1.5), rel=0.05)
    blocks = 100
    width = stats.t.ppf(0.975, blocks - 1) * trusted.block_sd / 10
    assert trusted.half_width_after(300.0) == pytest.approx(width)
    assert trusted.smallest_effect(300.0) > trusted.half_width_after(300.0)
    assert math.isnan(trusted.half_width_after(5.9))


def test_added_work_is_found_and_what_is_found_is_the_share():
    shares = [0.005, 0.01, 0.02, 0.05]
    names = [f"docker+{share}" for share in shares]
    arms = [("native", 0), ("native", 1), ("docker", 0), *((name, 0) for name in names)]
    ratios = np.array([1.0, 1.0, 0.9, *(0.9 / (1 + share) for share in shares)])
    record, samples = _campaign(arms, ratios, blocks=30)
    additions = injected(record, samples, [("docker", name, share) for name, share in zip(names, shares, strict=True)])
    assert [addition.share for addition in additions] == shares
    for addition in additions:
        assert abs(addition.miss) < 0.002
        assert addition.measured.low < addition.share < addition.measured.high
        assert addition.is_found
    none = injected(record, samples, [("native", "docker", 0.0)])
    assert none[0].measured.point == pytest.approx(1 / 0.9 - 1, abs=0.003)


def test_samples_that_lack_or_are_none_make_no_comparison():
    record, samples = _same(30)
    holes = samples.filter(~((pl.col("replica") == 4) & (pl.col("block") >= 0)))
    [trusted] = trust(record, holes, block_s=9.0, blocks_each=10)
    assert trusted.covered.of == 30, "one baseline arm is enough"
    zero = samples.with_columns(value=pl.when(pl.col("replica") == 0).then(0.0).otherwise(pl.col("value")))
    with_zero = trust(record, zero, block_s=9.0, blocks_each=10)[0]
    assert with_zero.covered.of == 20
    with refused("no comparison is whole"):
        trust(record, samples.with_columns(value=pl.lit(float("nan"))), block_s=9.0, blocks_each=10)


def test_a_rates_interval_is_exact():
    """0 of 200: the rule of three, made exact: 1 - 0.025^(1/200)."""
    rate = Rate.of_counts(0, 200)
    assert rate.low == 0
    assert rate.high == pytest.approx(1 - 0.025 ** (1 / 200))
    assert replace(rate, count=50).share == 0.25
