"""A campaign beside a study's published figures."""

from __future__ import annotations

import html
import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import fake_campaign
from tare.analysis import Description, Interval, MetricResult, PlatformResult, TrialCounts
from tare.analysis.results import Lone
from tare.features.studies.analysis.beside import Position, Quantity
from tare.features.studies.literature import Study, load
from tare.features.studies.model import BesideRow
from tare.features.studies.views import beside_table as module
from tare.features.studies.views.beside_table import beside, lines, ours_text, theirs_text
from tare.model import Direction
from tare.report.campaign.report_builder import build
from tare.report.campaign.report_terminal import render
from tare.report.formats.html import write_html

KARNA, LI, GIALLORENZO = load("karna-2021"), load("li-2017"), load("giallorenzo-2021")


def platform(name: str, ratio: tuple[float, float, float] | None, variability: float | None = None) -> PlatformResult:
    interval = None if ratio is None else Interval(*ratio)
    return PlatformResult(
        name, 5, 0, TrialCounts(), Description(0, None, None, None), ratio=interval, variability_overhead=variability
    )


def result(workload: str, metric: str, *platforms: PlatformResult) -> MetricResult:
    arms = (platform("native", None), *platforms)
    return MetricResult(workload, metric, "events/s", Direction.HIGHER, 0.01, None, arms)


def rows(study, *results: MetricResult) -> dict[tuple[str, str, str], BesideRow]:
    table = beside(study, results, "native")
    return {(row.metric, row.platform, row.what): row for row in table.rows}


def test_a_study_is_compared_in_per_cent_of_its_own_baseline() -> None:
    events = result("sysbench-cpu", "events-per-second", platform("docker", (0.85, 0.83, 0.87)))
    (row,) = rows(KARNA, events).values()
    assert row.study_low == row.study_high == pytest.approx(100 * 419.89 / 499.35)
    assert row.study_sd == pytest.approx(100 * 59.87 / 499.35)
    assert (row.study_n, row.where, row.study_platform) == (10, "Appendix A", "Docker")
    assert (row.our_percent, row.our_low, row.our_high, row.our_blocks) == (85.0, 83.0, 87.0, 5)
    assert row.agreement == "inside"
    assert theirs_text(row) == "84.1 ± 12.0 (n 10)"
    assert ours_text(row) == "85.0 [83.0 … 87.0] (n 5)"


@pytest.mark.parametrize(
    ("ratio", "agreement"),
    [
        ((0.84, 0.80, 0.88), "inside"),
        ((0.99, 0.97, 1.01), "open"),
        ((0.95, 0.94, 0.96), "further"),
        ((0.60, 0.59, 0.61), "nearer"),
        ((1.20, 1.19, 1.21), "other-side"),
        (None, "no-figure"),
    ],
)
def test_how_their_figure_lies_to_ours(ratio: tuple[float, float, float] | None, agreement: str) -> None:
    events = result("sysbench-cpu", "events-per-second", platform("docker", ratio))
    (row,) = rows(KARNA, events).values()
    assert row.agreement == agreement


@pytest.mark.parametrize(("study", "inverse", "percent"), [(KARNA, False, 80.0), (GIALLORENZO, True, 125.0)])
def test_one_block_has_a_figure_without_an_interval(study: Study, inverse: bool, percent: float) -> None:
    link = next(link for link in study.beside if link.inverse == inverse)
    docker = replace(platform("docker", None), n_blocks=1, lone=Lone(0.8, 0.25))
    row = rows(study, result(link.workload, link.ours, docker))[link.metric, "docker", Quantity.PERCENT]
    assert (row.our_percent, row.our_low, row.our_high, row.agreement) == (percent, None, None, "no-interval")
    assert ours_text(row) == f"{percent} (n 1)"
    assert module.WORDS[row.agreement] == "ours has no interval"


def test_a_kindred_platform_is_set_beside_and_a_strange_one_is_not() -> None:
    arms = [platform(name, (1.0, 0.9, 1.1)) for name in ("runc", "gvisor", "docker-gvisor-ptrace", "uml", "qemu")]
    by_key = rows(KARNA, result("sysbench-cpu", "events-per-second", *arms))
    assert {(row.platform, row.study_platform) for row in by_key.values()} == {
        ("runc", "Docker"), ("gvisor", "gVisor"), ("docker-gvisor-ptrace", "gVisor"), ("qemu", "KVM"),
    }  # fmt: skip


