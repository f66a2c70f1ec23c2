"""What a table shows of a verdict: its mark, and the amount first where a ratio says nothing."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import fake_campaign
from tare.model import Arm
from tare.report.campaign.campaign_drawings import SYMBOLS
from tare.report.campaign.cells import cell
from tare.report.campaign.report_builder import build
from tare.report.campaign.report_terminal import STYLES, render
from tare.report.formats.html import write_html
from tare.report.model import PlatformReport, Report, ResultReport, to_json
from tare.report.sentences.numbers import quantity
from tare.report.sentences.shown import ShownFigure
from tare.report.sentences.signs import MARKS, MEANINGS, sign_of
from tare.store import create_store

QUIET = fake_campaign.Shape(stolen=False, failing=None, unsupported=None)


def of(report: Report, workload: str, metric: str, platform: str) -> tuple[ResultReport, PlatformReport]:
    (result,) = (r for r in report.results if (r.workload, r.metric) == (workload, metric))
    (match,) = (p for p in result.platforms if p.platform == platform)
    return result, match


def printed(report: Report, width: int = 100) -> str:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(render(report, width=width))
    return out.getvalue()


@pytest.fixture(scope="module")
def open_size(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Platforms that are worse and better for sure, each by about the margin."""
    slowdown = {"native": 1.0, "near": 1.0105, "nearly-better": 0.9895}
    shape = replace(QUIET, blocks=16, slowdown=slowdown, workloads=("prime-slices",), block_noise=0.004, seed=11)
    return fake_campaign.write(tmp_path_factory.mktemp("open") / "open.tare", shape)


def test_no_answer_and_a_difference_of_open_size_have_marks_of_their_own(open_size: Path) -> None:
    report = build(open_size)
    shown = {name: of(report, "prime-slices", "rate", name)[1] for name in ("near", "nearly-better")}
    assert {name: entry.verdict for name, entry in shown.items()} == dict.fromkeys(shown, "inconclusive")
    assert (shown["near"].certain, shown["nearly-better"].certain) == ("worse", "better")
    assert [MARKS[sign_of(entry)] for entry in shown.values()] == ["△", "▽"]
    assert "surely worse; whether by more than the 1 % margin is open" in shown["near"].verdict_text
    text = printed(report)
    assert "△ +" in text
    assert "▽ \N{MINUS SIGN}" in text
    assert "△ surely worse but open whether by more than the margin" in " ".join(text.split())


def test_the_json_keeps_its_kinds_and_says_which_side_is_sure(open_size: Path) -> None:
    report = json.loads(to_json([build(open_size)]))
    near = next(p for p in report["results"][0]["platforms"] if p["platform"] == "near")
    assert (near["verdict"], near["certain"]) == ("inconclusive", "worse")
    native = report["results"][0]["platforms"][0]
    assert (native["certain"], native["amount"]) == (None, None)


def test_no_two_looks_share_a_mark_or_a_meaning_and_the_page_draws_each(open_size: Path, tmp_path: Path) -> None:
    assert len({MARKS[at] for at in MEANINGS}) == len(MEANINGS)
    assert set(MARKS) == set(STYLES) == set(MEANINGS) | {"baseline"}
    assert len(set(MEANINGS.values())) >= len(MEANINGS) - 1  # the two open ones differ in their name
    write_html([open_size], tmp_path / "open.html")
    page = (tmp_path / "open.html").read_text()
    for at, (name, _) in MEANINGS.items():
        assert f'<span class="key {at}"><span class="mark">{MARKS[at]}</span> <b>{name}</b>' in page
    assert set(SYMBOLS) == set(MARKS)
    assert '<td class="cell surely-worse"' in page
    assert "smallest difference that this run can see" not in page


