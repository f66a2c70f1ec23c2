"""The answer on one screen."""

import io
import re

import pytest
from rich.cells import cell_len
from rich.console import Console

from tare.analysis.answers import AnswerState, Dimension
from tare.analysis.bounds import Bound, BoundKind
from tare.analysis.verdicts import VerdictKind
from tare.model import Direction
from tare.report.campaign import costs, glance_views
from tare.report.campaign.answer_views import bound_report
from tare.report.campaign.cautions import widened
from tare.report.campaign.report_terminal import render_glance
from tare.report.model import AnswerReport, DimensionReport, PlatformReport, Report, ResultReport
from tare.report.model.fact_models import LeftOutReport
from tare.report.model.result_models import BoundReport, UnmarkedReport
from tare.report.sentences import glance_words as words
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


def test_the_pictures_axis_stands_in_the_line_of_heads_at_every_width(report: Report) -> None:
    axes = [line for width in range(80, 171) for line in _printed(report, width) if "1\N{MULTIPLICATION SIGN} " in line]
    assert len(axes) > 30
    assert [line for line in axes if "(" not in line] == []


def test_sentences_come_before_the_table_and_what_helps_last(report: Report) -> None:
    text = "\n".join(_printed(report, 120))
    assert text.index("For ") < text.index("compute") < text.index(words.CAUTIONS)
    assert "tare report FILE --all" in text


def test_the_picture_has_each_platform_by_its_letter_where_it_is_known(report: Report) -> None:
    seen = glance_views.glance(report, 160)
    assert len(set(seen.letters)) == len(seen.platforms)
    compute = next(line for name, _, line in seen.rows if name == "compute")
    ptrace = seen.letters[seen.platforms.index("gvisor-ptrace")]
    assert compute.index(ptrace) > compute.index("\N{BOX DRAWINGS LIGHT VERTICAL}" if "│" in compute else "*")
    assert seen.axis.split()[:2] == ["1×", "2×"]
    assert glance_views.glance(report, 60).axis == ""


def _standing(dimension: Dimension, state: AnswerState, **more: object) -> DimensionReport:
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
        _answer("runc", _standing(work, AnswerState.BOUNDED, bound=_bound(BoundKind.BETWEEN, 0.98, 1.08))),
        _answer("docker", _standing(work, AnswerState.ALIKE, times=1.01, times_low=1.0, times_high=1.02)),
        _answer("gvisor", _standing(work, AnswerState.WORSE, times=6.04, figure="6.0 ×")),
        _answer("uml", _standing(work, AnswerState.BOUNDED, bound=_bound(BoundKind.AT_LEAST, 3.0, 90.0))),
        _answer("lxc", _standing(work, AnswerState.OPEN)),
    ]
    assert words.sentences(answers) == [
        "For applications, runc and docker cost at most 8.0 %; gvisor is 6.0 times slower; uml is at least 3.0 times"
        " slower; the cost of lxc is not known yet."
    ]


def test_who_costs_little_is_not_said_to_cost_as_much_as_another() -> None:
    work = Dimension.APPLICATIONS
    ends = {"docker": 1.35, "runc": 1.18, "crun": 1.15}
    answers = [
        _answer(name, _standing(work, AnswerState.BOUNDED, bound=_bound(BoundKind.BETWEEN, 0.98, high)))
        for name, high in ends.items()
    ]
    assert words.sentences(answers) == ["For applications, runc and crun cost at most 18 %; docker costs at most 35 %."]


def test_who_is_not_known_comes_last_and_together() -> None:
    work = Dimension.APPLICATIONS
    open_ones = [_answer(name, _standing(work, AnswerState.OPEN)) for name in ("runc", "lxc")]
    slow = _answer("gvisor", _standing(work, AnswerState.WORSE, times=6.04, figure="6.0 ×"))
    [said] = words.sentences([open_ones[0], slow, open_ones[1]])
    assert said == "For applications, gvisor is 6.0 times slower; the cost of runc and lxc is not known yet."


def test_the_sentence_says_a_bound_as_the_table_does() -> None:
    bound = Bound(BoundKind.BETWEEN, 1.024, 1.25)
    in_table = bound_difference(bound, Direction.HIGHER)
    rate = _standing(Dimension.DISK, AnswerState.BOUNDED, direction=Direction.HIGHER, bound=bound_report(bound))
    assert in_table.endswith("+20 %")
    assert words.sentences([_answer("runc", rate)]) == ["For disk, runc costs at most 20 %."]


def test_starts_and_memory_are_said_of_all() -> None:
    answers = [
        _answer(
            name,
            _standing(Dimension.START, AnswerState.WORSE, value=ms, unit="ms"),
            _standing(Dimension.FOOTPRINT, AnswerState.WORSE, value=mib, unit="MiB"),
        )
        for name, ms, mib in (("runc", 31.0, 0.5), ("docker", 182.0, 3.06), ("gvisor", 117.0, 16.2))
    ]
    assert words.sentences(answers) == [
        "All start in under 0.2 s.",
        "One more instance takes 0.5 MiB (runc), 3.1 MiB (docker), 16 MiB (gvisor).",
    ]
    far = _answer("qemu", _standing(Dimension.START, AnswerState.WORSE, value=9_000.0, unit="ms"))
    assert words.sentences([answers[0], far])[0] == "Start: runc 31.00 ms, qemu 9.00 s."


def test_what_is_not_there_is_not_said() -> None:
    assert words.sentences([]) == []
    assert words.sentences([_answer("runc", _standing(Dimension.APPLICATIONS, AnswerState.LIMITED))]) == []


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


