"""What stays on the host is said: once, on standard error, with the way to remove it; the exit code is as it was."""

import os
import subprocess
import sys
import textwrap

import pytest

import fake_campaign
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.cli import interrupted
from tare.cli.choices import ProgressOptions, ProgressStyle
from tare.cli.run import measure
from tare.errors import HostError, StoreError
from tare.store import create_store

#: A command that makes things, one of which cannot be removed: a folder that is said to be a file.
PROGRAM = """
import pathlib, sys
from tare import cli
from tare.errors import UsageError
from tare.host import state
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack, Journal

@cli.app.command("victim")
def victim(how: str, place: pathlib.Path, second: bool = False):
    place.mkdir(parents=True)
    with CleanupStack(Journal(state.journal())) as things:
        things.own(removers.folder(place / "goes"))
        (place / "goes").mkdir()
        if second:
            things.own(removers.file(place))
        if how == "interrupt":
            raise KeyboardInterrupt
        if how == "error":
            raise UsageError("it went wrong", fix="do it otherwise")

cli.main()
"""


@pytest.fixture
def victim(tmp_path):
    """Runs that command."""

    def run(how, *options):
        environment = {**os.environ, "TARE_HOME": str(tmp_path / "home")}
        argv = [
            sys.executable,
            "-c",
            textwrap.dedent(PROGRAM),
            "victim",
            how,
            str(tmp_path / "home" / "work" / "place"),
            *options,
        ]
        done = subprocess.run(argv, capture_output=True, text=True, env=environment, check=False)
        return done.returncode, done.stderr

    return run


@pytest.mark.thorough
def test_an_interrupt_says_removed_where_all_is(victim, tmp_path):
    code, errors = victim("interrupt")
    assert code == 130
    assert "interrupted: what tare made on this host is removed\n" in errors  # nothing was measured
    assert "left on this host" not in errors


@pytest.mark.thorough
def test_an_interrupt_names_what_is_left_and_how_it_goes(victim, tmp_path):
    code, errors = victim("interrupt", "--second")
    assert code == 130
    assert "is removed" not in errors
    assert f"interrupted: left on this host: file {tmp_path}/home/work/place; remove it by `tare clean`" in errors
    assert not (tmp_path / "home" / "work" / "place" / "goes").exists()


def test_an_interrupt_says_kept_where_a_campaign_is(tmp_path, monkeypatch):
    monkeypatch.setattr("tare.store.opening._kept_in", [])
    create_store(tmp_path / "begun.tare", fake_campaign.record(fake_campaign.Shape())).close()
    assert interrupted() == "interrupted: what tare made on this host is removed, what was measured is kept"


@pytest.mark.parametrize("made", [False, True])
def test_a_run_that_is_interrupted_says_whether_there_is_a_campaign(tmp_path, monkeypatch, capsys, made):
    file = tmp_path / "cut.tare"

    def begin(*_):
        if made:
            file.touch()
        raise KeyboardInterrupt

    monkeypatch.setattr("tare.cli.run.run_campaign.begin", begin)
    monkeypatch.setattr("tare.cli.run.own_namespaces.enter", lambda _home: None)
    with pytest.raises(KeyboardInterrupt):
        measure(CampaignRequest(platforms=["runc"]), file, ProgressOptions(ProgressStyle.AUTO, None), as_json=False)
    errors = capsys.readouterr().err
    assert (f"to continue: tare run --resume {file}" in errors) == made
    assert ("nothing was measured yet: there is no campaign file" in errors) != made


@pytest.mark.parametrize("error", [HostError, StoreError])
@pytest.mark.parametrize("has_blocks", [False, True])
@pytest.mark.parametrize("shown", [ProgressStyle.AUTO, ProgressStyle.JSON])
def test_a_run_that_the_host_ends_says_how_to_go_on_once_a_block_has_begun(
    tmp_path, monkeypatch, capsys, error, has_blocks, shown
):
    file = tmp_path / "cut.tare"

    def begin(_order, _file, watcher):
        file.touch()
        if has_blocks:
            watcher.stopping.measuring()
        raise error("the disk is full")

    monkeypatch.setattr("tare.cli.run.run_campaign.begin", begin)
    monkeypatch.setattr("tare.cli.run.own_namespaces.enter", lambda _home: None)
    with pytest.raises(error):
        measure(CampaignRequest(platforms=["runc"]), file, ProgressOptions(shown, None), as_json=False)
    message = '"event": "ended"' if shown is ProgressStyle.JSON else f"to continue: tare run --resume {file}"
    assert (message in capsys.readouterr().err) == has_blocks


@pytest.mark.thorough
@pytest.mark.parametrize(("how", "code"), [("error", 2), ("well", 2)])
def test_what_stays_is_said_once_after_any_end(victim, tmp_path, how, code):
    ended, errors = victim(how, "--second")
    assert ended == code  # of a command that ends well, the removal's error is the error
    assert errors.count(f"warning: left on this host: file {tmp_path}/home/work/place (") == 1
    assert errors.count("fix: `tare clean`") == 1
    assert "Traceback" not in errors
    if how == "error":
        assert "error: it went wrong" in errors
