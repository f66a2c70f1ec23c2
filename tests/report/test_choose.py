"""Choosing a platform by what it costs and needs: what is asked for, who has it, and why the others have not."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

import pytest
from rich.console import Console

import fake_campaign
import fake_surfaces
from tare.cli import main
from tare.cli.report import show_choice
from tare.errors import UsageError
from tare.report.campaign.choose import Requirements, against, amount, by_cost, parse, picks
from tare.report.campaign.report_builder import build
from tare.report.campaign.report_terminal import render_choice
from tare.report.model import Report
from tare.report.sentences.choice_words import Criterion, Trait
from tare.store import create_store, open_store


@pytest.fixture(scope="module")
def surfaced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = fake_campaign.write(tmp_path_factory.mktemp("choose") / "night.tare")
    with open_store(path) as store:
        for surface in fake_surfaces.captured():
            store.add_surface(surface)
    return path


@pytest.fixture(scope="module")
def chosen_from(surfaced: Path) -> Report:
    return build(surfaced)


def test_limits_have_units_and_traits_are_ruled_out() -> None:
    assert parse("cpu<10% start<0.3s, calls<300 daemon=no root=no") == Requirements(
        {Criterion.CPU: 10.0, Criterion.START: 300.0, Criterion.CALLS: 300.0}, frozenset({Trait.DAEMON, Trait.ROOT})
    )
    assert parse("start<80ms").below == {Criterion.START: 80.0}


@pytest.mark.parametrize(
    "text",
    ["", "  ", "cpu", "cpu>10%", "cpu<10ms", "calls<3%", "daemon=yes", "daemon<3", "cpu=no", "cpu<1.2.3", "cpu<."],
)
def test_what_is_nothing_to_choose_by_is_said_with_the_form(text: str) -> None:
    with pytest.raises(UsageError, match=r"to choose by|criterion is given") as raised:
        parse(text)
    assert "cpu<10%" in (raised.value.fix or "")


def names(report: Report, text: str) -> list[str]:
    wishes = parse(text)
    return [answer.platform for answer in by_cost(report) if not against(answer, wishes)]


@pytest.mark.thorough
def test_the_cheapest_comes_first_and_each_wish_leaves_some_out(chosen_from: Report) -> None:
    assert names(chosen_from, "cpu<1000") == ["runc", "docker", "gvisor-systrap", "gvisor-ptrace"]
    assert names(chosen_from, "cpu<10%") == ["runc", "docker", "gvisor-systrap"]
    assert names(chosen_from, "cpu<10% daemon=no") == ["runc", "gvisor-systrap"]
    assert names(chosen_from, "cpu<10% daemon=no root=no") == ["gvisor-systrap"]
    assert names(chosen_from, "start<60ms daemon=no") == ["runc", "gvisor-systrap"]
    [docker] = [answer for answer in chosen_from.answers if answer.platform == "docker"]
    calls = amount(docker, Criterion.CALLS)
    assert calls == docker.calls
    assert calls is not None
    assert "docker" not in names(chosen_from, f"calls<{calls}")  # below, and not at most
    assert "docker" in names(chosen_from, f"calls<{calls + 1}")


def test_what_is_not_known_is_no_yes(report: Report) -> None:
    [runc] = [answer for answer in report.answers if answer.platform == "runc"]
    assert against(runc, parse("calls<300")) == ["system calls not known"]
    older = runc.model_copy(update={"needs_root": None})
    assert against(older, parse("root=no")) == ["not known whether it needs root"]


def test_the_terminal_shows_who_has_it_and_why_others_have_not(chosen_from: Report) -> None:
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(render_choice(chosen_from, parse("cpu<10% daemon=no"), width=140))
    text = console.export_text()
    table, _, reasons = text.partition("Against native")
    assert table.index("runc") < table.index("gvisor-systrap")
    assert "gvisor-ptrace" not in table
    assert "not docker: shares a daemon" in reasons
    assert "not gvisor-ptrace: CPU cost +2" in reasons


def test_nobody_has_it(surfaced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_choice([surfaced], "start<1ms")
    shown = capsys.readouterr().out
    assert "no platform of this campaign has all of that" in shown
    assert "not runc: start 40" in shown


def test_the_best_of_each_question_with_those_as_good(chosen_from: Report) -> None:
    by_question = {pick.what: pick for pick in picks(chosen_from)}
    assert [by_question[question].platform for question in list(by_question)[:3]] == ["runc", "runc", "runc"]
    assert by_question["for a web service"].others == ("docker",)
    assert by_question["for a web service, without root"].platform == "gvisor-systrap"
    fewest = min((answer.calls or 0, answer.platform) for answer in chosen_from.answers if answer.calls is not None)
    assert by_question["least of the host's kernel"].platform == fewest[1]
    assert by_question["least of the host's kernel"].figure == f"{fewest[0]} system calls"


def _with_interval(report: Report, platform: str, **bounds: object) -> Report:
    """The report with these bounds in all figures of a platform."""
    results = [
        result.model_copy(
            update={
                "platforms": [
                    row.model_copy(update=bounds) if row.platform == platform else row for row in result.platforms
                ]
            }
        )
        for result in report.results
    ]
    return report.model_copy(update={"results": results})


def test_whose_interval_overlaps_is_not_told_apart_from_the_best(chosen_from: Report) -> None:
    def others(report: Report) -> dict[str, tuple[str, ...]]:
        return {pick.what: pick.others for pick in picks(report)}

    assert "gvisor-systrap" not in others(chosen_from)["quickest start"]
    assert "gvisor-systrap" in others(_with_interval(chosen_from, "gvisor-systrap", amount_low=0.1))["quickest start"]
    assert "gvisor-systrap" in others(_with_interval(chosen_from, "runc", amount_high=1e6))["quickest start"]


def test_what_isolates_nothing_is_never_the_best(chosen_from: Report) -> None:
    bare = [
        platform.model_copy(update={"open_by_design": {"*": "only a chroot"}}) if platform.name == "runc" else platform
        for platform in chosen_from.platforms
    ]
    shown = chosen_from.model_copy(update={"platforms": bare})
    assert picks(shown)[0].platform == "docker"
    assert by_cost(shown)[-1].platform == "runc"


def test_an_older_campaign_knows_a_daemon_by_its_cpu_time(tmp_path: Path) -> None:
    shape = fake_campaign.Shape(blocks=3, workloads=("sysbench-cpu",))
    older = fake_campaign.record(shape)
    stripped = older.model_copy(
        update={
            "platforms": [
                platform.model_copy(update={"daemon": None, "needs_root": None}) for platform in older.platforms
            ]
        }
    )
    with create_store(tmp_path / "old.tare", stripped) as store:
        for _, trials in fake_campaign._blocks(shape):
            store.commit_trials(
                [
                    dataclasses.replace(trial, daemon_cpu_ns=5 if trial.key.arm.platform == "docker" else None)
                    for trial in trials
                ]
            )
    answers = {answer.platform: answer for answer in build(tmp_path / "old.tare").answers}
    assert answers["docker"].daemon
    assert not answers["runc"].daemon
    assert answers["runc"].needs_root is None


@pytest.mark.parametrize("option", ["--json", "--all", "--cautions", "--beside=karna-2021"])
def test_what_is_of_a_report_is_not_silently_left_out(
    option: str, surfaced: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["tare", "report", str(surfaced), "--choose", "cpu<10%", option])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert option.partition("=")[0] in capsys.readouterr().err


@pytest.mark.parametrize("text", ["cpu<0 " + "\x03" * 3_000, "web=2 " + "startup=3 " * 500, f"for={'x' * 3_000}"])
def test_of_a_long_word_the_beginning_is_shown(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert len(str(caught.value)) < 1_000
