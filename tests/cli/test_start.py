"""A short command answers at once: it loads nothing that it does not need. Held without a clock."""

import os
import subprocess
import sys

import pytest

from tare.cli.commands import app

#: What takes long to load, and what a short command has no use for.
HEAVY = ("docker", "jinja2", "numpy", "plotly", "polars", "requests", "scipy", "zstandard")
WATCH = """
import sys
from tare.cli import main
try:
    main()
finally:
    loaded = [name for name in {heavy} if name in sys.modules]
    print("loaded:", *loaded, file=sys.stderr)
"""


def _loaded(tmp_path, *arguments, watched=HEAVY):
    done = subprocess.run(
        [sys.executable, "-c", WATCH.format(heavy=tuple(watched)), *arguments],
        cwd=tmp_path,
        env={**os.environ, "TARE_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    [line] = [line for line in done.stderr.splitlines() if line.startswith("loaded:")]
    return done, line.removeprefix("loaded:").split()


COMMANDS = (
    "doctor", "list", "run", "report", "compare", "score", "spread", "export", "footprint", "literature", "surface",
    "calibrate", "clean", "platform check", "platform checks", "platform doors", "lab run", "lab build", "lab sources",
    "lab weights",
)  # fmt: skip


def test_every_command_is_tried():
    assert {command.split()[0] for command in COMMANDS} == set(app.COMMANDS)


def test_the_list_of_commands_loads_none_of_them(tmp_path):
    done, loaded = _loaded(
        tmp_path, "--help", watched=[f"tare.cli.commands.{one.module}" for one in app.COMMANDS.values()]
    )
    assert (done.returncode, loaded) == (0, [])
    for name, listed in app.COMMANDS.items():
        assert name in done.stdout
        assert listed.help.split()[0] in done.stdout


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_loads_nothing_heavy(tmp_path, command):
    done, loaded = _loaded(tmp_path, *command.split(), "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout
    assert loaded == []


@pytest.mark.parametrize(
    "arguments",
    [("--version",), ("list", "platforms"), ("list", "workloads"), ("list", "metrics"), ("clean", "--dry-run")],
    ids=" ".join,
)
def test_short_commands_load_nothing_heavy(tmp_path, arguments):
    if arguments[0] == "clean" and os.geteuid() != 0:
        arguments = (*arguments, "--help")
    done, loaded = _loaded(tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    assert loaded == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("run", "--nonsense"),
        ("run", "--time", "soon"),
        ("run", "--time", "inf"),
        ("run", "--cpus", "4096"),
        ("run", "-p", "dokcer"),
        ("run", "-w", "sysbench-cup"),
        ("run", "--profile", "quik"),
        ("run", "--scale", "full"),
        ("run", "-o", "no/x.tare"),
        ("run", "--resume", "nowhere.tare"),
        ("run", "--resume", "nowhere.tare", "--cpus", "1"),
        ("report", "nowhere.tare"),
        ("compare", "nowhere.tare"),
        ("score", "nowhere.tare"),
        ("spread", "nowhere.tare"),
        ("export", "nowhere.tare", "--format", "csv"),
        ("literature", "nobody-1999"),
        ("footprint", "-p", "dokcer"),
        ("surface", "dokcer"),
        ("calibrate", "-p", "dokcer"),
        ("platform", "check", "dokcer"),
        ("lab", "run", "--memory", "much", "--", "true"),
    ],
    ids=" ".join,
)
def test_a_usage_error_loads_nothing_heavy(tmp_path, arguments):
    done, loaded = _loaded(tmp_path, *arguments)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert loaded == []
