"""All pairs and the studies' sums, from a campaign's file to what is shown."""

import io
import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from rich.console import Console

import fake_campaign
from tare.analysis.comparisons.many import Method
from tare.analysis.refusals import RefusalKind, RefusedAnswer
from tare.errors import UsageError
from tare.features.compare import views as compare_report
from tare.features.compare.analysis import Procedure, compare
from tare.features.studies.analysis import profile as profiles
from tare.features.studies.analysis.sheet import score
from tare.features.studies.commands.score_run import show_scores
from tare.features.studies.views import score_tables as score_report
from tare.model import Design, Mode
from tare.report.sentences.refusal_words import refusal_text
from tare.store import LevelRecord, read_store

PROFILE = """
title = "mine"
[priorities]
must = 2.0
[[feature]]
name = "rate"
workload = "sysbench-cpu"
metric = "rate"
direction = "higher"
priority = "must"
thresholds = [0.5, 0.9, 0.97]
least = 2
[[feature]]
name = "not there"
workload = "no-such"
metric = "rate"
direction = "higher"
priority = "must"
thresholds = [0.5]
"""


NO_TRIALS = pl.DataFrame(
    schema={"workload": pl.String, "platform": pl.String, "status": pl.String, "turn_s": pl.Float64}
)


@pytest.fixture
def campaign(tmp_path):
    shape = replace(fake_campaign.Shape(), failing=None, unsupported=None, workloads=("sysbench-cpu", "startup"))
    with read_store(fake_campaign.write(tmp_path / "x.tare", shape)) as store:
        yield store.record, store.samples()


def _shown(group):
    out = io.StringIO()
    Console(width=120, file=out).print(group)
    return out.getvalue()


def test_every_pair_is_compared_once_and_true_differences_are_found(campaign):
    rate, cost, first_byte = compare(*campaign)
    assert (rate.metric, cost.metric, first_byte.metric) == ("rate", "cpu-cost", "first-byte")
    assert rate.pairs.method is Method.MAX_T
    assert len(rate.pairs.pairs) == 10
    by_names = {(pair.first, pair.second): pair for pair in rate.pairs.pairs}
    gvisor_pair = by_names["gvisor-systrap", "gvisor-ptrace"]
    assert gvisor_pair.difference.low < np.log(3.3 / 1.041) < gvisor_pair.difference.high
    assert gvisor_pair.p < 0.01
    assert by_names["native", "runc"].p > 0.05
    text = _shown(compare_report.render([rate]))
    assert "all pairs by max-t over 12 blocks" in text
    assert json.dumps(compare_report.to_data([rate, cost]))


def test_some_platforms_only(campaign):
    rate = compare(*campaign, platforms=["docker"])[0]
    assert [(pair.first, pair.second) for pair in rate.pairs.pairs] == [("native", "docker")]


@pytest.mark.thorough
def test_one_after_the_other_are_groups_with_the_tests_of_the_studies(campaign):
    record, samples = campaign
    rate = compare(record.model_copy(update={"design": Design.SEQUENTIAL}), samples)[0]
    assert rate.pairs is None
    assert [test.pairwise for test in rate.tests] == [Procedure.GAMES_HOWELL, Procedure.TUKEY, Procedure.RANK_SUMS]
    [data] = compare_report.to_data([rate])["results"]
    assert [test["pairwise"] for test in data["tests"]] == ["Games-Howell", "Tukey's HSD", "rank sums with Holm"]
    text = _shown(compare_report.render([rate]))
    assert "Welch's analysis of variance: F " in text
    assert "Kruskal-Wallis: chi-squared " in text


@pytest.mark.thorough
def test_three_blocks_one_after_the_other_have_the_tests_that_can_answer(campaign):
    """Rank sums need four values a platform; Welch and Tukey do not, and answered nothing either."""
    record, samples = campaign
    few = samples.filter(pl.col("block") < 3)
    rate = compare(record.model_copy(update={"design": Design.SEQUENTIAL}), few)[0]
    assert rate.reason is None
    howell, tukey, ranks = rate.tests
    assert howell.result is not None
    assert len(howell.pairs) == len(tukey.pairs) == 10
    assert ranks.result is not None
    assert ranks.pairs == ()
    assert "at least 4 are needed" in refusal_text(ranks.pairs_reason)
    text = _shown(compare_report.render([rate]))
    assert "Tukey's HSD" in text
    assert "no answer: rank sums with Holm: " in text
    assert json.dumps(compare_report.to_data([rate]))
    [*_, test] = compare_report.to_data([rate])["results"][0]["tests"]
    assert (test["reason"], test["pairs_reason"]) == (None, refusal_text(ranks.pairs_reason))


