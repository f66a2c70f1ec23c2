"""Sampled stacks in the report: shares, flame graphs, the folded export; and no sets of them anywhere."""

from __future__ import annotations

import base64
import gzip
import io
from pathlib import Path

import pytest
from rich.console import Console
from test_html import Page

import fake_footprints
from tare import cli
from tare.features.kernel.models.footprint_models import StacksReport
from tare.footprint_model import IDLE, SAMPLES_A_SECOND, USER, Footprint, Phase, Scope
from tare.model import Level
from tare.report.campaign.report_builder import build
from tare.report.campaign.report_terminal import render
from tare.report.formats.html import write_html
from tare.report.formats.table_export import export_stacks
from tare.store import read_store

_IN = "entry_SYSCALL_64_after_hwframe;do_syscall_64"
NATIVE = {f"tare-agent;{USER}": 20, f"tare-agent;{_IN};ksys_read;vfs_read": 60, f"tare-agent;{_IN}": 20}
GVISOR = {f"exe;{USER}": 90, f"exe;{_IN};do_futex": 25, f"exe;{_IN};ksys_read;vfs_read": 5}
#: What a process may call itself.
EVIL = "</script><script>alert(1)</script>"


def sampled(hits: dict[str, int], **facts: object) -> Footprint:
    fields = {"level": Level.STACKS, "scope": Scope.INSTANCE, "workload": "call-read-1b", "seconds": 2.0} | facts
    return fake_footprints.footprint(hits, **fields)


def invented() -> list[Footprint]:
    everybodys = {f"dockerd;{USER}": 7}
    return [
        sampled(GVISOR, platform="gvisor"),
        sampled(NATIVE),
        sampled(NATIVE, repeat=1, lost=3),
        sampled(NATIVE | everybodys, scope=Scope.HOST),
        sampled(NATIVE, scope=Scope.HOST, repeat=1),
        sampled(GVISOR | everybodys, platform="gvisor", scope=Scope.HOST),
        sampled({f"exe;{USER}": 4}, platform="gvisor", phase=Phase.START, workload=None),
        sampled({f"{EVIL};{USER}": 2}, platform="xen", scope=Scope.HOST),
        sampled({}, platform=IDLE, scope=Scope.HOST, workload=None),
    ]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_footprints.write(tmp_path_factory.mktemp("stacks") / "flames.tare", invented())