def test_start_up_tells_first_what_it_adds(tmp_path: Path) -> None:
    report = build(fake_campaign.write(tmp_path / "a.tare", replace(QUIET, blocks=6, workloads=("startup",))))
    result, ptrace = of(report, "startup", "first-byte", "gvisor-ptrace")
    (native,) = (p for p in result.platforms if p.platform == "native")
    assert native.mean is not None
    assert ptrace.effect is not None
    assert ptrace.effect.value is not None
    assert ptrace.amount is not None
    assert ptrace.amount_low is not None
    assert ptrace.effect.low is not None
    assert ptrace.amount == pytest.approx(ptrace.effect.value - native.mean)
    assert ptrace.amount_low == pytest.approx(native.mean * (ptrace.effect.low - 1))
    assert (ptrace.amount_low, ptrace.amount_high) != (None, None)
    assert ptrace.amount_unit == "ms"
    shown = cell(result, ptrace)
    amount = ShownFigure.of(result, ptrace).amount()
    assert amount is not None
    assert (shown.figure, shown.span) == amount
    assert shown.figure.startswith("+9")
    assert shown.figure.endswith(" ms")
    assert shown.below[0].startswith("3.")
    assert shown.below[1] == quantity(ptrace.effect.value, "ms")
    assert shown.in_line == f"▲ {shown.figure} ({shown.span}), {shown.below[0]}, {shown.below[1]}"
    assert " … " in shown.span
    assert ptrace.verdict_text.startswith(f"{amount[0]} ({amount[1].replace(' … ', ' to ')}): 3.")
    lines = [line.split() for line in printed(report).splitlines()]
    assert any(shown.figure.split()[0] in line for line in lines)


def test_beside_every_ratio_stands_the_amount(tmp_path: Path) -> None:
    path = fake_campaign.write(tmp_path / "a.tare", replace(QUIET, blocks=4, rounds=5))
    for result in build(path).results:
        for entry in result.platforms[1:]:
            assert entry.amount is not None
            assert entry.amount_low is not None
            assert entry.amount_high is not None
            assert entry.amount_low < entry.amount < entry.amount_high
            assert entry.amount_unit == result.unit
    write_html([path], tmp_path / "a.html")
    assert '>adds<small class="ends">interval</small>' in (tmp_path / "a.html").read_text()


def test_one_block_shows_what_was_measured(tmp_path: Path) -> None:
    report = build(fake_campaign.write(tmp_path / "a.tare", replace(QUIET, blocks=1)))
    result, systrap = of(report, "prime-slices", "rate", "gvisor-systrap")
    assert systrap.op_percent == pytest.approx(4, abs=1)
    assert (systrap.op_low_percent, systrap.ratio_low, systrap.verdict) == (None, None, "inconclusive")
    shown = cell(result, systrap)
    assert (shown.mark, shown.span) == ("?", "1 block")
    assert shown.figure == f"+{systrap.op_percent:.1f} %"
    start, started = of(report, "startup", "first-byte", "gvisor-ptrace")
    shown = cell(start, started)
    assert shown.figure.startswith("+9")
    assert shown.figure.endswith(" ms")
    assert (shown.span, shown.below[0][:3]) == ("1 block", "3.3")
    assert "in 1 block, and an interval needs 2" in started.verdict_text
    write_html([tmp_path / "a.tare"], tmp_path / "a.html")


def test_a_baseline_of_nothing_leaves_the_amount(tmp_path: Path) -> None:
    """Where the baseline takes no time at all there is no ratio, and what is added is told all the same."""
    shape = replace(QUIET, blocks=3, workloads=("startup",))
    with create_store(tmp_path / "a.tare", fake_campaign.record(shape)) as store:
        for _, trials in fake_campaign._blocks(shape):
            idle = [
                replace(t, samples=tuple(replace(s, value=0.0) for s in t.samples)) if t.key.arm == Arm("native") else t
                for t in trials
            ]
            store.commit_trials(idle)
    result, docker = of(build(tmp_path / "a.tare"), "startup", "first-byte", "docker")
    assert docker.verdict_text.startswith("refused: 3 of 6 samples of the baseline")
    assert docker.amount is not None
    assert docker.amount_low is not None
    assert docker.mean is not None
    assert cell(result, docker).below == ("no ratio", quantity(docker.mean, "ms"))


def test_the_noise_floor_says_what_it_lets_be_found(tmp_path: Path) -> None:
    report = build(fake_campaign.write(tmp_path / "a.tare", replace(QUIET, blocks=12, workloads=("prime-slices",))))
    floor = report.results[0].noise_floor
    assert floor is not None
    assert floor.detectable_percent is not None
    assert floor.half_width_percent is not None
    assert 1.5 < floor.detectable_percent / floor.half_width_percent < 1.75
