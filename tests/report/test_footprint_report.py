from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from markupsafe import escape
from rich.console import Console
from test_html import Page

import fake_footprints
from tare.errors import UsageError
from tare.features.kernel.analysis.attack_profile import BugDensities
from tare.features.kernel.analysis.footprint_sets import Exposure, View
from tare.features.kernel.footprint_report.footprint_figures import overlaps
from tare.features.kernel.footprint_report.footprint_parts import (
    FootprintInputs,
    exposures,
    footprints_report,
    of_store,
    read_files,
)
from tare.features.kernel.footprint_report.upset_drawings import upset
from tare.features.kernel.models.footprint_models import FootprintsReport, LevelReport
from tare.features.kernel.words import footprint_words
from tare.footprint_model import EMPTY, IDLE, Footprint, Phase, Scope
from tare.model import Level
from tare.report.campaign.report_builder import build
from tare.report.campaign.report_terminal import render
from tare.report.formats.html import write_html
from tare.report.formats.table_export import CampaignTable, Format, export
from tare.report.formats.table_frames import names
from tare.report.model import to_json
from tare.store import read_store


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with footprints of lines and calls, and no trials."""
    prints = [*fake_footprints.invented(Level.LINES), *fake_footprints.invented(Level.SYSCALLS, repeats=1)]
    return fake_footprints.write(tmp_path_factory.mktemp("lines") / "kernel.tare", prints)


def report_of(*prints: Footprint, inputs: FootprintInputs | None = None) -> FootprintsReport:
    report = footprints_report(exposures(prints), "native", inputs or FootprintInputs())
    assert report is not None
    return report


def level_of(path: Path, level: str = "lines") -> LevelReport:
    report = build(path).footprints
    assert report is not None
    return next(report for report in report.levels if report.level == level)


def test_sets_are_those_of_the_analysis(lines: Path) -> None:
    level = level_of(lines)
    exposure = Exposure(fake_footprints.invented(Level.LINES))
    assert level.phases == ["start", "steady", "both"]
    assert level.view == "beyond-idle"
    for platform in fake_footprints.PLATFORMS:
        for phase, at in (("start", Phase.START), ("steady", Phase.STEADY), ("both", None)):
            counted = level.set_of(platform, "beyond-idle", phase)
            size = len(exposure.things(platform, View.BEYOND_IDLE, at))
            assert (counted.things, counted.share_percent) == (size, pytest.approx(100 * size / 5_000))
            assert counted.n_repeats == 3
            assert counted.jaccard_least <= counted.jaccard_mean <= 1
            assert counted.things <= counted.estimate_low <= counted.estimate <= counted.estimate_high
    assert (
        level.set_of("docker", "beyond-idle", "both", "sysbench-cpu").things
        < level.set_of("docker", "beyond-idle", "both").things
    )


def test_platforms_come_as_the_record_lists_them_whatever_the_walk_drew(lines: Path, tmp_path: Path) -> None:
    shuffled = fake_footprints.invented(Level.LINES)
    np.random.default_rng(4).shuffle(shuffled)
    path = fake_footprints.write(tmp_path / "shuffled.tare", shuffled)
    level = level_of(path)
    assert level.platforms == ["native", "docker", "gvisor"]
    assert level.workloads == sorted(fake_footprints.WORKLOADS)
    assert level.sets == level_of(lines).sets


def test_regions_add_up_to_the_sets_everywhere(lines: Path) -> None:
    level = level_of(lines)
    for overlap in level.overlaps:
        for platform in overlap.platforms:
            counted = level.set_of(platform, overlap.view, overlap.phase, overlap.workload)
            assert counted.things == sum(region.things for region in overlap.regions if platform in region.platforms)
    for row in level.directories:
        assert row.union == sum(region.things for region in row.regions)
        for platform, count in row.things.items():
            assert count == sum(region.things for region in row.regions if platform in region.platforms)
    by_name = {directory.directory: directory for directory in level.directories}
    assert by_name["fs/overlayfs"].things == {"native": 0, "docker": 30, "gvisor": 0}
    assert by_name["mm"].in_all == 10


def test_one_repeat_has_no_estimate_and_says_so(lines: Path) -> None:
    level = level_of(lines, "syscalls")
    counted = level.set_of("native", "instance", "both")
    assert (counted.jaccard_mean, counted.estimate) == (None, None)
    assert "not enough repeats" in counted.why_no_estimate
    assert level.directories == []
    assert level.files == []


def test_files_that_one_platform_alone_runs_come_first(lines: Path) -> None:
    level = level_of(lines)
    assert [file.file for file in level.files][:2] == ["kernel/seccomp.c", "fs/overlayfs/super.c"]
    assert level.files[0].exclusive == {"native": 0, "docker": 0, "gvisor": 35}
    alone = [sum(file.exclusive.values()) for file in level.files]
    assert alone == sorted(alone, reverse=True)
    assert level.n_files >= len(level.files)


def test_the_attack_profile_counts_or_weighs(lines: Path) -> None:
    level = level_of(lines)
    for row in level.attack_profiles:
        counted = level.set_of(row.platform, "beyond-idle", row.phase)
        assert (row.score, row.share_percent) == (counted.things, counted.share_percent)
    densities = BugDensities(title="fixes", default=0.0, density={"fs/": 2.0})
    with read_store(lines) as store:
        report = footprints_report(of_store(store), "native", FootprintInputs(densities=densities))
    rows = {(profile.platform, profile.phase): profile for profile in report.levels[-1].attack_profiles}
    assert rows["native", "both"].score == 2 * 60
    assert rows["docker", "both"].score == 2 * 90
    assert rows["docker", "both"].of_baseline == 1.5
    assert rows["gvisor", "both"].share_percent is None
    assert not report.uniform


def test_our_lines_stand_beside_the_papers(lines: Path) -> None:
    beside = {line.what: line for line in build(lines).footprints.beside}
    lxc = beside["LXC: lines executed, all workloads"]
    assert (lxc.study_lines, lxc.study_share_percent) == (90595, 11.23)
    assert (lxc.platforms, lxc.lines) == (["docker"], level_of(lines).set_of("docker", "beyond-idle", "both").things)
    firecracker = beside["Firecracker: lines executed, all workloads"]
    assert (firecracker.platforms, firecracker.lines) == ([], None)
    bridge = beside["LXC, gVisor: Lines of /net/bridge that both execute"]
    assert (bridge.study_lines, bridge.platforms, bridge.lines) == (1426, ["docker", "gvisor"], 20)
    shared = next(line for description, line in beside.items() if "Firecracker does not" in description)
    assert (shared.study_lines, shared.lines) == (33557, None)


def test_what_a_text_says_of_a_directory_stands_beside_the_same_region_of_ours() -> None:
    kvm = [f"arch/x86/kvm/x86.c:{line}" for line in range(1, 11)]
    ran = {"firecracker": [*kvm, "virt/kvm/kvm_main.c:1"], "gvisor": [*kvm[6:], "virt/kvm/kvm_main.c:1", "fs/open.c:2"]}
    ran["docker"] = ["fs/open.c:1", "fs/open.c:2", "fs/ext4/inode.c:3"]
    prints = [
        fake_footprints.footprint(dict.fromkeys(lines, 9), platform=name, workload=workload)
        for name, lines in ran.items()
        for workload in ("sysbench-cpu", "sysbench-fileio-seqwr")
    ]
    beside = {line.what: (line.study_lines, line.lines) for line in report_of(*prints).beside}
    assert beside["Firecracker: Lines of arch/x86/kvm more than gVisor's, CPU workload"] == (2550, 10 - 4)
    assert beside["LXC: Lines of /virt, CPU workload"] == (0, 0)
    assert beside["Firecracker, gVisor: Lines of /virt that Firecracker and gVisor share, CPU workload"] == (649, 1)
    assert beside["LXC, gVisor: Lines of /fs that both execute, file workload (about)"] == (18_000, 1)
    assert beside["Firecracker: Lines of /fs/overlayfs, file workload"] == (0, 0)
    assert beside["LXC, gVisor: Lines of /net/core that both execute"] == (2231, None)  # no such workload was counted


def test_functions_have_directories_where_their_files_are_told(tmp_path: Path) -> None:
    listed = tmp_path / "functions.csv"
    listed.write_text("name,file\ndo_mmap,mm/mmap.c\n")
    footprint = fake_footprints.footprint({"do_mmap": 5, "vfs_read": 7}, level=Level.FUNCTIONS)
    (level,) = report_of(footprint, inputs=FootprintInputs(files=read_files(listed))).levels
    assert {directory.directory: directory.things["native"] for directory in level.directories} == {
        "mm": 1,
        "unknown": 1,
    }
    assert report_of(footprint).levels[0].directories == []
    listed.write_text("a,b\n")
    with pytest.raises(UsageError, match="two columns name and file"):
        read_files(listed)
    with pytest.raises(UsageError, match="does not exist"):
        read_files(tmp_path / "none.csv")


def test_only_an_idle_host_is_a_report_too(tmp_path: Path) -> None:
    idle = fake_footprints.footprint({"a.c:1": 3}, platform=IDLE, workload=None)
    path = fake_footprints.write(tmp_path / "idle.tare", [idle])
    level = level_of(path)
    assert (level.platforms, level.view, level.idle_things, level.sets) == ([], None, 1, [])
    write_html([path], tmp_path / "idle.html")
    assert "Only the idle host was counted" in (tmp_path / "idle.html").read_text()


def test_what_readings_leave_is_told_and_is_in_no_figure(tmp_path: Path) -> None:
    left = {f"fs/seq_file.c:{line}": 400 for line in range(30)}
    read = [
        footprint.model_copy(update={"hits": footprint.hits | left})
        for footprint in fake_footprints.invented(Level.LINES)
    ]
    empty = [fake_footprints.footprint(left, platform=EMPTY, workload=None, repeat=at, seconds=1e-6) for at in range(3)]
    (clean,) = report_of(*fake_footprints.invented(Level.LINES)).levels
    (level,) = report_of(*read, *empty).levels
    assert level.reading_things == 30
    assert level.model_dump(exclude={"reading_things"}) == clean.model_dump(exclude={"reading_things"})
    assert "What a reading leaves by itself, 30 of them, is taken off by hits" in footprint_words.facts(level)
    warning = "No empty reading was counted"
    assert not [note for note in footprint_words.notes(level) if warning in note]
    assert [note for note in footprint_words.notes(clean) if warning in note]
    assert clean.reading_things is None
    path = fake_footprints.write(tmp_path / "read.tare", [*read, *empty])
    out = io.StringIO()
    with read_store(path) as store:
        export(store, CampaignTable.FOOTPRINTS, Format.CSV, out)
    rows = [row for row in csv.DictReader(io.StringIO(out.getvalue())) if row["platform"] == EMPTY]
    assert len(rows) == 3 * 30
    assert {row["hits"] for row in rows} == {"400"}


def test_calls_have_no_readings_to_be_taken_off() -> None:
    (level,) = report_of(*fake_footprints.invented(Level.SYSCALLS)).levels
    assert not [note for note in footprint_words.notes(level) if "reading" in note]
    assert "reading" not in footprint_words.facts(level)


@pytest.mark.thorough
def test_a_file_without_footprints_has_none(campaign: Path) -> None:
    assert build(campaign).footprints is None
    assert exposures([]) == {}


def test_lost_events_and_lacking_workloads_are_told() -> None:
    prints = [
        fake_footprints.footprint({"a": 1}, workload="cpu", lost=12),
        fake_footprints.footprint({"a": 1}, workload="net"),
        fake_footprints.footprint({"a": 1}, workload="cpu", platform="docker"),
        fake_footprints.footprint({"b": 1}, workload="cpu", scope=Scope.INSTANCE),
    ]
    (level,) = report_of(*prints).levels
    assert level.set_of("native", "host", "steady").lost == 12
    assert level.set_of("docker", "host", "steady").lacking == ["net"]
    assert level.set_of("docker", "instance", "steady") is None
    assert level.idle_seconds is None


# --- the page ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A source tree that has some of the invented files."""
    top = tmp_path_factory.mktemp("linux")
    for file, count in {"kernel/seccomp.c": 60, "mm/mmap.c": 400, "fs/overlayfs/super.c": 7}.items():
        (top / file).parent.mkdir(parents=True, exist_ok=True)
        (top / file).write_text("".join(f"\tif (</script> {line})\n" for line in range(1, count + 1)))
    return top


