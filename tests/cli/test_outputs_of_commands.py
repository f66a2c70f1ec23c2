"""What commands write, and what they find out before they do anything."""

import os
import re
import sys
from pathlib import Path

import pytest

import fake_campaign
from tare import cli
from tare.campaign import known_results as campaigns
from tare.campaign.execution import run_campaign
from tare.campaign.host_session import HostSession
from tare.cli import report
from tare.cli.commands.app import load
from tare.errors import HostError
from tare.store import open_store
from tare.store.sqlite import SqliteStore

SHAPE = fake_campaign.Shape(blocks=3, rounds=2, workloads=("prime-slices",))


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Runs a command in this process, in a folder of its own: exit code, what it printed, and its errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))

    def _run(*arguments):
        monkeypatch.setattr(sys, "argv", ["tare", *arguments])
        code = 0
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return _run


@pytest.fixture
def campaign(tmp_path):
    return fake_campaign.write(tmp_path / "night.tare", SHAPE)


@pytest.fixture
def nothing_is_done(monkeypatch):
    """Whatever would be done by then is an error of the test."""

    def _done(*_args, **_kwargs):
        raise AssertionError("something was done before everything was checked")

    monkeypatch.setattr(HostSession, "__enter__", _done)
    monkeypatch.setattr(run_campaign, "available", _done)


def test_a_report_does_not_replace_its_campaign(run, campaign, tmp_path):
    before = campaign.read_bytes()
    (tmp_path / "link.html").symlink_to(campaign)
    (tmp_path / "hard.html").hardlink_to(campaign)
    for name in ("night.tare", "link.html", "hard.html", "night.tare-wal"):
        code, _, errors = run("report", "night.tare", "--html", name)
        assert code == 2
        assert "fix: give another name" in errors
        assert len(errors.strip().splitlines()) == 2
        assert campaign.read_bytes() == before
    assert (tmp_path / "link.html").is_symlink()


def test_a_report_does_not_replace_another_campaign(run, campaign, tmp_path):
    other = fake_campaign.write(tmp_path / "other.tare", SHAPE)
    before = other.read_bytes()
    code, _, errors = run("report", "night.tare", "--html", "other.tare")
    assert (code, "is no page of tare's" in errors) == (2, True)
    assert other.read_bytes() == before


