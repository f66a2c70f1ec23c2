"""Files whose names are not UTF-8: every command reads and writes them, and none ends what is said of its folder."""

import json
import os
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import hostile_files
import pytest
from test_hostile_files import READERS

import fake_campaign
from tare.cli.serve import PageSite
from tare.report.formats.index import entries

NAME = os.fsdecode(b"n\xff\n.tare")


@pytest.fixture
def odd(tmp_path):
    folder = tmp_path / os.fsdecode(b"f\xfe")
    folder.mkdir()
    return fake_campaign.write(folder / NAME, fake_campaign.Shape(blocks=4, rounds=2, workloads=("sysbench-cpu",)))


def _commands(file, other):
    # A folder with `quiet.tare` is calibrate's; a figure of the file may be missing.
    lines = [line for name, lines in READERS.items() if name != "calibrate" for line in lines]
    new = file.with_name(os.fsdecode(b"new\xff"))
    for number, line in enumerate(lines):
        words = {"other": str(other), "new": f"{new}-{number}", "folder": str(file.parent)}
        yield [word.format(str(file), **words) for word in line.split()]


@pytest.mark.thorough
def test_every_command_reads_it_and_writes_beside_it(odd, reading_commands, tmp_path):
    other = fake_campaign.write(tmp_path / "other.tare", fake_campaign.Shape(blocks=4, rounds=2, seed=8))
    commands = list(_commands(odd, other))
    env = {"TARE_HOME": str(tmp_path / "home"), "TERM": "dumb", "TARE_AGENT": "/nowhere"}
    for words, end in zip(commands, reading_commands.run_each(commands, cwd=tmp_path, env=env), strict=True):
        answers = {0, 1, 3} if words[0] in {"diff", "history"} else {0}
        # What is refused is so for another reason than the name: a campaign without footprints, a campaign to resume.
        assert end.returncode in {*answers, 2}, (words, end.stderr)
        assert "Traceback" not in end.stderr, (words, end.stderr)
        assert "cannot be read" not in end.stderr, (words, end.stderr)
        assert "--json" not in words or json.loads(end.stdout)


def test_the_documents_of_a_gate_name_it(odd, reading_commands, tmp_path):
    other = fake_campaign.write(tmp_path / "base.tare", fake_campaign.Shape(blocks=4, rounds=2, seed=8))
    (tmp_path / "gate.yml").touch()
    options = ["--junit", "j.xml", "--sarif", "s.json", "--source", "gate.yml", "--markdown", "m.md", "--annotations"]
    end = reading_commands.run("diff", str(other), str(odd), *options, cwd=tmp_path, env={"TERM": "dumb"})
    assert "Traceback" not in end.stderr
    ET.parse(tmp_path / "j.xml")
    json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    assert r"n\\xff" in (tmp_path / "m.md").read_text(encoding="utf-8")


def test_a_page_names_it(odd, reading_commands, tmp_path):
    end = reading_commands.run("report", str(odd), "--html", "r.html", "--json", cwd=tmp_path, env={"TERM": "dumb"})
    assert end.returncode == 0, end.stderr
    assert r"n\xff" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert r"n\xff" in json.loads(end.stdout)["file"]


@pytest.fixture
def folder(odd):
    """A folder with everything that is odd, and one plain campaign."""
    here = odd.parent
    fake_campaign.write(here / "plain.tare", fake_campaign.Shape(blocks=4, rounds=2, seed=9))
    shutil.copy(odd, here / os.fsdecode(b"\xff\xfe<b>.tare"))
    shutil.copy(hostile_files.REAL, here / ("l" * 250 + ".tare"))
    (here / os.fsdecode(b"empty\xff.tare")).touch()
    hostile_files.MAKERS["a_journal_that_names_a_file"](here / os.fsdecode(b"j\xff.tare"))
    os.mkfifo(here / os.fsdecode(b"p\xff.tare"))
    (here / "dangling.tare").symlink_to("nowhere")
    (here / "folder.tare").mkdir()
    return here


def test_the_history_of_its_folder_has_all_that_can_be_read(folder, reading_commands, tmp_path):
    words = ["history", str(folder), "--html", str(tmp_path / "h.html"), "--json"]
    end = reading_commands.run(*words, cwd=tmp_path, env={"TERM": "dumb"})
    assert end.returncode in {0, 1, 3}, end.stderr
    history = json.loads(end.stdout)
    assert {r"n\xff" in entry["name"] for entry in history["entries"]} == {True, False}
    assert r"empty\xff.tare" in end.stdout.replace("\\\\", "\\")
    (tmp_path / "h.html").read_text(encoding="utf-8")


def test_the_listing_of_its_folder_has_every_file(folder):
    listed = {entry.name: entry.problem for entry in entries(folder)}
    assert set(listed) >= {"plain.tare", "n\\xff\n.tare", r"\xff\xfe<b>.tare", r"empty\xff.tare", r"j\xff.tare"}
    assert listed["plain.tare"] == listed["n\\xff\n.tare"] == ""
    assert r"j\xff.tare-journal is there" in listed[r"j\xff.tare"]
    site = PageSite(folder)
    page = site.answer(f"/{site.token}/")
    assert page.status == 200, page.body
    keys = [entry.key for entry in entries(folder)]
    assert keys
    for key in keys:
        for form in ("html", "json"):
            assert site.answer(f"/{site.token}/{key}.{form}").status in {200, 500}


def test_a_listing_that_fails_is_an_answer(folder, monkeypatch):
    monkeypatch.setattr("tare.cli.serve.index_page", lambda folder: folder / 0)
    site = PageSite(folder)
    answer = site.answer(f"/{site.token}/")
    assert (answer.status, answer.body.startswith(b"TypeError")) == (500, True)


def test_what_cannot_be_looked_at_is_listed_with_its_reason(folder, monkeypatch):
    lstat = Path.lstat

    def closed(path):
        if path.name == "plain.tare":
            raise PermissionError(13, "Permission denied")
        return lstat(path)

    monkeypatch.setattr(Path, "lstat", closed)
    assert "plain.tare" in {entry.name for entry in entries(folder)}