@pytest.fixture(scope="module")
def page(lines: Path, tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Page:
    out = tmp_path_factory.mktemp("html") / "out.html"
    write_html([lines], out, options={"sources": tree})
    return Page(out.read_text())


def test_the_page_has_the_figures_of_the_report(page: Page, lines: Path) -> None:
    text = " ".join(" ".join(page.text).split())
    level = level_of(lines)
    for platform in level.platforms:
        assert f"{level.set_of(platform, 'beyond-idle', 'both').share_percent:.2f} %" in text
    assert "No densities were given" in text
    assert "no measure of security" in text
    assert "90,595" in text
    assert "Noise floor" not in text  # there are no trials
    assert {"c1-headline", "c1-noise", "c1-workloads"}.isdisjoint(
        value for _, name, value in page.attributes if name == "id"
    )
    assert page.tags.count("svg") > 6


def test_every_upset_plot_has_the_regions(page: Page, lines: Path) -> None:
    pictures = [label for tag, name, label in page.attributes if (tag, name) == ("svg", "aria-label")]
    assert len([label for label in pictures if label.endswith("have in common")]) == 6  # three phases at two levels
    bars = overlaps(level_of(lines))[0].bars
    assert str(escape(upset(bars))) in page.raw
    whole = next(
        overlap
        for overlap in level_of(lines).overlaps
        if (overlap.view, overlap.phase, overlap.workload) == ("beyond-idle", "both", None)
    )
    sizes = {tuple(bars.platforms[at] for at in bar.inside): bar.things for bar in bars.bars}
    assert sizes == {tuple(region.platforms): region.things for region in whole.regions}
    assert bars.hidden == 0
    for region in whole.regions:
        only = " only" if len(region.platforms) < len(bars.platforms) else ""
        assert f"<title>{' and '.join(region.platforms)}{only}: {region.things:,}</title>" in page.raw


def test_sources_have_hits_side_by_side(page: Page, lines: Path) -> None:
    shown = [figure for figure in page.figures() if "rows" in figure and "seconds" in figure]
    assert len(shown) == 2
    seccomp = next(figure for figure in shown if figure["rows"][0] is not None)
    assert seccomp["platforms"] == list(fake_footprints.PLATFORMS)
    number, text, *hits = seccomp["rows"][0]
    assert (number, text) == (1, "\tif (</script> 1)")
    with read_store(lines) as store:
        pool = Exposure(fake_footprints.invented(Level.LINES)).pool("gvisor", Scope.HOST)
        assert store.record.baseline == "native"
    assert hits == [0, 0, pool.hits["kernel/seccomp.c:1"]]
    assert len(seccomp["rows"]) == 38  # 35 that ran, and three after them
    text = " ".join(page.text)
    assert "fs/overlayfs/super.c has fewer lines than were counted" in text
    assert "net/bridge/br.c is not in the source tree that was given" in text


def test_a_name_in_a_file_never_leads_out_of_the_source_tree(tmp_path: Path, tree: Path) -> None:
    (tmp_path / "secret.c").write_text("the secret\n")
    outside = f"../../{tmp_path.name}/secret.c:1"
    absolute = f"{tmp_path}/secret.c:1"
    prints = [
        fake_footprints.footprint({outside: 5, absolute: 5, "mm/mmap.c:1": 5}, seconds=1.0),
        fake_footprints.footprint({"mm/mmap.c:1": 5}, platform="docker", seconds=1.0),
    ]
    path = fake_footprints.write(tmp_path / "odd.tare", prints)
    write_html([path], tmp_path / "odd.html", options={"sources": tree})
    page = (tmp_path / "odd.html").read_text()
    assert "the secret" not in page
    assert page.count("is not in the source tree that was given") == 2


def test_no_directory_is_no_source_tree(lines: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no directory"):
        write_html([lines], tmp_path / "x.html", options={"sources": tmp_path / "none"})


def test_the_page_downloads_a_row_a_thing(page: Page) -> None:
    names = [value for tag, name, value in page.attributes if (tag, name) == ("a", "download")]
    assert {"kernel-lines.csv.gz", "kernel-syscalls.csv.gz"} <= set(names)


def test_a_campaign_with_trials_keeps_its_own_page(tmp_path: Path) -> None:
    path = fake_footprints.write(tmp_path / "both.tare", fake_footprints.invented(), trials=True)
    (report,) = write_html([path], tmp_path / "both.html")
    text = (tmp_path / "both.html").read_text()
    assert report.results
    assert 'id="c1-noise"' in text
    assert 'id="c1-footprints"' in text


def test_names_from_a_store_stay_text(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    prints = [
        fake_footprints.footprint({evil: 500}, platform=evil, workload=evil, level=Level.FUNCTIONS),
        fake_footprints.footprint({evil: 100}, workload=evil, level=Level.FUNCTIONS),
    ]
    path = fake_footprints.write(tmp_path / "evil.tare", prints)
    write_html([path], tmp_path / "evil.html")
    text = (tmp_path / "evil.html").read_text()
    assert evil not in text
    Page(text)


def printed(path: Path, width: int = 120) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(render(build(path), width=width))
    return console.export_text()


def test_a_terminal_shows_a_row_a_platform(lines: Path) -> None:
    text = printed(lines)
    level = level_of(lines)
    for platform in level.platforms:
        counted = level.set_of(platform, "beyond-idle", "both")
        (row,) = (line for line in text.split("Kernel lines")[1].splitlines() if line.split()[:1] == [platform])
        assert f"{counted.things:,}" in row
        assert f"{counted.share_percent:.2f} %" in text
    assert "not enough repeats" in text
    assert "no-data" not in text
    assert "kata" in text  # what was left out is told as ever


def test_a_terminal_is_not_told_what_to_do_by_a_store(tmp_path: Path) -> None:
    path = fake_footprints.write(
        tmp_path / "odd.tare", [fake_footprints.footprint({"a": 1}, platform="\x1b[2Jbad", workload="x\x1by")]
    )
    assert "\x1b" not in printed(path)


# --- exports and JSON ----------------------------------------------------------------------------------------


def test_the_export_has_a_row_a_thing_and_footprint(lines: Path) -> None:
    text, json_lines = io.StringIO(), io.StringIO()
    with read_store(lines) as store:
        count = export(store, CampaignTable.FOOTPRINTS, Format.CSV, text)
        assert export(store, CampaignTable.FOOTPRINTS, Format.JSONL, json_lines) == count
    rows = list(csv.DictReader(io.StringIO(text.getvalue())))
    prints = [*fake_footprints.invented(Level.LINES), *fake_footprints.invented(Level.SYSCALLS, repeats=1)]
    assert list(rows[0]) == names(CampaignTable.FOOTPRINTS)
    exported = [(row["platform"], row["phase"], row["workload"], row["thing"], int(row["hits"])) for row in rows]
    assert exported == [
        (footprint.platform, footprint.phase.value, footprint.workload or "", thing, hits)
        for footprint in prints
        for thing, hits in footprint.hits.items()
    ]
    plain = [
        {key: "" if value is None else str(value) for key, value in json.loads(line).items()}
        for line in json_lines.getvalue().splitlines()
    ]
    assert plain == rows
    assert len(rows) == count


def test_an_export_without_footprints_is_its_heading(campaign: Path) -> None:
    out = io.StringIO()
    with read_store(campaign) as store:
        assert export(store, CampaignTable.FOOTPRINTS, Format.CSV, out) == 0
    assert out.getvalue() == ",".join(names(CampaignTable.FOOTPRINTS)) + "\n"


def test_the_json_goes_round(lines: Path) -> None:
    report = build(lines)
    data = json.loads(to_json([report]))
    assert data["results"] == []
    assert dict(FootprintsReport.model_validate(data["footprints"])) == dict(report.footprints)
