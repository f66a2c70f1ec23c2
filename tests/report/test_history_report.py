"""`tare history` as people and gates read it: a table, a page, JSON, and an exit code."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import fake_campaign
from tare.analysis.comparisons.summaries import LeftOutCampaign, Why, summary
from tare.analysis.comparisons.thresholds import Thresholds
from tare.cli.commands.app import app
from tare.cli.exit_codes import ExitCode
from tare.errors import TareError
from tare.features.history.analysis import History, history
from tare.features.history.page import page
from tare.features.history.views import sparkline
from tare.store import create_store, read_store

DAYS = 12
Run = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign a day; from the seventh on gvisor is 5 % slower."""
    folder = tmp_path_factory.mktemp("history")
    for day in range(DAYS):
        slower = 1.05 if day >= 6 else 1.0
        shape = fake_campaign.Shape(
            blocks=3,
            rounds=2,
            seed=day,
            slowdown={"native": 1.0, "gvisor": 1.2 * slower},
            workloads=("prime-slices",),
            failing=None,
            unsupported=None,
            stolen=False,
        )
        record = fake_campaign.record(shape)
        with create_store(
            folder / f"{day:02}.tare", record.model_copy(update={"created": record.created + day * 86_400})
        ) as store:
            fake_campaign.fill(store, shape)
    return folder


@pytest.fixture(scope="module")
def trend(folder: Path) -> History:
    summaries = []
    for file in folder.glob("*.tare"):
        with read_store(file) as store:
            summaries.append(summary(store, Thresholds(), absolute=False))
    return history(summaries, Thresholds())


def run(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["history", *map(str, arguments)])
    if isinstance(done.exception, TareError):
        raise done.exception
    return done.exit_code, done.output


@pytest.mark.thorough
def test_a_regression_is_named_with_its_day_and_ends_the_gate(folder: Path, tmp_path: Path) -> None:
    code, text = run(folder, "--html", tmp_path / "nights.html")
    assert code == ExitCode.NO
    words = " ".join(text.split())
    assert "12 campaigns, 2025-11-21 to 2025-12-02: overheads against native; + is worse" in words
    assert "▲ gvisor prime-slices" in words
    assert "regression: of 2 figures 2 worse since the last change" in words
    drawn = (tmp_path / "nights.html").read_text()
    assert drawn.count("<svg") == 2
    assert drawn.count('class="bar slower"') == 4, "a stretch before and one after, of two figures"
    assert drawn.count("<circle") == 2 * DAYS


def test_too_few_are_open(folder: Path, tmp_path: Path) -> None:
    for day in range(3):
        (tmp_path / f"{day:02}.tare").symlink_to(folder / f"{day:02}.tare")
    (tmp_path / "broken.tare").write_text("no campaign")
    code, text = run(tmp_path, "--json")
    data = json.loads(text)
    assert (code, data["schema"], data["outcome"]) == (ExitCode.OPEN, "tare.history/1", "open")
    assert {series["lacking"] for series in data["series"]} == {7}
    assert [(entry["name"], entry["why"]) for entry in data["left_out"]] == [("broken.tare", "unreadable")]


@pytest.mark.parametrize(
    ("name", "what"), [("none", "is no folder"), ("", "there is no *.tare file"), ("00.tare", "is no folder")]
)
def test_what_cannot_be_is_an_error(folder: Path, tmp_path: Path, name: str, what: str) -> None:
    place = folder / name if name.endswith(".tare") else tmp_path / name
    with pytest.raises(TareError) as error:
        run(place)
    assert what in error.value.what


def test_a_line_of_bars() -> None:
    assert sparkline([0.0, 7.0]) == "▁█"
    assert sparkline([2.0, 2.0, 2.0]) == "▁▁▁"
    assert sparkline([*range(100), 0.0])[-1] == "▁"
    assert len(sparkline(list(range(100)))) == 24


EVIL = "</svg><script>alert(1)</script>\x1b[31m"


def test_hostile_names_are_text_on_the_page(trend: History) -> None:
    series = tuple(replace(figure, platform=EVIL, workload=EVIL) for figure in trend.series)
    entries = tuple(replace(entry, name=EVIL) for entry in trend.entries)
    text = page(replace(trend, series=series, entries=entries, left_out=(LeftOutCampaign(EVIL, Why.UNREADABLE, EVIL),)))
    assert "<script>" not in text
    assert text.count("<svg") == text.count("</svg>") == len(series)
    assert re.search(r"default-src 'none'", text)
