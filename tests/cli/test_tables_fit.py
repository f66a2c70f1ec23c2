"""Every command that prints a table: whole names at 80 and 120 columns, and nothing drawn in a pipe."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.cells import cell_len

import fake_campaign
import fake_footprints
import fake_surfaces
from tare.cli import main
from tare.store import open_store

#: Of characters for lines; blocks of a sparkline are figures.
BOX = re.compile("[\u2500-\u257f]")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
#: An ellipsis that ends a word, and is not between the ends of an interval.
CUT = re.compile(r"\w…")
PLATFORMS = ("runc", "docker", "gvisor-systrap", "gvisor-ptrace")
COMMANDS = [
    ("report night.tare", PLATFORMS),
    ("report night.tare --all", PLATFORMS),
    ("report night.tare --cautions", PLATFORMS),
    ("report night.tare --choose for=web", PLATFORMS),
    ("report footprints.tare", ("docker", "gvisor")),
    ("compare night.tare", PLATFORMS),
    ("score night.tare", PLATFORMS),
    ("spread night.tare", PLATFORMS),
    ("diff night.tare later.tare --all", PLATFORMS),
    ("history . --all", PLATFORMS),
    ("literature", ("karna-2021", "giallorenzo-2021")),
    ("literature karna-2021", ("Firecracker",)),
    ("list platforms", ("containerd-cri-gvisor", "docker-in-qemu-tcg")),
    ("list workloads", ("sysbench-fileio-seqrd", "kernel-compile")),
    ("list metrics", ("answer-from-nothing",)),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("fit")
    path = fake_campaign.write(place / "night.tare")
    with open_store(path) as store:
        for surface in fake_surfaces.captured():
            store.add_surface(surface)
    fake_campaign.write(place / "later.tare", fake_campaign.Shape(blocks=6, seed=3))
    footprints = [fake_footprints.footprint({"read": 3, "write": 90}, platform=name) for name in ("docker", "gvisor")]
    fake_footprints.write(place / "footprints.tare", footprints)
    return place


@pytest.fixture
def shown(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """What a command prints to a terminal of so many columns; 0: to a pipe."""

    def run(line: str, width: int) -> list[str]:
        monkeypatch.chdir(folder)
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.delenv("COLUMNS", raising=False)
        if width:
            monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
            monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setattr("sys.argv", ["tare", *line.split()])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code in {0, 1, 3}
        return _ESCAPES.sub("", capsys.readouterr().out).splitlines()

    return run


@pytest.mark.thorough
@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize(("line", "names"), COMMANDS, ids=[line for line, _ in COMMANDS])
def test_no_name_is_cut_and_no_line_too_long(shown, line: str, names: tuple[str, ...], width: int) -> None:
    lines = shown(line, width)
    text = "\n".join(lines)
    assert [name for name in names if not re.search(rf"(?<![\w-]){name}(?![\w-])", text)] == []
    assert not CUT.search(text)
    assert [line for line in lines if cell_len(line) > width and "file://" not in line] == []


@pytest.mark.thorough
@pytest.mark.parametrize(("line", "names"), COMMANDS, ids=[line for line, _ in COMMANDS])
def test_a_pipe_gets_names_and_figures_alone(shown, line: str, names: tuple[str, ...]) -> None:
    text = "\n".join(shown(line, 0))
    assert [name for name in names if name not in text] == []
    assert not BOX.search(text)
    assert not CUT.search(text)
    assert not re.search(r"[ \t]+$", text, re.MULTILINE)


@pytest.mark.parametrize("command", ["report", "export", "app check"])
def test_help_in_a_pipe_is_text_with_an_example_a_line(command: str, commands, tmp_path: Path) -> None:
    done = commands.run(*command.split(), "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert not BOX.search(done.stdout)
    assert "[cyan]" not in done.stdout
    assert not re.search(r"^.*tare \w+ \S+.*, tare ", done.stdout, re.MULTILINE) or command == "app check"
    assert "--help" in done.stdout
