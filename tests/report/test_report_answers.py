"""The answer on each platform: which figures stand for a dimension, in which order, and what would tell the rest."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from markupsafe import escape

import fake_campaign
import fake_surfaces
from tare.analysis.analyse import analyse
from tare.analysis.answers import answers
from tare.model import CPU_COST
from tare.report.campaign.campaign_drawings import trade_off
from tare.report.campaign.cells import cell
from tare.report.campaign.heat import heat
from tare.report.campaign.report_builder import build, report_on
from tare.report.model import AnswerReport, Report
from tare.store import open_store

QUIET = fake_campaign.Shape(stolen=False, failing=None, unsupported=None)


def answer(report: Report, platform: str) -> AnswerReport:
    [only] = [candidate for candidate in report.answers if candidate.platform == platform]
    return only


def test_a_dimension_is_shown_by_the_worst_of_its_figures(report: Report) -> None:
    ptrace = {dimension.dimension: dimension for dimension in answer(report, "gvisor-ptrace").dimensions}
    overheads = {
        result.workload: platform.op_percent
        for result in report.results
        for platform in result.platforms
        if result.family == "cpu" and result.metric != CPU_COST and platform.platform == "gvisor-ptrace"
    }
    assert len(overheads) == 2
    assert ptrace["compute"].workload == max(overheads, key=lambda name: overheads[name] or 0)
    assert (ptrace["compute"].n_figures, ptrace["compute"].state) == (2, "worse")
    assert (ptrace["disk"].state, ptrace["network"].state) == ("none", "open")
    assert ptrace["network"].figure == ""


def test_cpu_cost_is_of_all_work_the_worst_first(report: Report) -> None:
    costs = {
        result.workload: platform.op_percent or 0.0
        for result in report.results
        for platform in result.platforms
        if result.metric == CPU_COST and platform.platform == "gvisor-ptrace"
    }
    assert {"fileio-seqwr", "sysbench-cpu"} <= set(costs)
    [cost] = [shown for shown in answer(report, "gvisor-ptrace").dimensions if shown.dimension == "cpu-cost"]
    assert cost.n_figures == len(costs)
    assert cost.workload == max(costs, key=costs.__getitem__)


def test_a_second_baseline_has_an_answer_where_it_was_asked_for(tmp_path: Path) -> None:
    with open_store(fake_campaign.write(tmp_path / "a.tare", QUIET)) as store:
        record, trials = store.record, store.trials()
        results = analyse(record, store.samples(), trials)
    name = record.platforms[-1].name
    nothing = [
        platform.model_copy(update={"open_by_design": {"*": "it is the host itself"}})
        if platform.name == name
        else platform
        for platform in record.platforms
    ]
    for asked in ([], [name]):
        of = record.model_copy(update={"platforms": nothing, "asked": asked})
        named = [platform.platform for platform in answers(of, results, trials).platforms]
        assert (name in named) == bool(asked)


def test_sentences_begin_with_what_is_felt_most_and_give_both_values(report: Report) -> None:
    sentences = answer(report, "gvisor-ptrace").sentences
    assert re.fullmatch(
        r"Compute: 3\.\d+ times slower \(3\.\d+ to 3\.\d+; [\d.]+ \S+ against 3,\d+ events/s\), the worst of 2: .*",
        sentences[0],
    )
    assert sentences[1].startswith("Start: +92.1 ms (91.3 to 93.0; 132.4 ms against 40.24 ms)")
    assert "Not known within a factor of two: network (4 of 12 trials failed)." in sentences
    assert "No figure: disk (it cannot do this)." in sentences
    assert answer(report, "runc").sentences == [
        "As native: disk, CPU cost, network and start (−0.03 ms) within 5 %, compute within 1 %."
    ]


def test_a_workload_of_which_every_trial_failed_is_named(tmp_path: Path) -> None:
    failing = replace(QUIET, blocks=3, rounds=2, failing=("sysbench-cpu", "docker"), failing_every=1)
    report = build(fake_campaign.write(tmp_path / "a.tare", failing))
    assert "Every trial failed: sysbench-cpu (3 of 3)." in answer(report, "docker").sentences
    assert not any("failed" in line for line in answer(report, "runc").sentences)
    alone = replace(failing, failing=("fileio-seqwr", "docker"))
    lines = answer(build(fake_campaign.write(tmp_path / "b.tare", alone)), "docker").sentences
    assert [line for line in lines if "failed" in line] == ["No figure: disk (all 3 trials failed)."]


def test_where_the_baselines_own_arms_differ_the_sentence_says_so_and_not_that_it_is_unsure(tmp_path: Path) -> None:
    report = build(fake_campaign.write(tmp_path / "a.tare", replace(QUIET, aa_shift=1.2)))
    [sentence] = [line for line in answer(report, "runc").sentences if "two arms differ" in line]
    assert sentence.startswith("The baseline's own two arms differ in: ")
    assert "compute" in sentence


def test_a_verdict_of_whole_blocks_is_shown_with_their_figure_in_every_view(tmp_path: Path) -> None:
    """A platform that stalls in three rounds of twenty: its typical round is the baseline's, and its blocks are not."""
    shape = replace(QUIET, workloads=("prime-slices",), rounds=20, slowdown={"native": 1.0, "stalls": 1.0})
    path = fake_campaign.write(tmp_path / "a.tare", shape)
    with open_store(path) as store:
        samples = store.samples()
        samples = samples.with_columns(
            value=pl.when((pl.col("platform") == "stalls") & (pl.col("round") % 20 < 3))
            .then(pl.col("value") * pl.when(pl.col("metric") == "rate").then(0.5).otherwise(2.0))
            .otherwise("value")
        )
        report = report_on(store, samples)
    [result] = [candidate for candidate in report.results if candidate.metric == "rate"]
    [_, stalls] = result.platforms
    assert stalls.effect is not None
    assert (stalls.verdict, stalls.verdict_reason, stalls.effect.whole_blocks) == ("slower", "whole-blocks", True)
    assert stalls.totals_percent == pytest.approx(100 * (1 - 1 / stalls.effect.times))
    assert stalls.op_percent != pytest.approx(stalls.totals_percent, abs=1)
    assert cell(result, stalls).figure == f"+{stalls.totals_percent:.2f} %"
    assert answer(report, "stalls").dimensions[-1].figure.startswith("+")
    assert f"{stalls.totals_percent:.2f} % slower" in stalls.verdict_text
    [native, _] = result.platforms
    assert native.mean is not None
    assert stalls.effect.value == pytest.approx(native.mean / stalls.effect.times)


