from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest

import fake_campaign
from tare.analysis import analyse
from tare.analysis.quality.contamination import Disturbance
from tare.analysis.quality.findings import FindingKind
from tare.analysis.verdicts import Reason, VerdictKind
from tare.errors import StoreError
from tare.report.campaign.cells import cell
from tare.report.campaign.report_builder import _failures, _with_headlines, build, results_of
from tare.report.model import (
    ManyReports,
    PlatformReport,
    Report,
    to_json,
)
from tare.report.sentences.numbers import quantity
from tare.store import create_store, read_store

DOCS = Path(__file__).parents[2] / "docs" / "report-schema.md"


def entry(report: Report, workload: str, metric: str, platform: str) -> PlatformReport:
    (result,) = (r for r in report.results if (r.workload, r.metric) == (workload, metric))
    (match,) = (p for p in result.platforms if p.platform == platform)
    return match


def test_the_report_has_every_metric_and_platform(report: Report) -> None:
    record = fake_campaign.record(fake_campaign.Shape())
    assert (report.schema_, report.id, report.status, report.baseline) == (
        "tare.report/2",
        record.id,
        "complete",
        "native",
    )
    assert (report.blocks_done, report.blocks_planned, report.seed) == (12, 12, 7)
    assert [(r.workload, r.metric) for r in report.results] == [
        (w.name, m.name) for w in record.workloads for m in w.metrics
    ]
    assert all([p.platform for p in r.platforms] == list(fake_campaign.SLOWDOWN) for r in report.results)
    assert [(r.workload, r.metric) for r in report.headlines()] == [
        (w.name, w.metrics[0].name) for w in record.workloads
    ]


def test_what_cannot_have_a_starts_first_mark_has_its_first_one_as_headline(report: Report) -> None:
    record = fake_campaign.record(fake_campaign.Shape())
    (startup,) = (workload for workload in record.workloads if workload.name == "startup")
    box, failed = "gvisor-ptrace", "gvisor-systrap"
    blind = [
        result.model_copy(
            update={
                "platforms": [
                    platform.model_copy(update={"mean": None, "effect": None, "amount": None, "n_failed": 0})
                    if platform.platform == failed or (platform.platform == box and result.metric == "first-byte")
                    else platform
                    for platform in result.platforms
                ]
            }
        )
        for result in report.results
        if result.workload == "startup"
    ]
    first, ping = _with_headlines(startup, blind)
    assert (first.metric, first.headline, ping.metric, ping.headline) == ("first-byte", True, "ping", True)
    instead = {platform.platform: platform.instead for platform in first.platforms if platform.instead}
    assert instead == {box: "ping"}, "what has no mark at all has no headline in its place"
    (shown,) = (cell(first, platform) for platform in first.platforms if platform.platform == box)
    assert (shown.figure, shown.span) == ("see ping", "its headline")
    complete = _with_headlines(startup, [result for result in report.results if result.workload == "startup"])
    assert [result.headline for result in complete] == [True, False]


def test_figures_agree_with_each_other(report: Report) -> None:
    rate = entry(report, "prime-slices", "rate", "gvisor-systrap")
    assert rate.ratio is not None
    assert rate.op_percent == pytest.approx(100 * (1 - rate.ratio))
    assert rate.op_low_percent == pytest.approx(100 * (1 - rate.ratio_high))
    assert rate.op_percent == pytest.approx(100 * (1 - 1 / 1.041), abs=0.4)
    assert rate.verdict == "slower"
    start = entry(report, "startup", "first-byte", "gvisor-ptrace")
    assert start.ratio is not None
    assert start.op_percent == pytest.approx(100 * (start.ratio - 1))
    assert start.ratio == pytest.approx(3.3, rel=0.02)
    floor = report.results[0].noise_floor
    assert floor is not None
    assert floor.half_width_percent == pytest.approx((floor.high_percent - floor.low_percent) / 2)


def test_failures_that_differ_by_their_instances_address_and_port_alone_are_of_one_kind() -> None:
    reasons = [
        f"`ask {place}` ended with {code}"
        for place, code in (("192.0.2.9 20103", 1), ("192.0.2.10 20104", 1), ("192.0.2.9 20103", 2))
    ]
    same = {"workload": "app", "platform": "docker", "status": "failed"}
    kinds = _failures(pl.DataFrame([{**same, "block": at, "reason": reason} for at, reason in enumerate(reasons)]))
    assert [(kind.reason, kind.n_trials, kind.blocks) for kind in kinds] == [
        (reasons[0], 2, [0, 1]),
        (reasons[2], 1, [2]),
    ]


