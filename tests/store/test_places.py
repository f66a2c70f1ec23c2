"""Where a campaign may be kept: in files, and what is asked for elsewhere is refused in one line."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import fake_campaign
from tare.cli import app
from tare.errors import StoreError
from tare.store import create_store, file_of, open_store, read_store

SERVER = "postgresql://user@db.example/nights"


@pytest.mark.parametrize("location", [SERVER, Path(SERVER), "mysql:/h/nights"])
def test_a_database_server_is_no_store(location):
    record = fake_campaign.record(fake_campaign.Shape())
    for opener in (lambda: create_store(location, record), lambda: open_store(location), lambda: read_store(location)):
        with pytest.raises(
            StoreError, match=r"^(postgresql://user@db.example|mysql://h)/nights: no such store: only files"
        ):
            opener()


@pytest.mark.parametrize(
    "words",
    [
        ["report", SERVER],
        ["compare", SERVER],
        ["export", SERVER, "--format", "csv"],
        ["run", "-o", SERVER],
        ["run", "--resume", SERVER],
        ["surface", "-o", SERVER],
        ["footprint", "-o", SERVER],
    ],
    ids=" ".join,
)
def test_every_command_says_so_in_one_line(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, StoreError), done.exception
    assert str(done.exception.what) == f"{SERVER}: no such store: only files"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a:/b.tare", "night.tare", "-", "c:.tare", "x:y/z"])
def test_what_is_no_server_is_a_file(name):
    assert file_of(name) == Path(name)


def test_a_folder_that_is_called_like_a_server_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("backup:").mkdir()
    fake_campaign.write(Path("backup:/night.tare"), fake_campaign.Shape(blocks=1, rounds=1))
    with read_store(Path("backup:/night.tare")) as store:
        assert store.status == "complete"


def test_to_ask_for_a_place_loads_no_database():
    script = "import sys, tare.outputs; sys.exit(bool({'sqlite3', 'polars', 'pydantic'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