@pytest.fixture(scope="module")
def page(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Page:
    out = tmp_path_factory.mktemp("html") / "out.html"
    write_html([file], out)
    return Page(out.read_text())


def row(file: Path, platform: str, scope: str = "instance", phase: str = "steady") -> StacksReport:
    report = build(file).footprints
    assert report is not None
    [match] = [
        stack for stack in report.stacks if (stack.platform, stack.scope, stack.phase) == (platform, scope, phase)
    ]
    return match


def test_a_row_has_all_repeats_together(file: Path) -> None:
    native = row(file, "native")
    assert (native.samples, native.seconds, native.n_repeats, native.lost) == (200, 4.0, 2, 3)
    assert (native.kernel_percent, native.user_percent, native.guest_percent) == (80.0, 20.0, 0.0)
    assert native.cpus == pytest.approx(200 / 4.0 / SAMPLES_A_SECOND)
    assert [(entry.name, entry.percent) for entry in native.entries] == [("read", 60.0), ("the gate itself", 20.0)]
    assert [(function.name, function.percent) for function in native.own_time] == [
        ("vfs_read", 60.0),
        ("do_syscall_64", 20.0),
    ]


def test_stacks_are_no_sets(file: Path) -> None:
    report = build(file).footprints
    assert report is not None
    assert report.levels == []
    assert [stack.platform for stack in report.stacks if stack.scope == "instance"][:2] == ["native", "gvisor"]
    assert row(file, "idle", "host").kernel_percent is None


def test_other_levels_stay_as_they_are_beside_them(tmp_path: Path) -> None:
    calls = fake_footprints.invented(Level.SYSCALLS, repeats=1)
    both = build(fake_footprints.write(tmp_path / "both.tare", [*calls, *invented()])).footprints
    alone = build(fake_footprints.write(tmp_path / "alone.tare", calls)).footprints
    assert both is not None
    assert alone is not None
    assert both.levels == alone.levels
    assert len(both.stacks) == 7
    out = tmp_path / "both.html"
    write_html([tmp_path / "both.tare"], out)
    page = Page(out.read_text())
    assert "flame" in {figure.get("kind") for figure in page.figures()}
    assert any(value.endswith("have in common") for _, name, value in page.attributes if name == "aria-label")


def test_the_page_has_a_graph_of_each_that_adds_up(page: Page, file: Path) -> None:
    drawn = [figure for figure in page.figures() if figure.get("kind") == "flame"]
    assert len(drawn) == 6  # the idle host has no sample
    native = drawn[0]
    frames = [(native["names"][name], parent, samples) for name, parent, samples in native["frames"]]
    assert frames[0] == ("", -1, 200)
    assert [(name, samples) for name, parent, samples in frames if parent == 1] == [
        (USER, 40),
        ("entry_SYSCALL_64_after_hwframe", 160),
    ]
    text = " ".join(page.text)
    assert "200 samples in 4.0 s of 2 repeats; 3 of everybody's were lost" in text
    assert "120 samples in 2.0 s; none were lost" in text
    assert "do_futex 20.8 %" in text
    assert ("input", "type", "search") in page.attributes
    assert not [
        attribute for attribute in page.attributes if attribute[0] == "a" and attribute[2].endswith("-footprints")
    ]


def test_a_process_cannot_write_into_the_page(page: Page) -> None:
    assert all("alert(1)" not in script for attrs, script in page.scripts if attrs.get("type") != "application/json")
    assert any(EVIL in figure["names"] for figure in page.figures() if figure.get("kind") == "flame")


def test_the_terminal_says_where_the_cpus_were(file: Path) -> None:
    console = Console(file=io.StringIO(), width=140)
    console.print(render(build(file)))
    text = console.file.getvalue()
    assert "Where the CPUs were: call-read-1b" in text
    assert "Where the CPUs were: the start" in text
    assert "do_futex 20.8 %" in text
    assert "xen (everybody)" in text
    assert "native (everybody)" not in text
    assert "Different things" not in text


def test_folded_stacks_are_those_of_the_instances_and_once(file: Path) -> None:
    out = io.StringIO()
    with read_store(file) as store:
        count = export_stacks(store, out)
    lines = out.getvalue().splitlines()
    assert count == len(lines) == len(set(lines)) == 8
    assert f"native;call-read-1b;tare-agent;{_IN};ksys_read;vfs_read 120" in lines
    assert f"gvisor;start;exe;{USER} 4" in lines
    assert f"xen;call-read-1b;{EVIL};{USER} 2" in lines  # nothing of its own was told apart
    assert not any("dockerd" in line for line in lines)


def test_the_download_is_the_export(file: Path, page: Page) -> None:
    links = [value for tag, name, value in page.attributes if (tag, name) == ("a", "href")]
    names = [value for tag, name, value in page.attributes if (tag, name) == ("a", "download")]
    data = [link for link in links if link.startswith("data:")][names.index("flames-stacks.folded.gz")]
    out = io.StringIO()
    with read_store(file) as store:
        export_stacks(store, out)
    assert gzip.decompress(base64.b64decode(data.partition(",")[2])).decode() == out.getvalue()


@pytest.mark.parametrize("arguments", [["--table", "stacks", "--format", "csv"], ["--format", "folded"]])
def test_only_stacks_are_folded(
    file: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["tare", "export", str(file), *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert "--table stacks --format folded" in capsys.readouterr().err
