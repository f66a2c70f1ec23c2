"""Platforms for what a user runs: weights, their words on the command line, and what they make of a campaign."""

import json

import pytest

from tare.analysis.answers import AnswerState, Dimension
from tare.analysis.bounds import BoundKind
from tare.errors import UsageError
from tare.estimates.intervals import Interval
from tare.model import Family
from tare.report.campaign import use_views
from tare.report.campaign.choose import parse, picks, weights_of
from tare.report.campaign.use_views import Costs, answerable, costs_of, default_weights, told_apart, weighed
from tare.report.model import AnswerReport, BoundReport, DimensionReport, Report
from tare.report.sentences import use_words as words
from tare.report.sentences.use_words import WEIGHTS, Aspect, UserUse


def _standing(dimension: Dimension, **more: object) -> DimensionReport:
    facts = {"workload": "w", "metric": "m", "n_figures": 1, "felt": 0.1, "op_percent": None, "figure": "", "text": ""}
    return DimensionReport(dimension=dimension, **{"state": AnswerState.WORSE, **facts, **more})


def _answer(platform: str, *standings: DimensionReport, calls: int | None = None) -> AnswerReport:
    return AnswerReport(
        platform=platform, sentences=[], dimensions=list(standings), daemon=False, calls=calls,
        baseline_calls=None if calls is None else 400, settling=None,
    )  # fmt: skip


def _report(report: Report, *answers: AnswerReport) -> Report:
    return report.model_copy(update={"answers": list(answers), "results": []})


def test_each_use_has_weights_of_what_it_needs() -> None:
    for use in UserUse:
        assert words.NEEDED[use] & set(WEIGHTS[use])
        assert words.USES[use] in words.not_answerable(use)


def test_the_command_line_takes_a_use_and_weights_of_ones_own() -> None:
    asked = parse("for=web disk*2, cpu*0 daemon=no")
    assert asked.use is UserUse.WEB
    weights = weights_of(asked)
    assert weights is not None
    assert (weights[Aspect.DISK], weights[Aspect.CPU_COST], weights[Aspect.APPLICATIONS]) == (2, 0, 4)
    assert weights_of(parse("cpu<10%")) is None


