"""Exports of a part of a campaign: some platforms, workloads and metrics."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from tare.cli.commands.app import app
from tare.errors import UsageError
from tare.report.campaign.choose import isolating
from tare.report.formats.overheads import compared, of_report
from tare.report.formats.selection import EVERYTHING, Selection
from tare.report.model import Report


def _export(campaign: Path, *options: str) -> str:
    done = CliRunner().invoke(app, ["export", str(campaign), *options])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def _rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize("table", ["samples", "results", "trials"])
def test_the_rows_are_those_of_the_names_and_no_others(campaign: Path, table: str) -> None:
    rows = _rows(_export(campaign, "--format", "csv", "--table", table, "-p", "gvisor*", "-w", "startup"))
    assert {row["platform"] for row in rows} == {"gvisor-systrap", "gvisor-ptrace"}
    assert {row["workload"] for row in rows} == {"startup"}


def test_a_metric_is_named_alone_or_with_its_workload(campaign: Path) -> None:
    options = ("--format", "csv", "--table", "results", "-p", "runc", "--metric")
    alone = {(row["workload"], row["metric"]) for row in _rows(_export(campaign, *options, "throughput"))}
    assert {metric for _, metric in alone} == {"throughput"}
    assert len(alone) > 1
    [only] = _rows(_export(campaign, *options, "startup/first-byte"))
    assert (only["workload"], only["metric"]) == ("startup", "first-byte")


@pytest.mark.parametrize("form", ["latex", "markdown"])
def test_a_papers_table_keeps_the_baseline_and_has_other_metrics_on_request(campaign: Path, form: str) -> None:
    text = _export(campaign, "--format", form, "--table", "overheads", "-p", "runc", "--metric", "startup/*")
    assert "docker" not in text
    assert "native" in text
    assert "first-byte" in text
    assert "ping" in text


def test_figures_for_monitoring_are_selected_too(campaign: Path) -> None:
    text = _export(campaign, "--format", "openmetrics", "-p", "docker")
    assert 'platform="docker"' in text
    assert 'platform="runc"' not in text


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (("-p", "runcc"), "no platform 'runcc'"),
        (("-w", "nothing"), "no workload 'nothing'"),
        (("--metric", "startup/rate"), "no metric 'startup/rate'"),
    ],
)
def test_a_name_that_the_campaign_does_not_have_is_an_error(
    campaign: Path, options: tuple[str, ...], what: str
) -> None:
    with pytest.raises(UsageError, match=what) as raised:
        _export(campaign, "--format", "csv", *options)
    assert raised.value.fix


def test_stacks_are_exported_whole(campaign: Path) -> None:
    with pytest.raises(UsageError, match="whole"):
        _export(campaign, "--format", "folded", "--table", "stacks", "-p", "runc")


def test_an_export_is_replaced_by_force_alone(campaign: Path, tmp_path: Path) -> None:
    place = tmp_path / "figures.csv"
    options = ("--format", "csv", "--table", "results", "-o", str(place))
    _export(campaign, *options)
    with pytest.raises(UsageError, match="exists") as raised:
        _export(campaign, *options)
    assert "--force" in (raised.value.fix or "")
    place.write_text("")
    _export(campaign, *options, "--force")
    assert place.stat().st_size > 0
    with pytest.raises(UsageError, match="never overwritten"):
        _export(campaign, *options[:-1], str(campaign), "--force")


def test_nothing_asked_for_is_everything(report: Report) -> None:
    frame = pl.DataFrame({"platform": ["a", "b"], "value": [1, 2]})
    assert not EVERYTHING
    assert EVERYTHING.frame(frame).equals(frame)
    assert EVERYTHING.report(report) is report
    assert Selection(platforms=("a",)).frame(frame)["value"].to_list() == [1]


def test_second_baselines_are_in_a_paper_only_if_they_are_an_answer(report: Report) -> None:
    bare = [
        platform.model_copy(update={"open_by_design": {"*": "only a chroot"}}) if platform.name == "runc" else platform
        for platform in report.platforms
    ]
    answers = [answer for answer in report.answers if answer.platform != "runc"]
    shown = report.model_copy(update={"platforms": bare, "answers": answers})
    assert "runc" not in isolating(shown)
    assert "runc" not in compared(shown)
    assert "runc" not in of_report(shown).heads
    assert "runc" in compared(shown.model_copy(update={"answers": report.answers}))
