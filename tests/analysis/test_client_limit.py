"""A row that the client limits says so, and so does one whose baseline the client limits."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import fake_campaign
from tare.analysis.answers import AnswerState, Dimension, answers
from tare.analysis.bounds import Bound, BoundKind
from tare.analysis.effects import Effect
from tare.analysis.quality.client_limit import flag_client
from tare.analysis.quality.findings import Finding, FindingKind
from tare.analysis.results import Description, MetricResult, PlatformResult, TrialCounts
from tare.analysis.verdicts import Reason, Verdict, VerdictKind
from tare.estimates.intervals import Interval
from tare.estimates.looks import Look, Looks
from tare.model import CLIENT_BUSY, CLIENT_COST, CPU_COST, Direction, Family
from tare.report.sentences.notes import sentence

RECORD = fake_campaign.record(fake_campaign.Shape())
WORKLOAD = RECORD.workloads[0]


def _result(metric, figures):
    platforms = tuple(
        PlatformResult(name, 3, 0, TrialCounts(ok=3), Description(3, figure, 0.0, figure))
        for name, figure in figures.items()
    )
    return MetricResult(WORKLOAD.name, metric, "%", Direction.LOWER, 0.05, None, platforms)


def _flagged(busy, *, threads=None, harness=(0,)):
    """Which platforms have the finding in the rate, with its numbers."""
    record = RECORD.model_copy(
        update={"resources": RECORD.resources.model_copy(update={"harness_cpus": list(harness)})}
    )
    workload = WORKLOAD.model_copy(update={"params": {} if threads is None else {"threads": threads}})
    results = [_result("rate", busy), _result(CPU_COST, busy), _result(CLIENT_BUSY, busy)]
    rate, *others = flag_client(record, workload, results)
    assert not [platform for result in others for platform in result.platforms if platform.notes]
    notes = {platform.platform: platform.notes for platform in rate.platforms if platform.notes}
    limited = {name: findings[0] for name, findings in notes.items() if findings[0].kind is FindingKind.CLIENT_LIMITED}
    assert {findings[0].kind for findings in notes.values()} <= {FindingKind.CLIENT_LIMITED, FindingKind.CLIENT_NEAR}
    return {name: dict(finding.numbers) for name, finding in limited.items()}


@pytest.mark.parametrize("threads", ["x", "9" * 5000, 0, -1e308, True])
def test_threads_of_a_strangers_file_are_one_at_least(threads):
    assert _flagged({"native": 60.0, "docker": 95.0}, threads=threads, harness=(0, 1)) == {
        "docker": {"busy": 0.95, "baseline_busy": 0.6}
    }


def test_a_client_with_time_left_limits_nothing():
    assert _flagged({"native": 60.0, "docker": 89.0}) == {}


def test_what_the_client_could_make_is_said_where_a_platform_comes_near_to_it():
    """Of 50 us of its CPU time for a request, as the client spends here: 20,000 a second, on one CPU."""
    busy = {"native": 74.0, "docker": 76.0, "runc": 95.0}
    cost = _result(CLIENT_COST, dict.fromkeys(busy, 50_000.0))
    rate, *_ = flag_client(RECORD, WORKLOAD, [_result("rate", busy), cost, _result(CLIENT_BUSY, busy)])
    notes = {platform.platform: platform.notes for platform in rate.platforms}
    assert notes["native"] == ()
    unit = f"{WORKLOAD.work_unit}s/s"
    assert sentence(notes["docker"][0], None) == (
        f"the client was near its limit: it was busy 76% of its time and can make some 20,000 {unit}"
    )
    assert sentence(notes["runc"][0], None) == (
        f"the client was the limit: it was busy 95% of its time and can make some 20,000 {unit}, and the platform may"
        " be faster than this"
    )


def test_a_platform_whose_client_is_busy_is_limited_by_it():
    assert _flagged({"native": 60.0, "docker": 95.0}) == {"docker": pytest.approx({"busy": 0.95, "baseline_busy": 0.6})}


def test_where_the_baseline_is_limited_no_ratio_to_it_is_whole():
    assert set(_flagged({"native": 99.0, "docker": 50.0})) == {"native", "docker"}


@pytest.mark.parametrize(
    ("threads", "harness", "limited"), [(4, (0,), True), (4, (0, 1), False), (1, (0, 1), True), (None, (0, 1), True)]
)
def test_a_tool_of_several_threads_has_all_of_the_clients_cpus(threads, harness, limited):
    assert bool(_flagged({"native": 120.0}, threads=threads, harness=harness)) is limited


def test_the_words_say_whose_limit_it_was():
    [result] = flag_client(RECORD, WORKLOAD, [_result("rate", {"native": 1.0})])
    assert result.platforms[0].notes == ()  # without the client's figure nothing is said
    results = flag_client(RECORD, WORKLOAD, [_result("rate", {}), _result(CLIENT_BUSY, {})])
    assert [replace(metric_result) for metric_result in results] == results
    busy = {"native": 97.0, "docker": 40.0}
    rate, _ = flag_client(RECORD, WORKLOAD, [_result("rate", busy), _result(CLIENT_BUSY, busy)])
    texts = [sentence(note, None) for platform in rate.platforms for note in platform.notes]
    assert "the client was the limit: it was busy 97% of its time" in texts[0]
    assert texts[1].startswith("the client was the baseline's limit (busy 97% of its time, here 40%)")


def test_a_client_that_spends_more_than_twice_on_a_request_is_said():
    """wrk took 14 times its CPU time for each request of a slow run, and the platform was 12.8 times slower."""
    busy = {"native": 60.0, "docker": 60.0, "runc": 60.0}
    cost = _result(CLIENT_COST, {"native": 18_000.0, "docker": 35_000.0, "runc": 263_000.0})
    rate, *others = flag_client(RECORD, WORKLOAD, [_result("rate", busy), cost, _result(CLIENT_BUSY, busy)])
    kinds = {platform.platform: {note.kind for note in platform.notes} for platform in rate.platforms}
    assert kinds == {"native": set(), "docker": set(), "runc": {FindingKind.CLIENT_DEARER}}
    [runc] = [platform for platform in rate.platforms if platform.platform == "runc"]
    assert runc.notes[0].numbers["times"] == pytest.approx(263 / 18)
    assert not [platform for result in others for platform in result.platforms if platform.notes]


def _applications(*figures):
    """Where docker's applications stand, by two figures: how many times slower, its notes, and how little is known."""
    names = ("nginx", "redis")
    workloads = [WORKLOAD.model_copy(update={"name": name, "family": Family.APPLICATION}) for name in names]
    record = RECORD.model_copy(update={"workloads": workloads})
    results = []
    for workload, (times, notes, bound) in zip(workloads, figures, strict=True):
        verdict = Verdict(VerdictKind.SLOWER, Reason.TYPICAL_ROUND)
        looks = Looks(Look.over_blocks(np.log(times) + np.array([-0.4, 0.0, 0.4])))
        if bound is not None:
            verdict = Verdict(VerdictKind.INCONCLUSIVE, Reason.WIDE_INTERVAL)
        docker = PlatformResult(
            "docker", 3, 0, TrialCounts(ok=3), Description(3, 1.0, 0.0, 1.0), looks=looks,
            effect=Effect(Interval(times, 0.9 * times, 1.1 * times), 0.95, bound=bound), verdict=verdict, notes=notes,
        )  # fmt: skip
        results.append(
            MetricResult(workload.name, workload.metrics[0].name, "/s", Direction.HIGHER, 0.05, None, (docker,))
        )
    trials = pl.DataFrame({"workload": names, "platform": ["docker"] * 2, "turn_s": [2.0, 3.0], "block": [0, 0]})
    [answer] = [answer for answer in answers(record, results, trials).platforms if answer.platform == "docker"]
    [standing] = answer.standings
    return standing, answer.settling


