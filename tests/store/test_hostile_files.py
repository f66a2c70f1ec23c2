"""Every command that reads a file reads each of the hostile ones: one line that says what is wrong, or an answer."""

import re
from pathlib import Path

import hostile_files
import pytest

import fake_campaign
from tare.cli.commands.app import COMMANDS, load
from tare.errors import StoreError
from tare.report.formats.tables import CampaignTable
from tare.store import read_store

#: How each command is given a file, {}; {other} is a sound campaign's, {new} a place for what it writes.
READERS = {
    "report": ["report {}", "report {} --json", "report {} --html {new}.html"],
    "compare": ["compare {}"],
    "capacity": ["capacity --reserve-yaml {}"],
    "diff": ["diff {other} {} --annotations", "diff {} -p native -p runc"],
    "fleet report": ["fleet report {folder}", "fleet report {} --json"],
    "history": ["history {folder}"],
    "score": ["score {}"],
    "spread": ["spread {}"],
    "export": [
        "export {} --format jsonl",
        *(
            f"export {{}} --table {table} --format {'folded' if table is CampaignTable.STACKS else 'csv'}"
            for table in CampaignTable
        ),
    ],
    "sql": ["sql {} from/**/samples"],
    "figure": ["figure {} -o {new}.svg"],
    "cite": ["cite {}", "cite {} --format latex"],
    "bundle": ["bundle {} -o {new}.zip", "bundle --verify {}"],
    "run": ["run --resume {}"],
    "calibrate": ["calibrate --load quiet --comparisons 1 --blocks 0 -o {folder}"],
}  # fmt: skip
#: What adds to a file that is there, and starts instances for it: tried with those that cannot be opened.
WRITERS = {"footprint": ["footprint -o {}"], "surface": ["surface -o {}"]}
#: These are given no campaign; `serve` is given a folder (tests/cli/test_serve.py), `store push` a database beside the
#: file (tests/catalogue).
OTHERS = {
    "store push",
    "doctor", "list", "literature", "clean", "platform check", "platform checks", "platform doors", "lab run",
    "lab build", "lab sources", "lab weights", "image export", "image import", "setup", "serve", "app init",
    "app check", "quick", "fleet run", "fleet status", "fleet fetch", "fleet clean", "fleet playbook",
    "fleet manifest",
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


@pytest.mark.thorough
@pytest.mark.parametrize("name", hostile_files.MAKERS)
def test_every_command_says_one_line_or_answers(name, reading_commands, tmp_path):
    # calibrate wants a folder, with this name for the file in it.
    file = tmp_path / "quiet.tare"
    hostile_files.MAKERS[name](file)
    other = tmp_path / "others" / "quiet.tare"
    other.parent.mkdir()
    fake_campaign.write(other, fake_campaign.Shape(seed=2, blocks=3))
    if _opens(file):
        commands = [words for line in READERS.values() for words in line]
    else:  # whatever is asked of it
        commands = [line[0] for line in (READERS | WRITERS).values()]
    filled = [
        words.format(str(file), other=other, new=tmp_path / f"new-{number}", folder=tmp_path).split()
        for number, words in enumerate(commands)
    ]
    # One process for all of a file's commands: what one takes of it the others lack.
    env = {"TARE_HOME": str(tmp_path / "home"), "COLUMNS": "200", "TERM": "dumb"}
    every = reading_commands.run_each(filled, cwd=tmp_path, env=env, memory=6 << 30)
    for words, end in zip(filled, every, strict=True):
        answers = {0, 1, 3} if words[0] in {"diff", "history"} else {0}
        assert end.returncode in {*answers, 2}, (words, end.stderr)
        assert end.seconds < 20, words
        assert end.peak_mib < 2048, words
        assert "Traceback" not in end.stderr, (words, end.stderr)
        errors = re.findall(r"^error: .*$", end.stderr, re.MULTILINE)
        assert len(errors) == (end.returncode == 2), (words, end.stderr)
        assert "ulimit" not in end.stderr, (words, "the commands before it left it too little room to read the file")
        assert "\x1b" not in end.stderr, (words, end.stderr)
        assert _obeyed(words, end) == [], words
    assert not Path(hostile_files.TRAP).exists()
    assert (tmp_path / "victim").exists() == (name == "a_journal_that_names_a_file")


#: What GitHub's log obeys at the begin of a line, and what it, Azure's and TeamCity's obey anywhere in it.
_OBEYED = re.compile(r"^\s*::.*|^.*##(?:vso|teamcity)?\[.*", re.MULTILINE)
#: The annotations that tare makes itself.
_ANNOTATION = re.compile(r"::(?:error|warning|notice) title=[^:]*::[^\n]*")


def _obeyed(words, end):
    """What a CI's log would obey of what a command printed, but for what JSON quotes and tare's own annotations."""
    if "--json" in words or "jsonl" in words:
        return []
    lines = _OBEYED.findall(end.stdout + end.stderr)
    return [line for line in lines if not ("--annotations" in words and _ANNOTATION.fullmatch(line))]


def _opens(file):
    try:
        read_store(file).close()
    except StoreError:
        return False
    return True
