"""What stays on the host is said: once, on standard error, with the way to remove it; the exit code is as it was."""

import os
import subprocess
import sys
import textwrap

import pytest

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


def test_an_interrupt_says_removed_where_all_is(victim, tmp_path):
    code, errors = victim("interrupt")
    assert code == 130
    assert "what tare made on this host is removed, what was measured is kept" in errors
    assert "left on this host" not in errors


def test_an_interrupt_names_what_is_left_and_how_it_goes(victim, tmp_path):
    code, errors = victim("interrupt", "--second")
    assert code == 130
    assert "is removed" not in errors
    assert f"interrupted: what was measured is kept; left on this host: file {tmp_path}/home/work/place; " in errors
    assert "`tare clean`" in errors
    assert not (tmp_path / "home" / "work" / "place" / "goes").exists()


@pytest.mark.parametrize(("how", "code"), [("error", 2), ("well", 2)])
def test_what_stays_is_said_once_after_any_end(victim, tmp_path, how, code):
    ended, errors = victim(how, "--second")
    assert ended == code  # of a command that ends well, the removal's error is the error
    assert errors.count(f"warning: left on this host: file {tmp_path}/home/work/place (") == 1
    assert errors.count("fix: `tare clean`") == 1
    assert "Traceback" not in errors
    if how == "error":
        assert "error: it went wrong" in errors
