"""Designs other than blocks: two samples side by side, and duets."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

import fake_campaign
from tare.analysis import analyse
from tare.analysis.quality.findings import FindingKind
from tare.estimates.intervals import welch_interval
from tare.model import Design
from tare.store import read_store


def _campaign(tmp_path, design, **how):
    shape = replace(fake_campaign.Shape(), failing=None, unsupported=None, workloads=("sysbench-cpu",), **how)
    with read_store(fake_campaign.write(tmp_path / "x.tare", shape)) as store:
        return store.record.model_copy(update={"design": design}), store.samples(), store.trials()


def _logs(samples, platform, replica=0):
    chosen = (pl.col("platform").cast(pl.String) == platform) & (pl.col("replica") == replica)
    return np.log(samples.filter(chosen & (pl.col("metric") == "rate"))["value"].to_numpy())


def test_one_after_the_other_is_welchs_interval_against_the_first_baseline_arm(tmp_path):
    record, samples, trials = _campaign(tmp_path, Design.SEQUENTIAL)
    [rate, _] = analyse(record, samples, trials)
    for platform in rate.platforms[1:]:
        test = stats.ttest_ind(_logs(samples, platform.platform), _logs(samples, "native"), equal_var=False)
        low, high = np.exp(test.confidence_interval(0.95))
        assert (platform.ratio.low, platform.ratio.high) == pytest.approx((low, high))
        assert FindingKind.AFTER_EACH_OTHER in {note.kind for note in platform.notes}
        assert platform.bootstrap is None
    aa = stats.ttest_ind(_logs(samples, "native", 1), _logs(samples, "native"), equal_var=False)
    low, high = np.exp(aa.confidence_interval(0.95))
    assert (rate.noise_floor.interval.low, rate.noise_floor.interval.high) == pytest.approx((1 - high, 1 - low))


def test_side_by_side_what_hits_a_block_is_not_taken_out(tmp_path):
    """The invented blocks have noise in common: paired it goes, side by side it stays."""
    half_widths = {}
    for design in (Design.BLOCKS, Design.SEQUENTIAL):
        (tmp_path / design).mkdir()
        [rate, _] = analyse(*_campaign(tmp_path / design, design))
        half_widths[design] = rate.platforms[1].overhead.half_width
    assert half_widths[Design.SEQUENTIAL] > 3 * half_widths[Design.BLOCKS]


def test_a_duet_compares_with_the_partner_alone_and_says_nothing_of_a_missing_arm(tmp_path):
    record, samples, trials = _campaign(tmp_path, Design.DUET)
    [rate, _] = analyse(record, samples, trials)
    for platform in rate.platforms[1:]:
        logs = _logs(samples, platform.platform) - _logs(samples, "native")
        assert np.log(platform.ratio.point) == pytest.approx(logs.mean())
        kinds = {note.kind for note in platform.notes}
        assert not kinds & {FindingKind.ONE_BASELINE, FindingKind.SINGLE_BASELINE}


def test_welch_of_constants_and_of_too_few():
    same = np.array([1.0, 1.0, 1.0])
    assert welch_interval(same, same * 2, 0.95).half_width == 0
    with pytest.raises(ValueError, match="two values on either side"):
        welch_interval(same, same[:1], 0.95)