def test_failures_are_told_with_their_reason_and_blocks(report: Report) -> None:
    failures = {(f.workload, f.platform, f.status): (f.n_trials, f.blocks, f.reason) for f in report.failures}
    assert failures[("iperf3-tcp", "gvisor-ptrace", "failed")] == (
        4,
        [1, 4, 7, 10],
        "iperf3 took longer than 60 s: connection refused",
    )
    assert failures[("fileio-seqwr", "gvisor-ptrace", "unsupported")][0] == 12
    assert report.left_out[0].platform == "kata"
    assert report.contaminated.n_trials == sum(
        p.n_contaminated for r in report.results if r.headline for p in r.platforms
    )


def test_shared_daemons_are_shown_apart(campaign: Path) -> None:
    shares = {platform.name: platform.daemons_share for platform in build(campaign).platforms}
    assert shares.pop("docker") == pytest.approx(0.01)  # 1 ms in trials of 100 ms a round
    assert set(shares.values()) == {None}


def test_a_figure_that_the_baseline_lacks_is_shown_without_a_ratio(report: Report) -> None:
    result = report.results[0]
    alone = entry(report, result.workload, result.metric, "docker").model_copy(
        update={"effect": None, "ratio": None, "verdict": "no-data", "n_blocks": 0, "mean": 3_000_000.0}
    )
    shown = cell(result.model_copy(update={"unit": "ns"}), alone)
    assert (shown.figure, shown.span) == ("3.00 ms", "no baseline")


def test_failed_trials_stand_in_the_cell_and_take_the_verdict(report: Report) -> None:
    [result] = [result for result in report.results if (result.workload, result.metric) == ("iperf3-tcp", "throughput")]
    failing = entry(report, "iperf3-tcp", "throughput", "gvisor-ptrace")
    native = result.platforms[0].mean
    assert failing.effect is not None
    assert native is not None
    assert failing.effect.value == pytest.approx(native / failing.effect.times)
    assert cell(result, failing).below == (quantity(failing.effect.value, "Gbit/s"), "4 of 12 failed")
    assert failing.verdict == "inconclusive"  # 3.3 times slower, in the two thirds that did not fail
    [finding] = [finding for finding in failing.findings if finding.kind == "failures"]
    assert (finding.numbers["failed"], finding.numbers["trials"]) == (4, 12)
    assert finding.text in failing.notes
    assert "failed" not in cell(result, entry(report, "iperf3-tcp", "throughput", "docker")).span


@pytest.mark.thorough
def test_json_holds_to_its_schema_and_comes_back(report: Report, jsonschema: ModuleType) -> None:
    data = json.loads(to_json([report]))
    jsonschema.validate(data, Report.model_json_schema(by_alias=True))
    assert data["schema"] == "tare.report/2"
    assert Report.model_validate(data) == report


def test_several_files_are_several_reports(campaign: Path, tmp_path: Path) -> None:
    other = fake_campaign.write(tmp_path / "day.tare", fake_campaign.Shape(blocks=2, rounds=2, workloads=("startup",)))
    data = json.loads(to_json([build(campaign), build(other)]))
    assert (data["schema"], data["pooled"]) == ("tare.reports/1", False)
    assert [report["file"] for report in data["reports"]] == ["night.tare", "day.tare"]
    ManyReports.model_validate(data)


def test_json_has_no_nan(tmp_path: Path) -> None:
    shape = fake_campaign.Shape(blocks=3, rounds=2, workloads=("prime-slices",))
    with create_store(tmp_path / "a.tare", fake_campaign.record(shape)) as store:
        for _, trials in fake_campaign._blocks(shape):
            spoiled = [replace(s, value=math.nan) for s in trials[2].samples]
            store.commit_trials([*trials[:2], replace(trials[2], samples=tuple(spoiled)), *trials[3:]])

    def refuse(name: str) -> None:
        raise AssertionError(name)

    data = json.loads(to_json([build(tmp_path / "a.tare")]), parse_constant=refuse)
    (runc,) = (p for p in data["results"][0]["platforms"] if p["platform"] == "runc")
    assert (runc["mean"], runc["ratio"], runc["verdict"]) == (None, None, "no-data")


def test_a_campaign_that_was_just_made_has_a_report(tmp_path: Path) -> None:
    with create_store(tmp_path / "new.tare", fake_campaign.record(fake_campaign.Shape())):
        report = build(tmp_path / "new.tare")
    assert (report.status, report.blocks_done) == ("planned", 0)
    assert {p.verdict for r in report.results for p in r.platforms} == {"no-data"}


def test_a_report_beside_the_run_counts_whole_blocks_only(tmp_path: Path) -> None:
    shape = fake_campaign.Shape(blocks=3, rounds=2)
    with create_store(tmp_path / "a.tare", fake_campaign.record(shape)) as store:
        for block, trials in fake_campaign._blocks(shape):
            store.plan_block(block, [trial.key for trial in trials])
            store.commit_trials(trials if block < 2 else trials[:5])
        report = build(tmp_path / "a.tare")
    assert report.blocks_done == 2


