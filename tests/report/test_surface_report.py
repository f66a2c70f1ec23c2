"""Surfaces in a campaign's report: in the terminal, on the page, as JSON and as an export."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from test_html import Page

import fake_footprints
import fake_surfaces
from fake_surfaces import CALLS, surface, tasks
from tare.features.kernel.models.surface_models import SurfacesReport
from tare.footprint_model import Call
from tare.report.campaign.report_builder import build
from tare.report.campaign.report_terminal import render
from tare.report.formats.html import write_html
from tare.report.formats.table_export import CampaignTable, Format, export
from tare.report.formats.table_frames import names
from tare.report.model import Report, to_json
from tare.report.section import alone
from tare.store import open_store, read_store


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of the surfaces of native, runc, docker and gvisor, and of nothing else."""
    return fake_surfaces.write(tmp_path_factory.mktemp("surfaces") / "kernel.tare", fake_surfaces.captured())


@pytest.fixture(scope="module")
def surfaces_report(file: Path) -> SurfacesReport:
    report = build(file).surfaces
    assert report is not None
    return report


def text(report: Report) -> str:
    console = Console(width=160, highlight=False, color_system=None)
    with console.capture() as captured:
        console.print(render(report))
    return captured.get()


@pytest.mark.thorough
def test_platforms_come_as_the_record_lists_them_with_the_counts_of_their_filters(
    surfaces_report: SurfacesReport,
) -> None:
    assert [entry.platform for entry in surfaces_report.surfaces] == ["native", "runc", "docker", "gvisor"]
    by_name = {entry.platform: entry for entry in surfaces_report.surfaces}
    of = by_name["native"].of
    assert by_name["native"].counts["allowed"] == of
    assert by_name["docker"].counts["conditional"] == 2
    gvisor = by_name["gvisor"]
    assert sum(gvisor.counts.values()) == of == len(gvisor.calls)
    assert [(process.role, process.counts["allowed"]) for process in gvisor.processes] == [
        ("sentry", 48),
        ("gofer", 38),
    ]
    assert gvisor.counts["allowed"] > 48
    assert [(process.role, process.counted) for process in by_name["docker"].processes] == [
        ("sandboxed", True),
        ("outside", False),
    ]


def test_every_call_is_in_one_region_and_a_region_is_what_its_platforms_let_through(
    surfaces_report: SurfacesReport,
) -> None:
    calls = [call for region in surfaces_report.regions for call in region.calls]
    assert sorted(calls) == sorted(surfaces_report.surfaces[0].calls)
    for entry in surfaces_report.surfaces:
        through = {name for name, call in entry.calls.items() if call in ("allowed", "conditional")}
        assert through == {
            call for region in surfaces_report.regions if entry.platform in region.platforms for call in region.calls
        }
    [alone] = [region for region in surfaces_report.regions if region.platforms == ["native", "runc"]]
    assert {"mount", "keyctl", "bpf"} <= set(alone.calls)


def test_the_studys_table_stands_beside(surfaces_report: SurfacesReport) -> None:
    rows = {row.platform: row for row in surfaces_report.beside.rows}
    assert (rows["LXC"].blocked, rows["Firecracker"].allowed, rows["Firecracker"].ours) == (44, 36, [])
    assert [(platform.platform, platform.part, platform.allowed) for platform in rows["gVisor"].ours] == [
        (
            "gvisor",
            "whole",
            next(entry for entry in surfaces_report.surfaces if entry.platform == "gvisor").counts["allowed"],
        ),
        ("gvisor", "sentry", 48),
    ]
    assert [platform.platform for platform in rows["LXC"].ours] == ["docker", "runc"]  # what stands for it first


def test_of_several_surfaces_of_a_platform_the_last_counts_and_all_are_exported(tmp_path: Path) -> None:
    less = {**CALLS, "read": Call.KILL}
    path = fake_surfaces.write(tmp_path / "a.tare", [surface(calls=less), surface("native"), surface(at=1763800000.0)])
    report = build(path).surfaces
    docker = next(entry for entry in report.surfaces if entry.platform == "docker")
    assert (docker.counts["kill"], docker.n_read, docker.at) == (0, 2, 1763800000.0)
    assert "docker was read 2 times: this is the last" in text(build(path))
    out, lines = io.StringIO(), io.StringIO()
    with read_store(path) as store:
        assert export(store, CampaignTable.SURFACES, Format.CSV, out) == 3 * len(CALLS)
        assert export(store, CampaignTable.SURFACES, Format.JSONL, lines) == 3 * len(CALLS)
    rows = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert list(rows[0]) == names(CampaignTable.SURFACES)
    assert [row["outcome"] for row in rows if row["platform"] == "docker" and row["call"] == "read"] == [
        "kill", "allowed",
    ]  # fmt: skip
    assert {row["call"]: row["answers"] for row in rows} == {
        "read": "allow", "clone": "allow | errno 38", "mount": "errno 1", "bpf": "trap",
    }  # fmt: skip
    assert json.loads(lines.getvalue().splitlines()[0]) | {"campaign": ""} == {
        "campaign": "", "platform": "docker", "at": 1763712000.0, "kernel": fake_surfaces.KERNEL, "call": "read",
        "outcome": "kill", "answers": "allow", "unread": False,
    }  # fmt: skip