@pytest.mark.parametrize("kind", [FindingKind.CLIENT_LIMITED, FindingKind.CLIENT_DEARER, FindingKind.DISK_LIMITED])
def test_a_row_whose_client_was_the_limit_never_stands_for_a_dimension(kind):
    assert _applications((3.0, (), None), (1.1, (), None))[0].workload == "nginx"
    standing, _ = _applications((3.0, (Finding(kind, {}),), None), (1.1, (), None))
    assert (standing.dimension, standing.workload, standing.state) == (
        Dimension.APPLICATIONS,
        "redis",
        AnswerState.WORSE,
    )
    assert standing.n_figures == 1
    assert _applications((3.0, (Finding(FindingKind.CLIENT_NEAR, {}),), None), (1.1, (), None))[0].workload == "nginx"


def test_a_limited_row_is_in_no_bound_and_no_forecast():
    wide, narrow = Bound(BoundKind.AT_MOST, 0.9, 3.0), Bound(BoundKind.AT_MOST, 0.95, 1.06)
    both, both_need = _applications((1.5, (), wide), (1.02, (), narrow))
    assert (both.bound.high, both_need.workloads) == (3.0, ("nginx", "redis"))
    limited = (Finding(FindingKind.DISK_LIMITED, {}),)
    standing, needs = _applications((1.5, limited, wide), (1.02, (), narrow))
    assert (standing.state, standing.workload, standing.bound) == (AnswerState.BOUNDED, "redis", narrow)
    assert needs.workloads == ("redis",), "more blocks make no other client"


def test_where_the_client_was_the_limit_of_all_rows_nothing_is_said_of_the_platform():
    limited = (Finding(FindingKind.CLIENT_LIMITED, {}),)
    standing, settling = _applications((3.0, limited, None), (1.1, limited, None))
    assert (standing.state, standing.felt, settling) == (AnswerState.LIMITED, 0.0, None)
