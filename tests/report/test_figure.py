"""`tare figure`: what a paper takes. Fonts embedded, the same bytes every time, and hostile names as text."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest
from typer.testing import CliRunner

from tare.cli.commands.app import app
from tare.errors import TareError
from tare.report.formats.paper_figure import FigureRequest, draw
from tare.report.formats.tables import Picture, Show
from tare.report.model import Report
from tare.store import read_store

SMALL = FigureRequest(metrics=("sysbench-cpu", "startup/*"), platforms=("runc", "gvisor-ptrace"), columns=1)


@pytest.fixture(scope="module")
def samples(campaign: Path) -> pl.DataFrame:
    with read_store(campaign) as store:
        return store.samples()


@pytest.mark.thorough
def test_a_pdf_has_its_fonts_in_it_as_truetype(report: Report, samples: pl.DataFrame) -> None:
    drawn = draw(report, samples, SMALL, Picture.PDF)
    assert drawn.startswith(b"%PDF-")
    assert b"/FontFile2" in drawn
    assert b"/Type3" not in drawn
    assert b"/CreationDate" not in drawn


@pytest.mark.thorough
@pytest.mark.parametrize("picture", Picture)
def test_the_same_campaign_gives_the_same_bytes(report: Report, samples: pl.DataFrame, picture: Picture) -> None:
    assert draw(report, samples, SMALL, picture) == draw(report, samples, SMALL, picture)


def test_axes_of_factors_have_plain_numbers_and_the_signs_are_explained(report: Report, samples: pl.DataFrame) -> None:
    shown = draw(report, samples, FigureRequest(columns=1), Picture.SVG).decode()
    texts = re.findall(r"<!-- (.+?) -->", shown)  # matplotlib writes each text beside its letters' paths
    assert "times worse" in texts
    assert not [text for text in texts if "math" in text]
    assert any("hollow: open" in text for text in texts)


def test_a_png_is_as_wide_as_a_column_at_300_dpi(report: Report, samples: pl.DataFrame) -> None:
    drawn = draw(report, samples, SMALL, Picture.PNG)
    assert struct.unpack(">I", drawn[16:20])[0] == round(3.35 * 300)


@pytest.mark.parametrize("show", Show)
def test_a_panel_a_metric_with_a_mark_a_platform(report: Report, samples: pl.DataFrame, show: Show) -> None:
    request = FigureRequest(show, ("sysbench-cpu/rate", "prime-slices/rate"), ("runc", "gvisor-ptrace"))
    tree = ElementTree.fromstring(draw(report, samples, request, Picture.SVG))
    groups = [element.get("id", "") for element in tree.iter("{http://www.w3.org/2000/svg}g")]
    assert sum(name.startswith("axes_") for name in groups) == 2
    assert not list(tree.iter("{http://www.w3.org/2000/svg}script"))


EVIL = (
    r"$\frac{1}{0}$",
    "</text><script>alert(1)</script>",
    "\x1b[31m\x00\u202e",
    "🦀 ☃ \ufffe",
    "a\nb",
    "%\\input{x}",
    "",
    "x" * 200,
)


@pytest.mark.thorough
@pytest.mark.parametrize("name", EVIL)
def test_a_hostile_name_is_text(report: Report, samples: pl.DataFrame, name: str) -> None:
    result = next(
        candidate for candidate in report.results if candidate.workload == "sysbench-cpu" and candidate.headline
    )
    places = [place.model_copy(update={"platform": name}) for place in result.platforms[1:2]]
    evil = result.model_copy(update={"workload": name, "metric": name, "unit": name, "platforms": places})
    platform = report.platforms[1].model_copy(update={"name": name})
    hostile = report.model_copy(update={"results": [evil], "platforms": [platform], "id": name, "baseline": "native"})
    drawn = draw(hostile, samples, FigureRequest(columns=1), Picture.SVG)
    tree = ElementTree.fromstring(drawn)
    assert not list(tree.iter("{http://www.w3.org/2000/svg}script"))
    assert b"\x1b" not in drawn


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("-o", "x.doc"), "has no format's suffix"),
        (("-o", "{folder}/x.pdf", "--metric", "nothing"), "has no such figure"),
        (("-o", "{folder}/x.pdf", "-p", "nobody"), "nobody did not take part"),
        (("-o", "{file}.pdf/x.pdf"), "cannot be written"),
    ],
)
def test_what_cannot_be_drawn_is_said(campaign: Path, tmp_path: Path, arguments: tuple[str, ...], what: str) -> None:
    filled = [argument.format(folder=tmp_path, file=campaign) for argument in arguments]
    done = CliRunner().invoke(app, ["figure", str(campaign), *filled])
    assert isinstance(done.exception, TareError), done.output
    assert what in done.exception.what
    assert list(tmp_path.iterdir()) == []


SETTINGS = "text.usetex: True\nsvg.fonttype: none\nlines.linewidth: 40\n"


@pytest.mark.thorough
def test_a_notebooks_window_and_the_users_own_settings_change_nothing(campaign: Path, tmp_path: Path) -> None:
    (tmp_path / "matplotlib").mkdir()
    (tmp_path / "matplotlib" / "matplotlibrc").write_text(SETTINGS)
    argv = [sys.executable, "-P", "-m", "tare", "figure", str(campaign), "-o"]
    odd = {"MPLBACKEND": "module://no_such.backend", "XDG_CONFIG_HOME": str(tmp_path)}
    for name, more in (("plain.svg", {}), ("odd.svg", odd)):
        done = subprocess.run([*argv, name], cwd=tmp_path, env=os.environ | more, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "plain.svg").read_bytes() == (tmp_path / "odd.svg").read_bytes()


@pytest.mark.thorough
def test_the_settings_of_another_user_in_the_current_folder_change_nothing(campaign: Path, tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_text(SETTINGS)
    argv = [sys.executable, "-P", "-m", "tare", "figure", str(campaign), "-o", "drawn.svg"]
    drawn = []
    for folder in (tmp_path, tmp_path / "elsewhere"):
        folder.mkdir(exist_ok=True)
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        drawn.append((folder / "drawn.svg").read_bytes())
    assert drawn[0] == drawn[1]