def test_a_platform_without_ratios_leaves_the_others_theirs(campaign):
    record, samples = campaign
    zero = (pl.col("platform") == "docker") & (pl.col("block") == 1)
    rate = compare(record, samples.with_columns(value=pl.when(zero).then(0.0).otherwise(pl.col("value"))))[0]
    assert len(rate.pairs.pairs) == 6
    assert rate.left_out == ("docker",)
    [data] = compare_report.to_data([rate])["results"]
    assert data["left_out"] == {"docker": "samples are zero, negative or not finite, and have no ratio"}
    assert "no answer: docker: samples are zero" in _shown(compare_report.render([rate]))
    baseless = samples.with_columns(value=pl.when(pl.col("platform") == "native").then(0.0).otherwise(pl.col("value")))
    rate = compare(record, baseless)[0]
    assert rate.reason == RefusedAnswer(RefusalKind.NO_RATIOS, ("native",))
    assert "no answer: native: samples are zero" in _shown(compare_report.render([rate]))


def test_what_has_no_answer_says_why(campaign):
    record, samples = campaign
    [rate, *_] = compare(record, samples.filter(pl.col("block") == 0))
    assert rate.reason == RefusedAnswer(RefusalKind.PAIR_TOO_FEW_BLOCKS, ("native", "runc"), {"blocks": 1})
    text = "native and runc both have a value in 1 block, at least 2 are needed"
    assert f"no answer: {text}" in _shown(compare_report.render([rate]))
    assert compare_report.to_data([rate])["results"][0]["reason"] == text
    [zero, *_] = compare(record, samples.with_columns(value=pl.lit(0.0)))
    assert zero.reason == RefusedAnswer(RefusalKind.NO_RATIOS, ("native",))


def test_a_lower_rate_and_a_longer_time_are_both_worse(campaign):
    rate, _, first_byte = compare(*campaign, platforms=["gvisor-ptrace"])
    for result in (rate, first_byte):
        line = next(line for line in _shown(compare_report.render([result])).splitlines() if "gvisor-ptrace" in line)
        assert "\N{MINUS SIGN}" in line, "native is less bad than gvisor-ptrace"


def test_scores_are_those_of_the_profile_and_what_was_not_measured_has_none(campaign):
    record, samples = campaign
    profile = profiles.parse(PROFILE, "mine")
    sheet = score(record, samples, NO_TRIALS, profile)
    points = {point.platform: point for point in sheet.points}
    assert points["runc"].points == {"rate": 3, "not there": None}
    assert points["gvisor-systrap"].points["rate"] == 2
    assert points["gvisor-ptrace"].unacceptable == ("rate",)
    assert points["runc"].weighted == 6
    assert sheet.percents["sysbench-cpu"]["native"].percent == pytest.approx(100)
    assert sheet.percents["sysbench-cpu"]["gvisor-ptrace"].percent == pytest.approx(100 / 3.3, rel=0.02)
    assert max(sheet.standardised["startup"].values()) == 1
    assert set(sheet.rows) == set(sheet.percents["startup"])
    text = _shown(score_report.render(sheet, profile, record.baseline))
    assert "not measured in this campaign, so no points: not there" in text
    assert "not acceptable for" in text
    assert "weighted" in text
    assert json.dumps(score_report.to_data(sheet, profile))


def test_points_say_which_others_the_intervals_allow(campaign):
    record, samples = campaign
    profile = profiles.parse(PROFILE, "mine")
    doubt = {
        ("sysbench-cpu", "rate", "runc"): (0.999, 1.001),
        ("sysbench-cpu", "rate", "docker"): (0.5, 1.2),
    }
    sheet = score(record, samples, NO_TRIALS, profile, doubt)
    points = {point.platform: point for point in sheet.points}
    assert points["docker"].points == {"rate": 3, "not there": None}
    fewest, most = points["docker"].ranges["rate"]
    assert fewest < 3 == most
    assert points["runc"].ranges["rate"] == (3, 3)
    assert points["gvisor-systrap"].ranges["rate"] == (0, 3), "without an interval nothing is known"
    text = _shown(score_report.render(sheet, profile, record.baseline))
    assert f"3 ({fewest} to 3)" in text
    assert f"3 ({fewest} to 3) of 3" in text
    assert score_report.to_data(sheet, profile)["points"][0]["ranges"] == {"rate": (3, 3)}


