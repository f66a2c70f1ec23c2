"""Every command that reads a file reads each of the hostile ones: one line that says what is wrong, or an answer."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import hostile_files
import pytest

from tare.cli.commands.app import COMMANDS, load
from tare.errors import StoreError
from tare.report.tables import Table
from tare.store import read_store

CHILD = Path(__file__).with_name("reads_hostile.py")
#: How each command is given a file, {}; {new} is a place for what it writes.
READERS = {
    "report": ["report {}", "report {} --json", "report {} --html {new}.html"],
    "compare": ["compare {}"],
    "score": ["score {}"],
    "spread": ["spread {}"],
    "export": [
        "export {} --format jsonl",
        *(f"export {{}} --table {table} --format {'folded' if table is Table.STACKS else 'csv'}" for table in Table),
    ],
    "run": ["run --resume {}"],
    "calibrate": ["calibrate --load quiet --comparisons 1 --blocks 0 -o {folder}"],
}  # fmt: skip
#: What adds to a file that is there, and starts instances for it: tried with those that cannot be opened.
WRITERS = {"footprint": ["footprint -o {}"], "surface": ["surface -o {}"]}
#: These are given no campaign.
OTHERS = {
    "doctor", "list", "literature", "clean", "platform check", "platform checks", "platform doors", "lab run",
    "lab build", "lab sources", "lab weights",
}  # fmt: skip


def _commands():
    for name in COMMANDS:
        command = load(name)
        if hasattr(command, "commands"):
            yield from (f"{name} {inner}" for inner in command.commands)
        else:
            yield name


def test_it_is_known_of_every_command_how_it_is_given_a_file():
    assert set(_commands()) == {*READERS, *WRITERS, *OTHERS}


def test_there_are_files_enough():
    assert len(hostile_files.MAKERS) >= 20


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """Reads a file with a command: how it ended."""
    scratch = tmp_path_factory.mktemp("scratch")
    home = tmp_path_factory.mktemp("home")
    env = {**os.environ, "TARE_HOME": str(home), "COLUMNS": "200", "TERM": "dumb"}
    with subprocess.Popen(
        [sys.executable, CHILD, scratch], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
    ) as process:

        def read(words):
            process.stdin.write(json.dumps(words) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield read
        process.stdin.close()


@pytest.mark.parametrize("name", hostile_files.MAKERS)
def test_every_command_says_one_line_or_answers(name, reader, tmp_path):
    # calibrate wants a folder, with this name for the file in it.
    file = tmp_path / "quiet.tare"
    hostile_files.MAKERS[name](file)
    if _opens(file):
        commands = [words for line in READERS.values() for words in line]
    else:  # whatever is asked of it
        commands = [line[0] for line in (READERS | WRITERS).values()]
    for number, words in enumerate(commands):
        filled = words.format(str(file), new=tmp_path / f"new-{number}", folder=tmp_path)
        end = reader(filled.split())
        assert end["code"] in {0, 2}, end
        assert end["seconds"] < 20, end
        assert end["mib"] < 2048, end
        assert "Traceback" not in end["stderr"], end
        errors = re.findall(r"^error: .*$", end["stderr"], re.MULTILINE)
        assert len(errors) == (end["code"] == 2), end
        assert "\x1b" not in end["stderr"], end
    assert not Path(hostile_files.TRAP).exists()


def _opens(file):
    try:
        read_store(file).close()
    except StoreError:
        return False
    return True