def test_a_page_is_replaced_by_a_page(run, campaign, tmp_path):
    for _ in range(2):
        code, out, errors = run("report", "night.tare", "--html", "night.html")
        assert code == 0, errors
        assert "night.html" in out
    assert (tmp_path / "night.html").read_text().lower().startswith("<!doctype html>")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "home") == ["night.html", "night.tare"]


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_page_that_cannot_be_written_loses_no_table(monkeypatch, run, campaign, tmp_path, form):
    def full(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    page = tmp_path / "night.html"
    page.write_text("<!doctype html>old")
    monkeypatch.setattr(os, "fsync", full)
    code, out, errors = run("report", "night.tare", "--html", "night.html", *form)
    assert code == 2
    assert "No space left on device" in errors
    assert "prime-slices" in out
    assert page.read_text() == "<!doctype html>old"


def test_a_page_that_cannot_be_drawn_loses_no_table(monkeypatch, run, campaign):
    def broken(*_args):
        raise ValueError("a bug")

    monkeypatch.setattr(report, "page_text", broken)
    code, out, errors = run("report", "night.tare", "--html", "night.html")
    assert code == 4
    assert "ValueError: a bug" in errors
    assert "prime-slices" in out


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("-o", "x.html"), "x.html is the name of a page"),
        (("-o", "no/x.tare"), "there is no folder no"),
        (("-o", "night.tare"), "exists and is never overwritten"),
        (("-o", "taken.tare"), "taken.html, which will be the page of taken.tare, exists"),
        (("-o", "folder"), "exists and is never overwritten"),
        (("-o", "night.tare-wal"), "SQLite keeps"),
        (("-o", "/proc/x.tare"), "cannot be written"),
        (("--time", "inf"), "'inf' is not a time"),
        (("--time", "nan"), "'nan' is not a time"),
        (("--time", "-5m"), "'-5m' is not a time"),
        (("--time", "1e300h"), "is not a time"),
        (("--time", ""), "'' is not a time"),
        (("--time", "0"), "needs some time"),
        (("--time", "5m", "--blocks", "3"), "--blocks and --time"),
        (("--precision", "nan"), "is not a precision"),
        (("--precision", "inf"), "is not a precision"),
        (("--margin", "nan"), "is not a margin"),
        (("--margin", "inf%"), "is not a margin"),
        (("--seed", "-1"), "-1 is no seed"),
        (("--seed", str(2**64)), "is no seed"),
        (("--memory", str(2**40)), "more than this host has"),
        (("--memory", "-1"), "too little"),
        (("--cpus", "-1"), "'-1' is not a list of CPUs"),
        (("--cpus", "4000"), "CPU 4000 cannot be used here"),
        (("--cpus", "99999999999999999999"), "'99999999999999999999' is not a list of CPUs"),
        (("--subnet", "nonsense"), "nonsense is not a subnet"),
        (("--subnet", "10.0.0.0/30"), "too small"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_is_said_before_anything_is_done(nothing_is_done, run, campaign, tmp_path, arguments, what):
    (tmp_path / "folder").mkdir()
    (tmp_path / "taken.html").write_text("<!doctype html>")
    before = sorted(tmp_path.iterdir())
    code, _, errors = run("run", *arguments)
    assert code == 2, errors
    assert what in errors
    assert "fix:" in errors
    assert len(errors.strip().splitlines()) == 2
    assert sorted(tmp_path.iterdir()) == before


def _options():
    """Every option of `tare run` as it is given, those of the future too."""
    values = {"--scale": ["full"], "--design": ["blocks"]}
    for parameter in load("run").params:
        name = max(parameter.opts, key=len)
        # Those go with it, or are another way to go on.
        if parameter.name not in {"resume", "more", "files", "trust", "as_json", "help", "progress", "metrics"}:
            yield name, [] if parameter.is_flag else values.get(name, ["1"])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "values"), list(_options()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_resuming_accepts_no_other_option(nothing_is_done, run, campaign, name, values):
    code, _, errors = run("run", "--resume", "night.tare", name, *values)
    assert code == 2, errors
    assert f"accepts no {name}" in errors
    assert "fix: give --resume alone" in errors


def test_every_option_of_a_run_is_tried_with_resume():
    assert {"--cpus", "--memory", "--subnet", "--profile", "--tune", "--output"} <= dict(_options()).keys()


def test_resuming_looks_where_the_page_goes_first(nothing_is_done, run, campaign, tmp_path):
    (tmp_path / "night.html").write_text("somebody's notes")
    code, _, errors = run("run", "--resume", "night.tare")
    assert (code, "is no page of tare's" in errors) == (2, True)
    assert (tmp_path / "night.html").read_text() == "somebody's notes"


def test_samples_are_there_whole_or_not_at_all(monkeypatch, run, campaign, tmp_path):
    code, _, errors = run("export", "night.tare", "--format", "csv", "-o", "night.csv")
    assert code == 0, errors
    assert (tmp_path / "night.csv").read_text().startswith("campaign,")
    code, _, errors = run("export", "night.tare", "--format", "csv", "-o", "night.tare")
    assert (code, "never overwritten" in errors) == (2, True)
    monkeypatch.setattr(SqliteStore, "trials", lambda _self: 1 / 0)
    monkeypatch.setattr("tare.cli.export.write", lambda *_args, **_named: 1 / 0)
    code, _, errors = run("export", "night.tare", "--format", "csv", "-o", "half.csv")
    assert (code, "ZeroDivisionError" in errors) == (4, True)
    assert not (tmp_path / "half.csv").exists()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("footprint", "-o", "night.tare", "--cpus", "0"), "--cpus says otherwise"),
        (("footprint", "-o", "night.tare", "--memory", "512"), "--memory says otherwise"),
        (("footprint", "-o", "no/x.tare"), "there is no folder"),
        (("footprint", "--idle", "inf"), "is not a time"),
        (("footprint", "--seed", "-1"), "is no seed"),
        (("footprint", "--level", "functions", "--subnet", "10.0.0.0/24"), "a network of its own"),
        (("footprint", "--level", "functions", "--file", "nothing"), "nothing is no file"),
        (("footprint", "--level", "functions", "--with", "runc=nothing"), "nothing is no file"),
        (("footprint", "--level", "functions", "--with", "night.tare"), "does not name a program and a file"),
        (("footprint", "--level", "functions", "--with", "gvisor=night.tare"), "no platform starts a program gvisor"),
        (
            ("footprint", "--level", "functions", "--with", "runc=night.tare", "--with", "runc=night.tare"),
            "two files for runc",
        ),
        (("footprint", "--with", "runc=night.tare"), "--with brings a program into a lab"),
        (("footprint", "--level", "functions", "--against", "night.tare"), "counted instructions alone"),
        (("footprint", "--level", "instructions", "--against", "none.tare"), "counted with the same programs"),
        (("footprint", "--level", "instructions", "--against", "night.tare", "--json"), "two documents"),
        (("footprint", "--level", "instructions", "--against", "a.tare", "-o", "night.tare"), "of another time"),
        (("surface", "-o", "no/x.tare"), "there is no folder"),
        (("surface", "--pid", "999999999"), "there is no process"),
        (("lab", "run", "--out", "night.tare", "--", "true"), "there is a file"),
        (("lab", "run", "--out", ".", "--", "true"), "has files in it"),
        (("lab", "run", "--memory", "999999999G", "--", "true"), "more than this host has"),
        (("lab", "run", "--time-limit", "inf", "--", "true"), "is not a time"),
        (("lab", "run", "--cpus", "1000", "--", "true"), "1 to 255 processors"),
        (("lab", "run", "--flavour", "vanilla", "--", "true"), "no flavour and no host 'vanilla'"),
        (("lab", "build", "--flavour", "kvm", "--flavour", "vanilla"), "no flavour and no host 'vanilla'"),
        (("lab", "sources", "no/kernel"), "there is no folder"),
        (("lab", "weights", "no/cves.toml"), "there is no folder"),
        (("calibrate", "--blocks", "-1"), "blocks with added work"),
        (("calibrate", "-o", "night.tare"), "cannot be made"),
        (("score", "night.tare", "--profile", "none.toml"), "none.toml"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_other_commands_look_first_too(nothing_is_done, monkeypatch, run, campaign, tmp_path, arguments, what):
    monkeypatch.setattr("tare.features.kernel.lab.forwarded_run.ensure", lambda *_args, **_kwargs: 1 / 0)
    monkeypatch.setattr("tare.features.kernel.lab.kernel.ensure", lambda *_args, **_kwargs: 1 / 0)
    before = sorted(path for path in tmp_path.iterdir() if path.name != "home")
    code, _, errors = run(*arguments)
    assert code == 2, errors
    assert what in " ".join(errors.split())
    assert sorted(path for path in tmp_path.iterdir() if path.name != "home") == before


# -- calibrate ------------------------------------------------------------------------------------------------------


def _as_if_measured(file, *_args):
    """A campaign of the baseline with itself, whole."""
    fake_campaign.write(Path(file), fake_campaign.Shape(blocks=10, rounds=2, workloads=("prime-slices",)))
    with open_store(Path(file)) as store:
        store.set_status("complete")


def test_calibrating_asks_for_its_platforms_before_it_measures(monkeypatch, run, tmp_path):
    def missing(names, _progress):
        assert list(names) == ["docker"]
        raise HostError("docker does not run here: the Docker daemon does not answer", fix="start dockerd")

    monkeypatch.setattr(run_campaign, "check_runs_here", missing)
    monkeypatch.setattr(campaigns, "same_with_same", lambda *_args: pytest.fail("it measured"))
    code, _, errors = run("calibrate", "-p", "docker", "--load", "quiet", "-o", "folder")
    assert code == 2
    assert "the Docker daemon does not answer" in errors
    assert list((tmp_path / "folder").iterdir()) == []


@pytest.mark.thorough
@pytest.mark.parametrize("ends", [HostError("the daemon died"), KeyboardInterrupt()], ids=["failure", "Ctrl-C"])
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_what_a_calibration_has_measured_is_shown_however_it_ends(monkeypatch, run, tmp_path, ends, form):
    def ended(*_args):
        raise ends

    monkeypatch.setattr(run_campaign, "check_runs_here", lambda *_args: None)
    monkeypatch.setattr(campaigns, "same_with_same", _as_if_measured)
    monkeypatch.setattr(campaigns, "with_added_work", ended)
    code, out, errors = run("calibrate", "--load", "quiet", "--comparisons", "1", "-o", "folder", *form)
    assert code == (130 if isinstance(ends, KeyboardInterrupt) else 2), errors
    assert "tare.calibration/1" in out if form else re.search(r"wall time|rate|cpu-cost", out)
    assert "continue: tare calibrate -o folder" in " ".join(errors.split())
    assert not (tmp_path / "home" / "calibration.json").exists()  # of what `tare run` tells, the last whole one stays