def test_no_report_on_what_is_no_campaign(tmp_path: Path) -> None:
    (tmp_path / "a.tare").write_text("no")
    with pytest.raises(StoreError):
        build(tmp_path / "a.tare")


def test_contamination_is_in_the_report_by_reason_with_what_leaving_it_out_would_change(tmp_path: Path) -> None:
    hit = fake_campaign.Disturbance("foreign-cpu", 8, 9, 0.3)  # runc's trial of the second block
    shape = fake_campaign.Shape(rounds=10, workloads=("prime-slices",), telemetry=True, stolen=False, disturbed=(hit,))
    report = build(fake_campaign.write(tmp_path / "a.tare", shape))
    contamination = report.contaminated
    assert (contamination.n_trials, contamination.reasons, contamination.n_all_trials) == (1, {"foreign-cpu": 1}, 72)
    assert contamination.limits["foreign-cpu"] == 0.05
    assert contamination.n_ticks > 100
    runc = entry(report, "prime-slices", "rate", "runc")
    assert (runc.n_contaminated, runc.contaminated_by, runc.n_blocks) == (1, {"foreign-cpu": 1}, 12)
    assert runc.unmarked is not None
    assert (runc.unmarked.n_trials, runc.unmarked.n_baseline, runc.unmarked.n_blocks) == (1, 0, 11)
    assert runc.unmarked.op_percent != runc.op_percent
    assert entry(report, "prime-slices", "rate", "docker").unmarked is None


def test_a_campaign_without_telemetry_has_its_steal_and_no_more(report: Report) -> None:
    assert report.contaminated.n_ticks == 0
    assert set(report.contaminated.reasons) == {"steal"}
    assert report.tuning is None


@pytest.mark.parametrize("codes", [VerdictKind, Reason, FindingKind, Disturbance])
def test_every_code_is_documented(codes: type[StrEnum]) -> None:
    documented = set(re.findall(r"`([a-z0-9-]+)`", DOCS.read_text()))
    assert {code.value for code in codes} - documented == set()


def test_codes_stand_beside_their_words(campaign: Path) -> None:
    """What reads a report need not read English."""
    for result in build(campaign).results:
        for platform in result.platforms:
            assert isinstance(platform.verdict, VerdictKind)
            assert isinstance(platform.verdict_reason, Reason)
            assert [caution.text for caution in platform.cautions] == platform.notes
            beside = [finding for finding in platform.findings if finding.kind is not FindingKind.UNSEEN]
            assert [finding for finding in beside if finding not in platform.cautions] == []


def test_the_documented_example_is_of_the_schema() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", DOCS.read_text(), flags=re.DOTALL)
    Report.model_validate(json.loads(example))


def test_a_platforms_remark_stands_beside_all_figures_of_its_family(tmp_path: Path) -> None:
    path = fake_campaign.write(tmp_path / "a.tare", fake_campaign.Shape(blocks=3))
    with read_store(path) as store:
        remarked = [
            platform.model_copy(update={"remarks": {"cpu": "one CPU"}} if platform.name == "runc" else {})
            for platform in store.record.platforms
        ]
        record = store.record.model_copy(update={"platforms": remarked})
        results = results_of(record, analyse(record, store.samples(), store.trials()))
    for result in results:
        remarked = [entry for entry in result.platforms if entry.remark == "one CPU" and "one CPU" in entry.notes]
        assert {entry.platform for entry in remarked} == ({"runc"} if result.family == "cpu" else set())


def test_another_mtu_is_a_remark_on_network_and_application_figures_beside_its_own(tmp_path: Path) -> None:
    shape = fake_campaign.Shape(blocks=3, workloads=("sysbench-cpu", "iperf3-tcp", "served-1"))
    path = fake_campaign.write(tmp_path / "a.tare", shape)
    with read_store(path) as store:
        platforms = [
            platform.model_copy(update={"remarks": {"network": "a proxy"}} if platform.name == "runc" else {})
            for platform in store.record.platforms
        ]
        mtus = {"native": 1500, "docker": 1450, "runc": 65520}
        fairness = {platform: {"mtu inside": mtu} for platform, mtu in mtus.items()}
        record = store.record.model_copy(update={"platforms": platforms, "fairness": fairness})
        results = results_of(record, analyse(record, store.samples(), store.trials()))
    of_docker = "its packets may be of another size: the MTU of its own link is 1450, native's 1500"
    of_runc = "its packets may be of another size: the MTU of its own link is 65520, native's 1500"
    expected = {
        "cpu": {},
        "network": {"docker": of_docker, "runc": f"a proxy; {of_runc}"},
        "application": {"docker": of_docker, "runc": of_runc},
    }
    assert {result.family for result in results} == set(expected)
    for result in results:
        remarks = {entry.platform: entry.remark for entry in result.platforms if entry.remark}
        assert remarks == expected[result.family]
