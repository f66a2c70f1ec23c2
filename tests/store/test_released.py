"""Files of every format version: tare reads them as they are, shows them by every command, and goes on in them."""

import contextlib
import csv
import io
import shutil
import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from campaign.fakes import FakeLauncher, Quiet, a_plan
from tare.campaign.execution import resume_checks
from tare.campaign.execution.runner import Runner
from tare.cli import app
from tare.errors import StoreError
from tare.report.campaign.report_builder import build
from tare.store import open_store, read_store
from tare.store.durations import block_durations
from tare.store.migrations import FORMAT_VERSION, READABLE

RELEASED = Path(__file__).parent / "released"
FILES = sorted([*RELEASED.glob("whole-*.tare"), *RELEASED.glob("interrupted-*.tare")])
FOOTPRINTS = sorted(RELEASED.glob("footprints-*.tare"))
CUT_OFF = sorted(RELEASED.glob("interrupted-*.tare"))


@pytest.fixture
def tare():
    """Runs a command in this process: what it prints."""

    def run(*words):
        done = CliRunner().invoke(app, words, catch_exceptions=False)
        # Nothing is on standard error where all that was printed went to standard output: the click of the oldest typer
        # keeps both apart only by an option that newer ones do not have.
        assert (done.exit_code, done.output) == (0, done.stdout)
        return done.stdout

    return run


@pytest.fixture(params=FILES, ids=lambda file: file.stem)
def file(request, tmp_path):
    return Path(shutil.copy(request.param, tmp_path / "there.tare"))


def test_there_are_some_of_every_version_that_is_read():
    kinds = ("interrupted", "whole", "footprints")
    expected = {f"{kind}-{version}.tare" for kind in kinds for version in READABLE}
    assert {file.name for file in RELEASED.glob("*.tare")} == expected


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["report", "{}", "--json"], '"schema": "tare.report/2"'),
        (["report", "{}"], "Against"),
        (["report", "{}", "--all"], "workload"),
        (["compare", "{}"], "cpu-cost"),
        (["spread", "{}"], "native"),
        (["score", "{}"], "native"),
        (["export", "{}", "--format", "csv"], "native"),
        (["export", "{}", "--format", "csv", "--table", "telemetry"], "at"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_every_command_that_reads_reads_it_and_changes_nothing(tare, file, words, expected):
    before = file.read_bytes()
    assert expected in tare(*(str(file) if word == "{}" else word for word in words))
    assert file.read_bytes() == before


@pytest.mark.parametrize("released", FOOTPRINTS, ids=lambda file: file.stem)
def test_footprints_and_surfaces_are_shown_and_nothing_is_changed(released, tare, tmp_path):
    file = Path(shutil.copy(released, tmp_path / "there.tare"))
    before = file.read_bytes()
    assert "surfaces and footprints alone" in tare("report", str(file))
    for table, columns in (("footprints", "thing"), ("surfaces", "outcome")):
        rows = list(csv.DictReader(io.StringIO(tare("export", str(file), "--format", "csv", "--table", table))))
        assert {row["platform"] for row in rows} >= {"native", "runc"}
        assert all(row[columns] for row in rows)
    assert tare("export", str(file), "--format", "folded", "--table", "stacks").count(";") > 100
    assert file.read_bytes() == before


def test_its_export_has_its_trials(file, tare):
    with read_store(file) as store:
        trials = store.trials()
    rows = csv.DictReader(io.StringIO(tare("export", str(file), "--format", "csv")))
    assert len({(row["block"], row["workload"], row["platform"], row["replica"]) for row in rows}) == trials.height > 0


def test_it_is_brought_up_to_this_version_and_nothing_that_it_had_is_lost(file):
    with read_store(file) as store:
        before = [store.trials(), store.samples(), store.events(), store.record, store.status, store.segments()]
    for _ in range(2):
        with open_store(file) as store:
            store.set_status(store.status)
            assert store._db.execute("PRAGMA user_version").fetchone() == (FORMAT_VERSION,)
            after = [store.trials(), store.samples(), store.events(), store.record, store.status, store.segments()]
            assert all(now.equals(then) for then, now in zip(before[:2], after[:2], strict=True))
            assert after[2:] == before[2:]
            resume_checks.check_known(store)


def test_a_file_that_is_only_opened_still_is_one_for_the_tare_that_wrote_it(file):
    def version():
        with contextlib.closing(sqlite3.connect(file)) as db:
            return db.execute("PRAGMA user_version").fetchone()

    before = version()
    with open_store(file) as store:
        assert store.segments()
        planned = store.schedule()[0]
        with pytest.raises(StoreError, match="in the file already"):
            store.plan_block(planned.block, [planned])
    assert version() == before


@pytest.mark.parametrize("released", CUT_OFF, ids=lambda file: file.stem)
def test_a_campaign_that_was_cut_off_goes_on_in_it(released, tmp_path):
    file = Path(shutil.copy(released, tmp_path / "there.tare"))
    plan = a_plan()
    with open_store(file) as store:
        before, spent = store.done(), block_durations(store.trials())
        assert sum(spent.values()) < 60.0, "made in seconds, and long ago"
        watcher = Quiet()
        Runner(plan, store, FakeLauncher(), None, watcher).run()
        assert {trial.key for trial in watcher.trials} == set(store.schedule()) - before != set()
        assert store.done() == set(store.schedule())
        assert sum(block_durations(store.trials()).values()) < 120.0, "the years in between are no work"
        assert len(store.segments()) == 3


@pytest.mark.parametrize("released", CUT_OFF, ids=lambda file: file.stem)
def test_a_report_tells_how_long_a_campaign_worked(released, tare):
    report = build(released)
    assert len(report.segments) == 2
    assert report.active_s == pytest.approx(sum(segment.ended - segment.began for segment in report.segments))
    assert 0 < report.active_s < report.segments[1].ended - report.segments[0].began
    assert ", pauses left out" in " ".join(tare("report", str(released)).split())