def test_trials_that_fit_into_a_day_are_counted_by_the_time_that_one_took(tmp_path):
    """Li 2017, section 3.3.4: an overhead from how many of them there are, of failed ones none."""
    with read_store(fake_campaign.write(tmp_path / "x.tare", replace(fake_campaign.Shape(), failing=None))) as store:
        record, samples, trials = store.record, store.samples(), store.trials()
    name = next(workload.name for workload in record.workloads if workload.mode is Mode.RUN)
    of_it = trials.filter(pl.col("workload") == name).with_columns(
        turn_s=pl.when(pl.col("platform") == "docker").then(128.0).otherwise(96.0)
    )
    failed = of_it.with_columns(status=pl.lit("failed"), turn_s=pl.lit(1.0))
    sheet = score(record, samples, pl.concat([of_it, failed]), profiles.load())
    counts = sheet.trial_counts[name]
    assert (counts["native"].trials, counts["docker"].trials) == (900, 675)
    assert (counts["native"].overhead_percent, counts["docker"].overhead_percent) == (0.0, 25.0)
    assert "675 (25.0 %)" in _shown(score_report.render(sheet, profiles.load(), record.baseline))
    assert score_report.to_data(sheet, profiles.load())["trial_counts"][name]["docker"]["trials"] == 675


def test_a_feature_of_a_curve_is_the_mean_of_its_levels(campaign):
    """As the study has it; of platforms that have all levels."""
    record, samples = campaign
    [cpu] = [workload for workload in record.workloads if workload.name == "sysbench-cpu"]
    level = LevelRecord(curve="cpu-threads", at=1, unit="threads", rate="rate", latency="rate", limit=1)
    levels = [cpu.model_copy(update={"name": f"cpu-threads-{at}", "level": level}) for at in (1, 2)]
    rate = samples.filter((pl.col("workload") == "sysbench-cpu") & (pl.col("metric") == "rate"))
    ones = rate.with_columns(workload=pl.lit("cpu-threads-1"), value=pl.lit(100.0))
    slow = pl.when(pl.col("platform") == "docker").then(20.0).otherwise(100.0)
    twos = rate.with_columns(workload=pl.lit("cpu-threads-2"), value=slow).filter(pl.col("platform") != "gvisor-ptrace")
    text = PROFILE.replace('workload = "sysbench-cpu"', 'workload = ["no-such-curve", "cpu-threads", "sysbench-cpu"]')
    record = record.model_copy(update={"workloads": levels})
    sheet = score(record, pl.concat([ones, twos]), NO_TRIALS, profiles.parse(text, "mine"))
    points = {point.platform: point.points["rate"] for point in sheet.points}
    assert points["docker"] == 1  # 60 of 100
    assert (points["runc"], points["gvisor-ptrace"]) == (3, None)


def test_a_platform_without_a_figure_somewhere_has_no_row_score(campaign):
    record, samples = campaign
    lacking = samples.filter(~((pl.col("workload") == "startup") & (pl.col("platform") == "runc")))
    sheet = score(record, lacking, NO_TRIALS, profiles.load())
    assert "runc" not in sheet.rows
    assert "docker" in sheet.rows


def test_a_figure_that_no_score_can_be_made_of_is_an_error_in_a_line(tmp_path, monkeypatch):
    file = tmp_path / "x.tare"
    fake_campaign.write(file, replace(fake_campaign.Shape(), workloads=("sysbench-cpu",)))
    with read_store(file) as store:
        garbage = store.samples().with_columns(pl.lit(1e200).alias("value"))
    monkeypatch.setattr(type(store), "samples", lambda _: garbage)
    with pytest.raises(UsageError) as refused:
        show_scores(file, None, as_json=False)
    assert "1e+30" in str(refused.value)
    assert "\n" not in str(refused.value)
