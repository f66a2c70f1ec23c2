"""A short command answers at once: it loads nothing that it does not need. Held without a clock."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tare
from tare.cli.commands import app
from tare.platforms.platform_registry import all_platforms

#: What takes long to load, and what a short command has no use for.
HEAVY = (
    "docker", "duckdb", "jinja2", "matplotlib", "nanoarrow", "numpy", "polars", "requests", "scipy", "zstandard",
)  # fmt: skip


@pytest.fixture
def loaded(commands, tmp_path):
    """How a command ended, and which of the watched modules it had loaded by then."""

    def run(*arguments, watched=HEAVY):
        done = commands.run(*arguments, cwd=tmp_path, env={"TARE_HOME": str(tmp_path / "home")})
        return done, [name for name in watched if name in done.modules]

    return run


COMMANDS = (
    "doctor", "list", "run", "report", "compare", "diff", "score", "spread", "export", "footprint", "literature",
    "surface", "calibrate", "capacity", "clean", "platform check", "platform checks", "platform doors", "lab run",
    "lab build", "lab sources", "lab weights", "setup", "image export", "image import", "app init", "app check",
    "history", "sql", "serve", "cite", "figure", "bundle", "quick", "fleet report", "store push",
)  # fmt: skip


def test_every_command_is_tried():
    assert {command.split()[0] for command in COMMANDS} == set(app.COMMANDS)


def test_the_list_of_commands_loads_none_of_them(loaded):
    done, imported = loaded("--help", watched=[command.function.partition(":")[0] for command in app.COMMANDS.values()])
    assert (done.returncode, imported) == (0, [])
    for name, listed in app.COMMANDS.items():
        assert name in done.stdout
        assert listed.help.split()[0] in done.stdout


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_loads_nothing_heavy(loaded, command):
    done, imported = loaded(*command.split(), "--help")
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout
    assert "xample" in done.stdout or not command
    assert imported == []


def test_the_help_names_the_platforms_that_take_part_by_default(loaded):
    usual = [platform.name for platform in all_platforms().values() if platform.by_default and not platform.baseline]
    text = " ".join(loaded("run", "--help")[0].stdout.replace("│", " ").split())
    assert f"Default: {', '.join(sorted(usual)[:-1])} and {max(usual)}." in text


@pytest.mark.thorough
@pytest.mark.parametrize(
    "arguments",
    [("--version",), ("list", "platforms"), ("list", "workloads"), ("list", "metrics"), ("clean", "--dry-run")],
    ids=" ".join,
)
def test_short_commands_load_nothing_heavy(loaded, arguments):
    if arguments[0] == "clean" and os.geteuid() != 0:
        arguments = (*arguments, "--help")
    done, imported = loaded(*arguments)
    assert done.returncode == 0, done.stderr
    assert imported == []


@pytest.mark.thorough
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
        ("history", "nowhere"),
        ("sql", "nowhere.tare", "from samples"),
        ("figure", "nowhere.tare", "-o", "x.pdf"),
        ("cite", "nowhere.tare"),
        ("bundle", "--verify", "nowhere.zip"),
        ("literature", "nobody-1999"),
        ("footprint", "-p", "dokcer"),
        ("surface", "dokcer"),
        ("calibrate", "-p", "dokcer"),
        ("capacity", "-p", "dokcer"),
        ("capacity", "--limit", "keep=90%"),
        ("capacity", "--most", "1"),
        ("capacity", "--mix", "busy=20%"),
        ("capacity", "--reserve-yaml", "nowhere.tare"),
        ("capacity", "--prices", "nowhere.toml"),
        ("platform", "check", "dokcer"),
        ("app", "check", "nowhere.toml"),
        ("run", "-w", "app:nowhere.toml"),
        ("lab", "run", "--memory", "much", "--", "true"),
    ],
    ids=" ".join,
)
def test_a_usage_error_loads_nothing_heavy(loaded, arguments):
    done, imported = loaded(*arguments)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert imported == []


def test_scipy_waits_until_something_is_to_be_analysed():
    """It would be a third of the CPU time that `tare run` takes until it begins."""
    package = Path(tare.__file__).parent
    eager = [
        path for path in package.rglob("*.py") if re.search(r"^(from|import) scipy\b", path.read_text(), re.MULTILINE)
    ]
    assert eager == []


def test_a_report_of_some_blocks_does_without_the_statistics_of_scipy(loaded):
    """They would be a third of its CPU time; the distributions that it needs are functions of `scipy.special`."""
    campaign = Path(__file__).parents[1] / "store" / "released" / "whole-1.tare"
    done, imported = loaded("report", campaign, watched=["scipy.special", "scipy.stats"])
    assert (done.returncode, imported) == (0, ["scipy.special"])


def test_numpy_starts_no_threads():
    """OpenBLAS starts one for each CPU, and they spin beside what is measured."""
    code = (
        "import contextlib, os, sys; from tare.cli import main; sys.argv = ['tare', '--version']\n"
        "with contextlib.suppress(SystemExit): main()\n"
        "import numpy, scipy.linalg; print(len(os.listdir('/proc/self/task')))"
    )
    env = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "1"