def test_the_failed_trial_is_named_and_not_an_unsupported_one(report: Report) -> None:
    [failed] = [failure for failure in report.failures if failure.status == "failed"]
    unsupported = [failure for failure in report.failures if failure.status == "unsupported"]
    text = " ".join(_printed(report.model_copy(update={"failures": [*unsupported, failed]}), 120))
    assert f"such as {failed.workload} on {failed.platform}" in text
    assert unsupported[0].reason not in text


def test_whole_lives_are_said_with_their_cpu_time(report: Report) -> None:
    whole = report.results[0].model_copy(update={"workload": "whole-life", "metric": "whole"})
    cpu = whole.model_copy(update={"metric": "cpu"})
    [said] = words.life([whole, cpu, report.results[1]])
    assert said.startswith(
        "native: a one-shot command costs 3,169 ms and 3,169 ms of CPU from nothing to nothing; runc "
    )
    assert said.count(" and ") == len(whole.platforms)
    assert words.life([whole]) == words.life([]) == []


def test_the_dagger_has_its_meaning_below_the_table_that_has_it(report: Report) -> None:
    worse = next(
        standing for answer in report.answers for standing in answer.dimensions if standing.state is AnswerState.WORSE
    )
    unsure = worse.model_copy(update={"figure": f"{worse.figure}\N{DAGGER}"})
    answers = [
        answer.model_copy(
            update={"dimensions": [unsure if standing is worse else standing for standing in answer.dimensions]}
        )
        for answer in report.answers
    ]
    meaning = "\N{DAGGER} so many figures are compared"
    assert meaning in " ".join(_printed(report.model_copy(update={"answers": answers}), 120))
    assert meaning not in " ".join(_printed(report, 120))


def test_a_pipe_gets_the_table_without_the_picture(report: Report) -> None:
    out = io.StringIO()
    Console(file=out, width=160, color_system=None).print(render_glance(report, width=160, picture=False))
    assert "1×" not in out.getvalue()
    assert words.PICTURE.strip() not in out.getvalue()
    assert "1×" in "\n".join(_printed(report, 160))


def test_the_users_own_word_stands_in_the_sentence() -> None:
    work = Dimension.APPLICATIONS
    own = _standing(work, AnswerState.ALIKE, workload="make test", times=1.0, times_low=0.9, times_high=0.99)
    assert words.sentences([_answer("runc", own)], {"make test": "make test"}) == ["For make test, runc costs nothing."]
    other = _standing(work, AnswerState.ALIKE, workload="redis", times=1.0, times_low=0.9, times_high=0.99)
    mixed = [_answer("runc", own), _answer("docker", other)]
    assert words.sentences(mixed, {"make test": "make test"})[0].startswith("For applications, ")


def test_an_applications_word_is_its_name(report: Report) -> None:
    shop = report.results[0].model_copy(update={"workload": "app:shop"})
    assert words.own_words(report.model_copy(update={"results": [shop]})) == {"app:shop": "shop"}


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        (2.0, "intervals are about twice as wide as without these trials"),
        (1.4, "intervals are about 1.4 times as wide as without these trials"),
        (1.02, "intervals are about as wide as without these trials"),
        (None, "how much wider that makes the intervals cannot be told"),
    ],
)
def test_a_busy_machine_is_said_with_its_consequence(factor: float | None, said: str) -> None:
    assert said in words.disturbed(3, 8, factor)
    assert words.disturbed(0, 8, factor) == ""


def _figure(report: Report, half_width: float, n_blocks: int, *, clean: tuple[float, int] | None) -> PlatformReport:
    platform = report.results[0].platforms[1]
    unmarked = None if clean is None else UnmarkedReport(
        n_trials=1, n_baseline=0, n_blocks=clean[1], op_percent=0.0, op_low_percent=-clean[0], op_high_percent=clean[0],
        verdict=VerdictKind.INCONCLUSIVE, verdict_text="",
    )  # fmt: skip
    ends = {"op_low_percent": -half_width, "op_high_percent": half_width}
    return platform.model_copy(update={**ends, "n_blocks": n_blocks, "unmarked": unmarked})


def test_how_much_wider_intervals_are_is_the_median_at_equal_numbers_of_blocks(report: Report) -> None:
    def results(*figures: PlatformReport) -> list[ResultReport]:
        return [report.results[0].model_copy(update={"platforms": list(figures)})]

    wide = _figure(report, 4.0, 9, clean=(2.0, 9))
    same = _figure(report, 2.0, 9, clean=(2.0, 9))
    assert widened(results(wide, wide, same)) == pytest.approx(2.0)
    fewer = _figure(report, 2.0, 16, clean=(2.0, 4))  # as wide with a quarter of the blocks: less spread without
    factor = widened(results(fewer, fewer, fewer))
    assert factor is not None
    assert factor > 2
    assert widened(results(wide, wide, _figure(report, 4.0, 9, clean=None))) is None  # of too few figures


def test_the_pages_picture_has_the_margin_as_a_band_and_fits_a_phone(report: Report) -> None:
    wide, phone = costs.costs(report), costs.costs(report, phone=True)
    assert wide is not None
    assert phone is not None
    assert (wide.width, phone.width) == (760, 340)
    for drawing in (wide, phone):
        shown = drawing.__html__()
        rows = sum(
            costs._known(standing) is not None and standing.state not in {AnswerState.NONE, AnswerState.OPEN}
            for answer in report.answers
            for standing in answer.dimensions
        )
        assert shown.count('class="band"') == shown.count('class="bar ') == rows
        sides = [float(x) for x in re.findall(r' x="([\d.]+)"', shown)]
        assert max(sides) <= drawing.width
