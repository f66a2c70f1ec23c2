"""docs/paper.md: its commands run as they stand there, what it shows is a table and a figure, and the notebook runs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

import fake_campaign
from tare.cli.commands.app import app

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign with the workloads and platforms that the commands name."""
    slowdown = {"native": 1.0, "native-veth": 1.0, "runc": 1.0005, "docker": 1.002, "gvisor": 1.4}
    shape = fake_campaign.Shape(
        blocks=6,
        rounds=3,
        slowdown=slowdown,
        workloads=("sysbench-cpu", "sysbench-fileio-seqrd", "startup"),
        failing=None,
        unsupported=None,
    )
    return fake_campaign.write(tmp_path_factory.mktemp("paper") / "night.tare", shape)


def commands(document: str) -> list[list[str]]:
    """The commands in a document's blocks that have a night.tare to read, and write to a file."""
    blocks = re.findall(r"^```(?:sh)?\n(.*?)^```", (DOCS / document).read_text(), re.DOTALL | re.MULTILINE)
    lines = [re.split(r" {2,}", line)[0] for block in blocks for line in block.splitlines()]
    return [shlex.split(line)[1:] for line in lines if re.match(r"tare \w+ night\.tare ", line)]


@pytest.mark.thorough
@pytest.mark.parametrize("words", commands("paper.md") + commands("exports.md"), ids=" ".join)
def test_a_command_of_the_page_runs_as_it_stands_there(
    night: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "night.tare").symlink_to(night)
    # The invented campaign has fewer workloads, of other names.
    arguments = ["startup" if word in {"udp-rtt", "startup/command"} else word for word in words]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, (done.output, done.exception)
    if "-o" in arguments:
        assert (tmp_path / arguments[arguments.index("-o") + 1]).stat().st_size > 100


def test_there_are_two_commands_on_the_page_and_more_in_the_reference() -> None:
    assert [words[0] for words in commands("paper.md")] == ["export", "figure"]
    assert len(commands("exports.md")) >= 6


def test_what_the_page_shows_is_what_the_commands_wrote() -> None:
    page = (DOCS / "paper.md").read_text()
    table = (DOCS / "paper" / "overheads.tex").read_text()
    for workload, _, baseline in re.findall(r"^\| ([\w-]+) \| ([\w-]+) \| ([\d.,]+ \S+) \|", page, re.MULTILINE):
        assert f"{workload} & " in table
        assert f" & {baseline} & " in table
    figure = ElementTree.parse(DOCS / "paper" / "overheads.svg")
    panels = [group for group in figure.iter("{http://www.w3.org/2000/svg}g") if group.get("id", "").startswith("axes")]
    assert len(panels) == 6


@pytest.mark.thorough
def test_the_notebook_reads_the_parquet_and_comes_to_the_same_ratios(night: Path, tmp_path: Path) -> None:
    for table in ("results", "samples"):
        place = str(tmp_path / f"{table}.parquet")
        done = CliRunner().invoke(app, ["export", str(night), "--table", table, "--format", "parquet", "-o", place])
        assert done.exit_code == 0, done.output
    notebook = DOCS / "examples" / "notebook" / "figures.py"
    ran = subprocess.run(
        [sys.executable, notebook], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert "tare.export/1 of campaign " in ran.stdout
    last = re.search(r"of (\d+) ratios the farthest is ([\d.]+) % apart", ran.stdout)
    assert last is not None
    assert int(last[1]) >= 8
    assert float(last[2]) < 1
