"""Counted instructions in the report: starts with their parts and units of work, in terminal, data and page."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console, Group

import fake_footprints
from tare.cli.choices import OpenPolicy
from tare.features.diff.run import show_diff
from tare.features.kernel.footprint_report.run_tables import render
from tare.footprint_model import Footprint, Phase, Scope
from tare.model import Level
from tare.report.campaign.report_builder import build
from tare.report.formats.html import write_html

#: What a process may call itself.
#: Of `show_diff`: no form for a pipeline.
NOT_ASKED = {"markdown": None, "junit": None, "sarif": None, "annotations": None, "policy": OpenPolicy.APART}
EVIL = "<script>alert(1)</script>"


def counted(hits: dict[str, int], **facts: object) -> Footprint:
    fields = {"level": Level.INSTRUCTIONS, "scope": Scope.HOST, "phase": Phase.START, "workload": None} | facts
    return fake_footprints.footprint(hits, **fields)


def start(platform: str, runs: int, repeat: int = 0) -> list[Footprint]:
    whole = {
        "user": runs + 70_000, "kernel": 2 * runs, "calls": 400, "repeated": 5_000, "ready;user": runs,
        "of;host;python3;user": 70_000, "of;instance;runc;user": runs, f"of;host;{EVIL};kernel": 2 * runs,
    }  # fmt: skip
    return [
        counted(whole, platform=platform, repeat=repeat),
        counted({"user": runs, "of;instance;runc;user": runs}, platform=platform, repeat=repeat, scope=Scope.INSTANCE),
    ]


def unit(platform: str, kernel: int) -> Footprint:
    hits = {"user": 9, "piece;0;units": 1_000, "piece;0;user": 18_000, "piece;0;kernel": 1_000 * kernel}
    return counted(hits, platform=platform, phase=Phase.STEADY, workload="call-getpid")


def all_of(factor: float = 1.0) -> list[Footprint]:
    runc = int(13_000_000 * factor)
    return [
        *start("runc", runc), *start("runc", runc + 130_000, 1), *start("native", 1_200_000), unit("native", 305),
        unit("runc", 440),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_footprints.write(tmp_path_factory.mktemp("counts") / "counts.tare", all_of())


def test_the_terminal_has_the_parts_the_range_and_what_this_is_not() -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(Group(*render(all_of())))
    text = console.export_text()
    runc = next(line for line in text.splitlines() if line.strip().startswith("runc  "))
    assert runc.split()[1:5] == ["39.20", "M", "±0.5", "%"]
    assert "18 + 305" in text
    assert "18 + 440" in text
    assert "Work, and not time" in text
    assert "python3" not in text


def test_the_data_has_everything_and_no_set_is_made_of_it(file: Path) -> None:
    report = build(file).footprints
    assert report is not None
    assert report.levels == []
    by_platform = {row.platform: row for row in report.instructions if row.phase is Phase.START}
    runc = by_platform["runc"]
    assert runc.n_repeats == 2
    assert runc.total is not None
    assert runc.user is not None
    assert (runc.total.least, runc.total.most) == (39_000_000, 39_390_000)
    assert (runc.user.median, runc.instance_kernel) == (13_065_000, None)
    units = {row.platform: row.unit for row in report.instructions if row.unit is not None}
    assert units["runc"].median == 458


def test_a_run_with_units_has_its_parts_and_is_among_the_units() -> None:
    hits = {"user": 900, "kernel": 100, "units": 10, "of;instance;gzip;user": 900, "of;instance;gzip;kernel": 100}
    console = Console(width=80, record=True, file=io.StringIO())
    work = counted(hits, platform="runc", phase=Phase.STEADY, workload="gzip")
    console.print(Group(*render([*all_of(), work])))
    text = console.export_text()
    assert "Instructions of gzip" in text
    assert "runc gzip 1,000" in text
    assert "90 + 10" in text
    assert "Instructions of call-getpid" not in text, "of pieces the whole is a matter of how many there were"


def test_of_a_virtual_machine_the_hosts_part_is_told_apart_from_its_guest(tmp_path: Path) -> None:
    console = Console(width=110, record=True, file=io.StringIO())
    [runc, *rest] = start("runc", 13_000_000)
    guest = {"of;instance;[guest];user": 4_000_000, "of;instance;[guest];kernel": 25_000_000}
    rows = [runc.model_copy(update={"hits": runc.hits | guest}), *rest]
    console.print(Group(*render(rows)))
    text = console.export_text()
    assert "on the host alone: 10.00 M, the rest in its guest" in text
    assert "[guest] 29.00 M" in text
    write_html([fake_footprints.write(tmp_path / "x.tare", rows)], tmp_path / "out.html")
    assert "on the host alone 10.00 M" in (tmp_path / "out.html").read_text()


def test_modelled_caches_are_told_by_what_they_had_of_what_they_were_asked_for(tmp_path: Path) -> None:
    console = Console(width=110, record=True, file=io.StringIO())
    model = {"fetched": 5_000, "moved": 2_000, "l1i": 100, "l1d": 300, "l2": 40, "l3": 10}
    harness = {f"of;host;python3;{part}": count // 10 for part, count in model.items()}
    [runc, *rest] = start("runc", 13_000_000)
    rows = [runc.model_copy(update={"hits": runc.hits | model | harness}), *rest]
    console.print(Group(*render(rows)))
    had = "L1i 98.0 % of 4,500, L1d 85.0 % of 1,800, L2 90.0 % of 360, L3 75.0 % of 36"
    assert f"caches: {had}" in " ".join(console.export_text().split())
    write_html([fake_footprints.write(tmp_path / "x.tare", rows)], tmp_path / "out.html")
    assert had in (tmp_path / "out.html").read_text()


def test_the_page_shows_them_and_a_commands_name_is_text_there(file: Path, tmp_path: Path) -> None:
    write_html([file], tmp_path / "out.html")
    text = (tmp_path / "out.html").read_text()
    assert "What a machine executes: instructions" in text
    assert "39.20 M ±0.5 %" in text
    assert EVIL not in text


def test_a_diff_of_two_files_finds_a_percent_and_ends_as_a_gate_does(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def diffed(*files: Path, platforms: tuple[str, ...] = ()) -> tuple[int, list[dict[str, object]]]:
        code = show_diff(files, platforms, None, absolute=False, every=True, **NOT_ASKED, as_json=True)
        return code, json.loads(capsys.readouterr().out)["changes"]

    new = fake_footprints.write(tmp_path / "new.tare", all_of(1.03))
    code, changes = diffed(file, new)
    assert code == 1
    assert [change["platform"] for change in changes if change["outcome"] == "regression"] == ["runc"]
    code, changes = diffed(file, file)
    assert code == 3, "two repeats of runc differ by more than half a percent"
    assert {change["outcome"] for change in changes if change["platform"] == "native"} == {"fine"}
    code, changes = diffed(file, platforms=("native", "runc"))
    assert code == 1
    assert {(change["workload"], change["metric"]) for change in changes} == {
        ("start", "start"), ("call-getpid", "unit"),
    }  # fmt: skip
    show_diff([file, new], (), None, absolute=False, every=True, **NOT_ASKED, as_json=False)
    text = capsys.readouterr().out
    assert "work and not time" in text
    assert "no test is made" in " ".join(text.split())
    assert "A side has one machine" not in " ".join(text.split())


def test_a_diff_of_single_machines_says_what_is_not_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = (
        fake_footprints.write(tmp_path / name, start("native", runs))
        for name, runs in (("a.tare", 1_200_000), ("b.tare", 1_300_000))
    )
    show_diff([old, new], (), None, absolute=False, every=True, **NOT_ASKED, as_json=False)
    assert "A side has one machine" in " ".join(capsys.readouterr().out.split())