def test_many_differences_share_a_sentence(tmp_path: Path) -> None:
    shape = replace(QUIET, blocks=8, slowdown={"native": 1.0, "slow": 1.5})
    slow = answer(build(fake_campaign.write(tmp_path / "a.tare", shape)), "slow")
    assert [dimension.state for dimension in slow.dimensions] == ["worse"] * 5
    assert [line.partition(":")[0] for line in slow.sentences] == ["Compute", "Disk", "Also worse"]
    assert re.search(r"network 3[23](\.\d+)? % slower", slow.sentences[2])
    assert re.search(r"start \+(19|20)", slow.sentences[2])


def test_what_is_better_comes_after_what_is_alike(tmp_path: Path) -> None:
    shape = replace(QUIET, blocks=12, slowdown={"native": 1.0, "quick": 0.5}, workloads=("prime-slices",))
    quick = answer(build(fake_campaign.write(tmp_path / "a.tare", shape)), "quick")
    [sentence] = quick.sentences
    assert sentence.startswith("Better: ")
    assert quick.settling is None


def test_one_block_shows_what_was_measured_and_what_intervals_would_take(tmp_path: Path) -> None:
    once = answer(build(fake_campaign.write(tmp_path / "a.tare", replace(QUIET, blocks=1))), "gvisor-ptrace")
    assert {dimension.state for dimension in once.dimensions} == {"once"}
    assert all(dimension.figure for dimension in once.dimensions)
    assert once.sentences[0].startswith("Seen once, without an interval: compute 3.")
    assert re.search(r"start \+9\d(\.\d+)? ms \(13\d\.\d ms against 4\d\.\d+ ms\)", once.sentences[0])
    assert once.settling is not None
    assert once.settling.blocks == 5


def test_what_is_open_has_one_command_that_goes_on_with_the_campaign(tmp_path: Path) -> None:
    shape = replace(QUIET, blocks=3, slowdown={"native": 1.0, "near": 1.004}, block_noise=0.15, noise=0.15, seed=3)
    report = build(fake_campaign.write(tmp_path / "a b.tare", shape))
    settling = report.settling
    assert settling is not None
    assert 0 < settling.seconds <= 3600
    minutes = re.fullmatch(r"tare run --more (\d+)m 'a b\.tare'", settling.command)
    assert minutes is not None
    assert settling.seconds / 60 <= int(minutes[1]) <= settling.seconds / 60 + 5
    assert report.settling_text.startswith(f"About {minutes[1]} min more would answer ")
    assert "by even odds" in report.settling_text
    near = answer(report, "near")
    assert near.settling is not None
    assert near.settling.command.startswith("tare run --more ")
    wide = {dimension.workload for dimension in near.dimensions if dimension.state == "open"}
    assert wide <= {*settling.workloads, *settling.beyond}