@pytest.mark.parametrize("text", ["for=shop", "disk*2", "for=batches"])
def test_what_there_are_no_weights_for_is_said_with_the_uses(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse(text)
    assert "for=web|batch" in (raised.value.fix or "")


def test_a_weighted_cost_is_the_mean_of_doublings_and_its_range_that_of_the_ends(report: Report) -> None:
    slow = _answer(
        "slow",
        _standing(Dimension.APPLICATIONS, times=4.0, times_low=2.0, times_high=8.0),
        _standing(Dimension.NETWORK, times=1.0, times_low=1.0, times_high=1.0, state=AnswerState.ALIKE),
    )
    quick = _answer(
        "quick",
        _standing(Dimension.APPLICATIONS, times=1.1, times_low=1.0, times_high=1.2),
        _standing(
            Dimension.NETWORK,
            state=AnswerState.BOUNDED,
            times=1.0,
            bound=BoundReport(kind=BoundKind.BETWEEN, low=0.9, high=1.1, amount_low=None, amount_high=None),
        ),
    )
    best, last = weighed(_report(report, slow, quick), {Aspect.APPLICATIONS: 1, Aspect.NETWORK: 1})
    assert (best.platform, last.platform) == ("quick", "slow")
    assert last.times == Interval(pytest.approx(2.0), pytest.approx(2**0.5), pytest.approx(8**0.5))
    assert best.times is not None
    assert best.times.low == pytest.approx((1.0 * 0.9) ** 0.5)
    assert told_apart(best, [last]) == ()
    near = weighed(_report(report, quick, quick.model_copy(update={"platform": "twin"})), WEIGHTS[UserUse.WEB])
    assert told_apart(near[0], near[1:]) == ("twin",)


def test_who_has_no_figure_of_what_counts_is_last_and_says_of_what(report: Report) -> None:
    whole = _answer("whole", _standing(Dimension.DISK, times=9.0), _standing(Dimension.NETWORK, times=9.0))
    part = _answer("part", _standing(Dimension.DISK, times=1.0))
    ranked = weighed(_report(report, part, whole), {Aspect.DISK: 1, Aspect.NETWORK: 1})
    assert [of.platform for of in ranked] == ["whole", "part"]
    assert ranked[1].times is None
    assert words.not_known(ranked[1].missing) == "not known: network"


def test_what_nobody_measured_has_no_weight(report: Report) -> None:
    only = _answer("only", _standing(Dimension.NETWORK, times=2.0, times_low=2.0, times_high=2.0))
    [of] = weighed(_report(report, only), WEIGHTS[UserUse.WEB])
    assert of.times is not None
    assert of.times.point == pytest.approx(2.0)
    text = words.weights_text(default_weights(UserUse.WEB), {Aspect.NETWORK})
    assert text == "network 3; not measured here, and without weight: applications, CPU cost, compute, memory footprint"


def test_cpu_cost_is_the_worst_of_the_work_that_counts() -> None:
    cpu = {Aspect.COMPUTE: Interval(0.1, 0.0, 0.2), Aspect.APPLICATIONS: Interval(3.0, 2.9, 3.1)}
    costs = Costs({}, cpu, frozenset())
    assert costs.cpu_cost({Aspect.COMPUTE: 1, Aspect.CPU_COST: 1}) == cpu[Aspect.COMPUTE]
    assert costs.cpu_cost({Aspect.COMPUTE: 1, Aspect.APPLICATIONS: 1}) == cpu[Aspect.APPLICATIONS]
    assert costs.cpu_cost({Aspect.DISK: 1}) == cpu[Aspect.APPLICATIONS]


def test_cpu_costs_of_all_families_are_read_by_their_dimension(report: Report) -> None:
    families = {result.family for result in report.results if result.metric == "cpu-cost"}
    docker = next(answer for answer in report.answers if answer.platform == "docker")
    aspects = set(costs_of(report, docker).cpu)
    assert Aspect.COMPUTE in aspects
    assert (Aspect.NETWORK in aspects) == (Family.NETWORK in families)


def test_a_start_counts_by_what_it_adds(report: Report) -> None:
    start = next(standing for answer in report.answers for standing in answer.dimensions if standing.unit == "ms")
    figures = next(
        figures
        for result in report.results
        if (result.workload, result.metric) == (start.workload, start.metric)
        for figures in result.platforms
        if figures.amount is not None
    ).model_copy(update={"amount": 100.0, "amount_low": 0.0, "amount_high": 300.0, "amount_unit": "ms"})
    assert use_views._amount(figures, start) == Interval(1.0, 0.0, 2.0)


def test_untrusted_code_is_chosen_by_what_was_read_of_the_kernel(report: Report) -> None:
    assert UserUse.UNTRUSTED not in answerable(report)
    work = _standing(Dimension.COMPUTE, times=1.0, times_low=1.0, times_high=1.0)
    few, many = _answer("few", work, calls=50), _answer("many", work, calls=400)
    shown = _report(report, many, few)
    assert UserUse.UNTRUSTED in answerable(shown)
    assert [of.platform for of in weighed(shown, WEIGHTS[UserUse.UNTRUSTED])] == ["few", "many"]


def test_the_boxes_answer_each_use_that_was_measured(report: Report) -> None:
    asked = [pick.what for pick in picks(report)]
    assert asked[:2] == ["for a web service", "for batch compute"]
    assert "for untrusted code" not in asked


def test_the_pages_script_has_the_same_costs_and_weights(report: Report) -> None:
    view = use_views.uses_view(report)
    assert view is not None
    weights = json.loads(view.weights)[view.chosen.value]
    first = weighed(report, default_weights(view.chosen))[0]
    answer = next(answer for answer in report.answers if answer.platform == first.platform)
    costs = json.loads(use_views.for_page(costs_of(report, answer)))
    counted = {name: weight for name, weight in weights.items() if name in view.aspects}
    terms = {name: costs["of"].get(name, [0, 0, 0])[0] for name in counted}
    terms["cpu-cost"] = max(cost[0] for name, cost in costs["cpu"].items() if name in counted)
    assert first.times is not None
    mean = sum(counted[name] * term for name, term in terms.items()) / sum(counted.values())
    assert 2**mean == pytest.approx(first.times.point, rel=1e-4)
