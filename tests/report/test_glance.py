"""The answer on one screen."""

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from tare.analysis.answers import Dimension, State
from tare.analysis.bounds import Bound, BoundKind
from tare.model import Direction
from tare.report.campaign import glance
from tare.report.campaign.answers import bound_report
from tare.report.campaign.terminal import render_glance
from tare.report.model import AnswerReport, DimensionReport, Report
from tare.report.model.facts import LeftOutReport
from tare.report.model.results import BoundReport
from tare.report.sentences import glance as words
from tare.report.sentences.scale import bound_difference


def _printed(report: Report, width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(render_glance(report, width=width))
    return [line.rstrip() for line in out.getvalue().splitlines()]


@pytest.mark.parametrize("width", [80, 120])
def test_it_fits_a_screen_and_its_width(report: Report, width: int) -> None:
    lines = _printed(report, width)
    assert len(lines) <= 40
    assert max(map(cell_len, lines)) <= width


def test_sentences_come_before_the_table_and_what_helps_last(report: Report) -> None:
    text = "\n".join(_printed(report, 120))
    assert text.index("For ") < text.index("compute") < text.index(words.CAUTIONS)
    assert "tare report FILE --all" in text


def test_the_picture_has_each_platform_by_its_letter_where_it_is_known(report: Report) -> None:
    seen = glance.glance(report, 160)
    assert len(set(seen.letters)) == len(seen.platforms)
    compute = next(line for name, _, line in seen.rows if name == "compute")
    ptrace = seen.letters[seen.platforms.index("gvisor-ptrace")]
    assert compute.index(ptrace) > compute.index("\N{BOX DRAWINGS LIGHT VERTICAL}" if "│" in compute else "*")
    assert seen.axis.split()[:2] == ["1×", "2×"]
    assert glance.glance(report, 60).axis == ""


def _standing(dimension: Dimension, state: State, **more: object) -> DimensionReport:
    facts = {"workload": "w", "metric": "m", "n_figures": 1, "felt": 0.1, "op_percent": None, "figure": "", "text": ""}
    return DimensionReport(dimension=dimension, state=state, **{**facts, **more})


def _answer(platform: str, *standings: DimensionReport) -> AnswerReport:
    return AnswerReport(
        platform=platform, sentences=[], dimensions=list(standings), daemon=False, calls=None, baseline_calls=None,
        settling=None,
    )  # fmt: skip


def _bound(kind: BoundKind, low: float, high: float) -> BoundReport:
    return BoundReport(kind=kind, low=low, high=high, amount_low=None, amount_high=None)


def test_little_is_said_together_and_much_by_name() -> None:
    work = Dimension.APPLICATIONS
    answers = [
        _answer("runc", _standing(work, State.BOUNDED, bound=_bound(BoundKind.BETWEEN, 0.98, 1.08))),
        _answer("docker", _standing(work, State.ALIKE, times=1.01, times_low=1.0, times_high=1.02)),
        _answer("gvisor", _standing(work, State.WORSE, times=6.04, figure="6.0 ×")),
        _answer("uml", _standing(work, State.BOUNDED, bound=_bound(BoundKind.AT_LEAST, 3.0, 90.0))),
        _answer("lxc", _standing(work, State.OPEN)),
    ]
    assert words.sentences(answers) == [
        "For applications runc and docker cost at most 8.0 %; gvisor is 6.0 times slower; uml is at least 3.0 times"
        " slower; of lxc it is not known."
    ]


def test_the_sentence_says_a_bound_as_the_table_does() -> None:
    bound = Bound(BoundKind.BETWEEN, 1.024, 1.25)
    in_table = bound_difference(bound, Direction.HIGHER)
    rate = _standing(Dimension.DISK, State.BOUNDED, direction=Direction.HIGHER, bound=bound_report(bound))
    assert in_table.endswith("+20 %")
    assert words.sentences([_answer("runc", rate)]) == ["For disk runc costs at most 20 %."]


def test_starts_and_memory_are_said_of_all() -> None:
    answers = [
        _answer(
            name,
            _standing(Dimension.START, State.WORSE, value=ms, unit="ms"),
            _standing(Dimension.FOOTPRINT, State.WORSE, value=mib, unit="MiB"),
        )
        for name, ms, mib in (("runc", 31.0, 0.5), ("docker", 182.0, 3.06), ("gvisor", 117.0, 16.2))
    ]
    assert words.sentences(answers) == [
        "All start in under 0.2 s.",
        "One more instance takes 0.5 MiB (runc), 3.1 MiB (docker), 16 MiB (gvisor).",
    ]
    far = _answer("qemu", _standing(Dimension.START, State.WORSE, value=9_000.0, unit="ms"))
    assert words.sentences([answers[0], far])[0] == "Start: runc 31.00 ms, qemu 9.00 s."


def test_what_is_not_there_is_not_said() -> None:
    assert words.sentences([]) == []
    assert words.sentences([_answer("runc", _standing(Dimension.APPLICATIONS, State.LIMITED))]) == []


def test_what_was_asked_for_and_is_missing_is_the_first_line_and_nothing_else_of_what_is(report: Report) -> None:
    asked = LeftOutReport(
        platform="gvisor", reason="runsc is not installed", fix="tare setup --with gvisor", asked=True
    )
    unasked = LeftOutReport(platform="docker", reason="nobody listens", fix=None)
    lines = _printed(report.model_copy(update={"left_out": [unasked, asked]}), 120)
    assert lines[0] == (
        "Asked for and not measured: gvisor (runsc is not installed); to have it: tare setup --with gvisor"
    )
    assert "docker (nobody" not in "\n".join(lines)


def test_whole_lives_are_said_with_their_cpu_time(report: Report) -> None:
    whole = report.results[0].model_copy(update={"workload": "whole-life", "metric": "whole"})
    cpu = whole.model_copy(update={"metric": "cpu"})
    [said] = words.life([whole, cpu, report.results[1]])
    assert said.startswith("native: a one-shot command costs 3169 ms and 3169 ms of CPU from nothing to nothing; runc ")
    assert said.count(" and ") == len(whole.platforms)
    assert words.life([whole]) == words.life([]) == []