def test_what_would_take_longer_is_named_without_a_command(tmp_path: Path) -> None:
    shape = replace(QUIET, blocks=2, slowdown={"native": 1.0, "near": 1.004}, block_noise=5.0, noise=5.0, seed=4)
    report = build(fake_campaign.write(tmp_path / "a.tare", shape))
    assert report.settling is not None
    assert report.settling.beyond
    assert report.settling.beyond_seconds > 3600
    assert "on a host as noisy as this one" in report.settling_text
    if not report.settling.workloads:
        assert (report.settling.command, report.settling_text[-1]) == ("", ".")


def test_what_has_no_verdict_has_a_bound_over_all_of_its_figures(tmp_path: Path) -> None:
    """Of several noisy figures the worst is so by luck: what holds for all of them is shown."""
    shape = replace(QUIET, blocks=5, slowdown={"native": 1.0, "near": 1.004}, block_noise=0.02, noise=0.02, seed=4)
    report = build(fake_campaign.write(tmp_path / "a.tare", shape))
    compute = next(standing for standing in answer(report, "near").dimensions if standing.dimension == "compute")
    assert (compute.state, compute.n_figures) == ("bounded", 2)
    assert compute.bound is not None
    bounds = [
        platform.effect.bound
        for result in report.results
        for platform in result.platforms
        if result.family == "cpu" and result.headline and platform.effect is not None and platform.effect.bound
    ]
    assert len(bounds) == 2
    assert (compute.bound.low, compute.bound.high) == (min(b.low for b in bounds), max(b.high for b in bounds))
    [row] = [row for row in heat(report).rows if row.platform == "near"]
    shown = row.cells[heat(report).columns.index("compute")]
    assert shown.text == compute.figure
    assert re.fullmatch(r"(at most \+|[−+])[\d.]+( to [−+][\d.]+)? %", shown.text)
    assert any(line.startswith("No verdict, and in what was seen") for line in answer(report, "near").sentences)


def test_the_table_has_a_mark_and_a_figure_in_each_cell_and_columns_of_what_was_measured(report: Report) -> None:
    table = heat(report)
    assert table.columns == ("compute", "CPU cost", "disk", "network", "start")
    rows = {row.platform: row for row in table.rows}
    assert [cell.text for cell in rows["gvisor-ptrace"].cells] == ["▲ 3.3 ×", "▲ 3.3 ×", "–", "?", "▲ +92.1 ms"]
    assert [cell.shade for cell in rows["gvisor-ptrace"].cells] == [3, 3, 0, 0, 1]
    assert rows["runc"].cells[0].text == "= 0.0 %"
    assert [row.daemon for row in table.rows] == [False, True, False, False]
    orders = [rows[name].cells[0].order for name in ("runc", "gvisor-systrap", "gvisor-ptrace")]
    assert orders == sorted(orders, key=lambda order: order or 0)


@pytest.mark.thorough
def test_surfaces_of_the_file_are_the_exposed_kernel(tmp_path: Path) -> None:
    path = fake_campaign.write(tmp_path / "a.tare", replace(QUIET, blocks=3, rounds=2))
    with open_store(path) as store:
        for surface in fake_surfaces.captured():
            store.add_surface(surface)
    report = build(path)
    table = heat(report)
    assert table.columns[-1] == "exposed kernel"
    docker = answer(report, "docker")
    assert docker.calls is not None
    assert docker.baseline_calls is not None
    assert 0 < docker.calls < docker.baseline_calls
    [sentence] = [line for line in docker.sentences if line.startswith("Exposed kernel: ")]
    assert f"{docker.calls} system calls of {docker.baseline_calls}, " in sentence
    [row] = [row for row in table.rows if row.platform == "docker"]
    assert row.cells[-1].text.startswith("▼ −")
    assert heat(report.model_copy(update={"answers": []})).rows == ()
    planes = dict(trade_off(report))
    assert list(planes) == ["compute", "CPU cost", "disk", "network", "start"]
    for platform, calls in (
        (platform_answer.platform, platform_answer.calls)
        for platform_answer in report.answers
        if platform_answer.calls is not None
    ):
        assert re.search(rf"<title>{platform}: [^<]*, {calls} calls</title>", str(escape(planes["compute"])))
    assert trade_off(report.model_copy(update={"answers": []})) == []


@pytest.mark.parametrize("blocks", [1, 3])
def test_no_sentence_is_without_a_figure_or_reason(blocks: int, tmp_path: Path) -> None:
    report = build(fake_campaign.write(tmp_path / "a.tare", fake_campaign.Shape(blocks=blocks, rounds=2)))
    for platform_answer in report.answers:
        assert 1 <= len(platform_answer.sentences) <= 7
        assert all(re.search(r"\d|cannot|failed", sentence) for sentence in platform_answer.sentences), (
            platform_answer.sentences
        )
