"""Where a figure changed over many campaigns: found on its day with what else changed there; else silent."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import fake_campaign
from refused import refused
from tare.analysis.comparisons.sides import MetricSide
from tare.analysis.comparisons.summaries import Summary, Why
from tare.analysis.comparisons.thresholds import Threshold, Thresholds
from tare.analysis.quality.change_points import change_points
from tare.features.diff.analysis import Fact, FigureOutcome
from tare.features.history.analysis import MIN_CAMPAIGNS, History, _smallest_step, history
from tare.store import CampaignRecord

SHAPE = fake_campaign.Shape(slowdown={"native": 1.0, "runc": 1.0, "gvisor": 1.2}, workloads=("prime-slices",))
DAY = 86_400.0


def campaigns(
    factors: Sequence[float], *, seed: int = 1, noise: float = 0.004, kernels: Sequence[str] = ()
) -> list[Summary]:
    """A campaign a day, whose gvisor takes so many times its usual time; the rate goes down, the cost up."""
    rng = np.random.default_rng(seed)
    record = fake_campaign.record(SHAPE)
    summaries = []
    for day, factor in enumerate(factors):
        host = record.host | ({"kernel": kernels[day]} if kernels else {})
        facts = {"id": str(uuid.uuid4()), "created": record.created + day * DAY, "host": host}
        day_record = record.model_copy(update=facts)
        sides = {}
        for platform, times in (("runc", 1.0), ("gvisor", 1.2 * factor)):
            for metric, sign in (("rate", -1), ("cpu-cost", 1)):
                logs = sign * np.log(times) + rng.normal(0, noise, 6)
                sides[platform, "prime-slices", metric] = MetricSide(logs, 100.0 * times, unfit=False)
        summaries.append(Summary(f"day-{day}.tare", day_record, sides))
    return summaries


def outcomes(trend: History) -> dict[tuple[str, str], FigureOutcome]:
    return {(series.platform, series.metric): series.outcome for series in trend.series}


def test_a_regression_of_three_per_cent_is_found_on_its_day_with_what_changed_there():
    kernels = ["6.1.0-1"] * 12 + ["6.1.0-2"] * 8
    trend = history(campaigns([1.0] * 12 + [1.03] * 8, kernels=kernels), Thresholds())
    assert trend.outcome is FigureOutcome.REGRESSION
    assert outcomes(trend) == {
        ("gvisor", "rate"): FigureOutcome.REGRESSION,
        ("gvisor", "cpu-cost"): FigureOutcome.REGRESSION,
        ("runc", "rate"): FigureOutcome.FINE,
        ("runc", "cpu-cost"): FigureOutcome.FINE,
    }
    for series in trend.series[:2]:
        [step] = series.steps
        assert step.campaign == 12
        assert step.facts == (Fact("kernel", "6.1.0-1", "6.1.0-2"),)
        assert step.change == pytest.approx(0.03, abs=0.005)
        assert 0 < step.p <= trend.alpha == 0.05 / 4
    rate, cost = (next(figure for figure in trend.series if figure.metric == name) for name in ("rate", "cpu-cost"))
    assert (cost.steps[0].before, cost.steps[0].after) == pytest.approx((0.2, 0.236), abs=0.005)
    assert (rate.steps[0].before, rate.steps[0].after) == pytest.approx((1 - 1 / 1.2, 1 - 1 / 1.236), abs=0.005)


def test_what_got_better_again_is_no_regression_and_neither_is_what_stays_below_the_threshold():
    better = history(campaigns([1.0] * 20 + [1.06] * 8 + [1.0] * 8), Thresholds())
    assert better.outcome is FigureOutcome.FINE
    assert [len(series.steps) for series in better.series if series.platform == "gvisor"] == [2, 2]
    small = history(campaigns([1.0] * 12 + [1.03] * 12), Thresholds(percent=5.0))
    assert small.outcome is FigureOutcome.FINE
    assert [len(series.steps) for series in small.series if series.platform == "gvisor"] == [1, 1]


def test_of_ten_histories_without_a_change_none_regresses_and_hardly_any_has_a_change():
    trends = [history(campaigns([1.0] * 20, seed=100 + seed), Thresholds()) for seed in range(10)]
    assert {trend.outcome for trend in trends} == {FigureOutcome.FINE}
    assert sum(any(series.steps for series in trend.series) for trend in trends) <= 2, "one in twenty is expected"


def test_too_few_campaigns_are_open_and_say_how_many_more():
    trend = history(campaigns([1.0] * (MIN_CAMPAIGNS - 3)), Thresholds())
    assert trend.outcome is FigureOutcome.OPEN
    assert {series.lacking for series in trend.series} == {3}


@pytest.mark.parametrize("noise", [0.1, 0.4])
def test_lack_of_power_is_not_called_not_worse(noise: float) -> None:
    """Twelve campaigns whose overhead ranged from 5 to 13 times had "no change", "not worse" and exit code 0."""
    trend = history(campaigns([1.0] * 12, noise=noise), Thresholds())
    assert trend.outcome is FigureOutcome.OPEN
    for series in trend.series:
        assert (series.outcome, series.lacking) == (FigureOutcome.OPEN, 0)
        assert series.detectable is not None
        assert series.detectable > series.threshold


@pytest.mark.simulation
@pytest.mark.parametrize("size", [10, 12, 20, 40])
def test_a_step_that_is_called_detectable_is_found_in_nine_of_ten(size: int) -> None:
    rng, noise, alpha, found = np.random.default_rng(size), 0.05, 0.0125, 0
    step = _smallest_step([rng.normal(0, noise, 4000)], alpha)  # the scatter, and nothing of chance
    step *= np.sqrt((1 / 5 + 1 / (size - 5)) / (1 / 5 + 1 / 3995))
    step *= stats.t.ppf([1 - alpha / 2, 0.9], size - 2).sum() / stats.norm.ppf([1 - alpha / 2, 0.9]).sum()
    for _ in range(60):
        values = rng.normal(0, noise, size)
        values[size - 5 :] += step
        found += bool(change_points(values, alpha=alpha, permutations=160))
    assert found >= 47


def test_a_campaign_counts_once_by_its_id() -> None:
    """Twelve copies of one file were twelve campaigns, and not worse."""
    [day] = campaigns([1.0])
    copies = [Summary(f"copy-{number}.tare", day.record, day.sides) for number in range(12)]
    trend = history(copies, Thresholds())
    assert trend.outcome is FigureOutcome.OPEN
    assert len(trend.entries) == 1
    assert {(entry.why, entry.text) for entry in trend.left_out} == {(Why.SAME_CAMPAIGN, trend.entries[0].name)}
    assert len(trend.left_out) == 11


def test_of_two_files_of_a_campaign_the_longer_one_counts() -> None:
    [day] = campaigns([1.0])
    shorter = {names: replace(side, logs=side.logs[:3]) for names, side in day.sides.items()}
    trend = history([Summary("early.tare", day.record, shorter), day], Thresholds())
    assert [entry.name for entry in trend.entries] == [day.name]


def test_a_regressions_interval_excludes_zero() -> None:
    trend = history(campaigns([1.0] * 12 + [1.03] * 8), Thresholds())
    for series in trend.series:
        if series.outcome is FigureOutcome.REGRESSION:
            assert 0 < series.steps[-1].low < series.steps[-1].change < series.steps[-1].high


def test_order_is_that_of_time_and_not_of_names():
    shuffled = campaigns([1.0] * 10 + [1.05] * 10)
    shuffled = [shuffled[at] for at in np.random.default_rng(3).permutation(20)]
    trend = history(shuffled, Thresholds())
    assert [entry.name for entry in trend.entries] == [f"day-{day}.tare" for day in range(20)]
    assert trend.series[0].steps[0].campaign == 10


def _changed(record: CampaignRecord, **facts: object) -> CampaignRecord:
    return record.model_copy(update=facts)


def test_other_hosts_and_baselines_are_left_out_and_named():
    days = campaigns([1.0] * 12)
    other_cpu = days[0].record.host | {"cpu": {"model": "another"}}
    days[0] = Summary("a.tare", _changed(days[0].record, host=other_cpu), days[0].sides)
    days[1] = Summary("b.tare", _changed(days[1].record, baseline="runc"), days[1].sides)
    trend = history(days, Thresholds())
    assert {entry.name: entry.why for entry in trend.left_out} == {"a.tare": Why.HOST, "b.tare": Why.BASELINE}
    assert len(trend.entries) == 10
    assert {len(series.points) for series in trend.series} == {10}


@pytest.mark.parametrize("other", [{"params": {"slice_ms": 7}}, {"revision": 2}], ids=["parameters", "revision"])
def test_a_campaign_that_did_or_computed_otherwise_is_no_point_of_the_series(other):
    days = campaigns([1.0] * 12)
    [workload] = days[4].record.workloads
    others = [workload.model_copy(update=other)]
    days[4] = Summary("c.tare", _changed(days[4].record, workloads=others), days[4].sides)
    trend = history(days, Thresholds())
    assert {len(series.points) for series in trend.series} == {11}
    assert all(4 not in {point.campaign for point in series.points} for series in trend.series)
    assert [(entry.name, entry.why, entry.text) for entry in trend.left_out] == [("c.tare", Why.WORK, workload.name)]


def test_thresholds_leave_out_what_they_ignore():
    rules = Thresholds(rule=[Threshold(metric="cpu-cost", ignore=True)])
    assert {series.metric for series in history(campaigns([1.0] * 10), rules).series} == {"rate"}


def test_the_figures_themselves_on_demand():
    days = [Summary(summary.name, summary.record, summary.sides) for summary in campaigns([1.0] * 10)]
    trend = history(days, Thresholds(), absolute=True)
    [runc] = [series for series in trend.series if (series.platform, series.metric) == ("runc", "rate")]
    assert {point.value for point in runc.points} == {100.0}


def test_no_campaign_is_an_error():
    with refused("no campaign"):
        history([], Thresholds())