def test_what_could_not_be_read_is_in_no_region_and_says_so(tmp_path: Path) -> None:
    nothing = surface("gvisor", tasks("stub", None), calls=None, unread=("stub: another process traces it",))
    path = fake_surfaces.write(tmp_path / "a.tare", [surface("native"), nothing])
    report = build(path)
    assert all("gvisor" not in region.platforms for region in report.surfaces.regions)
    assert "? gvisor: filters of the stub: another process traces it" in text(report)
    assert write_html([path], tmp_path / "a.html")
    assert "may be too low" in (tmp_path / "a.html").read_text()
    with read_store(path) as store:
        assert export(store, CampaignTable.SURFACES, Format.CSV, io.StringIO()) == len(CALLS)


@pytest.mark.thorough
def test_a_file_of_surfaces_or_footprints_alone_says_so_and_no_profile(file: Path, tmp_path: Path) -> None:
    both = fake_surfaces.write(tmp_path / "b.tare", fake_surfaces.captured())
    with open_store(both) as store:
        for footprint in fake_footprints.invented(repeats=1):
            store.add_footprint(footprint)
    footprints = fake_footprints.write(tmp_path / "f.tare", fake_footprints.invented(repeats=1))
    timed = fake_surfaces.write(tmp_path / "t.tare", fake_surfaces.captured(), trials=True)
    contents = {file: "surfaces", both: "surfaces and footprints", footprints: "footprints", timed: None}
    for path, held in contents.items():
        report = build(path)
        assert alone(report) == held
        head = text(report).splitlines()[0]
        write_html([path], tmp_path / "page.html")
        facts = "".join(Page((tmp_path / "page.html").read_text()).text).split("Host and fairness")[0]
        for shown in (head, facts):
            assert ("profile" in shown) is (held is None)
            assert held is None or f"{held} alone" in shown


def test_the_page_has_the_tables_the_figure_and_every_call(
    file: Path, surfaces_report: SurfacesReport, tmp_path: Path
) -> None:
    write_html([file], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    shown = "".join(Page(page).text)
    for part in (
        "What a tenant may ask of the kernel",
        "all except 44",
        "its sentry",
        "not counted of runc, docker: containerd-shim",
    ):
        assert part in shown
    assert page.count("<circle class=") == 3  # native and runc are one
    assert "native, runc only" in shown
    assert "have in common" in page.split('id="c1-surfaces"')[1].split("</section>")[0]
    for region in surfaces_report.regions:
        assert f": {len(region.calls)}</summary>" in page
        assert all(f"<code>{call}" in page for call in region.calls)
    assert "kernel-surfaces.csv.gz" in page


def test_a_region_is_named_by_the_fewer_platforms_and_calls_with_conditions_are_marked(tmp_path: Path) -> None:
    every = {name: {**CALLS, "mount": Call.ALLOWED} for name in ("native", "runc", "crun")}
    few = surface("docker", calls={**CALLS, "mount": Call.ERRNO, "keyctl": Call.ALLOWED})
    report = build(fake_surfaces.write(tmp_path / "a.tare", [*(surface(n, calls=c) for n, c in every.items()), few]))
    shown = [" ".join(line.split()) for line in text(report).splitlines()]
    assert shown[shown.index("all but docker: 1") + 1] == "mount"
    assert shown[shown.index("docker alone: 1") + 1] == "keyctl"
    alone = surface("native", calls={**CALLS, "clone": Call.ERRNO})
    report = build(fake_surfaces.write(tmp_path / "b.tare", [surface("docker"), alone]))
    assert "clone*" in text(report)


def test_names_from_a_file_are_text_everywhere(tmp_path: Path) -> None:
    nasty = "<script>alert(1)</script>\x1b[2J"
    nasty_tasks = tasks(program=nasty, label=nasty, devices=(nasty,), effective=(nasty,), namespaces=(nasty,))
    path = fake_surfaces.write(
        tmp_path / "a.tare", [surface(nasty, nasty_tasks, calls={nasty: Call.ALLOWED}), surface("native")]
    )
    write_html([path], tmp_path / "page.html")
    assert "<script>alert(1)" not in (tmp_path / "page.html").read_text()
    assert "\x1b" not in text(build(path))


def test_json_has_it_and_a_file_without_has_none(file: Path, campaign: Path) -> None:
    data = json.loads(to_json([build(file)]))
    assert data["results"] == []
    assert data["surfaces"]["surfaces"][2]["calls"]["mount"] == "errno"
    assert build(campaign).surfaces is None