def test_words_and_variability_stand_beside_ours_too() -> None:
    docker = platform("docker", (0.97, 0.96, 0.98), variability=0.4)
    by_key = rows(LI, result("stream", "triad", docker), result("iperf3-tcp", "from-instance", docker))
    equal = by_key["Triad", "docker", "per cent of the baseline"]
    assert (equal.study_low, equal.study_high, equal.agreement) == (100.0, 100.0, "nearer")
    assert equal.words == "as well as the physical machine on average"
    spread = by_key["Triad", "docker", "variability overhead"]
    assert (spread.study_low, spread.our_percent, spread.our_low, spread.agreement) == (
        500.0,
        40.0,
        None,
        "no-interval",
    )
    sheet = by_key["Communication throughput", "docker", "variability overhead"]
    assert sheet.study_low == 54.27986481


def test_a_deviation_in_per_cent_of_the_value_becomes_one_of_the_baseline() -> None:
    link = next(candidate for candidate in GIALLORENZO.beside if candidate.metric == "Input per char")
    by_key = rows(GIALLORENZO, result("bonnie", link.ours, platform("docker", (0.6, 0.5, 0.7))))
    row = by_key["Input per char", "docker", "per cent of the baseline"]
    assert (row.study_low, row.study_sd) == (58.7, pytest.approx(58.7 * 2.05 / 100))


def test_what_was_not_measured_and_what_is_not_comparable_is_said() -> None:
    table = beside(KARNA, [], "native", "2 blocks instead of 10")
    assert table.rows == []
    assert len(table.absent) == len(KARNA.beside)
    assert any(sentence.startswith("Boot time: ") for sentence in table.apart)
    assert any(sentence.startswith("Network received: ") for sentence in table.apart)
    assert not any("MySQL" in sentence for sentence in table.apart)  # its databases are measured
    assert table.scaled == "2 blocks instead of 10"
    assert beside(KARNA, [], "native").scaled is None


def of_karnas(folder: Path) -> Path:
    """An invented campaign of a study's profile."""
    shape = fake_campaign.Shape(
        blocks=4, rounds=3, profile="karna-2021", scale="scaled", workloads=("sysbench-fileio-seqrd", "startup")
    )
    return fake_campaign.write(folder / "study.tare", shape)


def test_a_campaign_that_ran_a_studys_profile_is_set_beside_it_unasked(tmp_path: Path) -> None:
    file = of_karnas(tmp_path)
    report = build(file)
    assert (report.profile, report.scale) == ("karna-2021", "scaled")
    assert report.beside is not None
    assert report.beside.study == "karna-2021"
    assert report.beside.scaled == f"4 blocks instead of 10; {KARNA.run.what_is_scaled}"
    assert {row.platform for row in report.beside.rows} == {"docker", "runc", "gvisor-ptrace"}
    other = build(file, {"beside": "li-2017"})
    assert other.beside is not None
    assert (other.beside.study, other.beside.scaled) == ("li-2017", None)


def test_every_word_for_agreement_is_there() -> None:
    assert set(module.WORDS) == set(Position)


def test_the_terminal_and_the_page_have_the_table(tmp_path: Path, campaign: Path) -> None:
    file = of_karnas(tmp_path)
    report = build(file)
    assert report.beside is not None
    cells = list(lines(report.beside))
    assert {line[1] for line in cells} == {"docker", "runc (as Docker)", "gvisor-ptrace (as gVisor)"}
    with Console(width=140, record=True, file=io.StringIO()) as console:
        console.print(render(report, width=140))
    text = console.export_text()
    assert "profile karna-2021 (scaled)" in text
    assert "Beside the figures of karna-2021 (Kärnä, 2021)" in text
    write_html([file], tmp_path / "page.html")
    page = html.unescape((tmp_path / "page.html").read_text())
    for line in cells:
        assert all(part in text and part in page for part in line)
    for sentence in (*report.beside.apart, *report.beside.notes, *report.beside.absent):
        assert sentence in page
    assert build(campaign).beside is None, "its profile is no study's"
