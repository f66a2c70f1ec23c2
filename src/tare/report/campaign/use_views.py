"""Platforms ranked for what a user runs: a weighted mean of what each aspect costs, with its interval.

Each aspect's cost is in doublings: log2 of how many times worse it is. A start and an instance's memory are added
amounts, and `START_MS` or `FOOTPRINT_MIB` more count as a doubling. Nothing is estimated here: the ends of a weighted
cost are the weighted means of the ends, which is at least as wide as its own 95 % interval.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tare.analysis.answers import FAMILIES, AnswerState, Dimension
from tare.analysis.quality.findings import NOT_THE_PLATFORMS
from tare.estimates.intervals import Interval
from tare.model import CPU_COST
from tare.report.model import AnswerReport, DimensionReport, PlatformReport, Report
from tare.report.sentences.use_words import EXPOSED, NEEDED, USES, WEIGHTS, Aspect, UserUse, aspect_name, not_known

#: Amounts that count as a doubled time.
START_MS = 100.0
FOOTPRINT_MIB = 64.0
#: At most so much of a start or of memory is saved: a doubling less for each further tenth would have no end.
_LEAST = -0.9
_TIMES: Mapping[str, float] = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3}
_SIZES: Mapping[str, float] = {"B": 2.0**-20, "KiB": 2.0**-10, "MiB": 1.0, "GiB": 2.0**10}
#: Standings without a figure of the platform's own.
_WITHOUT = frozenset({AnswerState.NONE, AnswerState.LIMITED})


@dataclass(frozen=True, slots=True)
class Weighed:
    """A platform's weighted cost: how many times worse; None where an aspect that counts is not known of it.

    ``sure``: whether all that counts has an interval. ``missing``: the aspects that others have a figure of.
    """

    platform: str
    times: Interval | None
    sure: bool
    missing: tuple[Aspect, ...]


@dataclass(frozen=True, slots=True)
class Costs:
    """A platform's aspects in doublings. ``cpu``: CPU cost by the dimension whose work it is of."""

    of: Mapping[Aspect, Interval]
    cpu: Mapping[Aspect, Interval]
    unsure: frozenset[Aspect]  # without an interval, or too wide for a bound

    def cpu_cost(self, weights: Mapping[Aspect, float]) -> Interval | None:
        """The worst CPU cost of the work that counts; of all work where none of that has one."""
        counted = [cost for aspect, cost in self.cpu.items() if weights.get(aspect, 0.0) > 0]
        return max(counted or self.cpu.values(), key=lambda cost: cost.point, default=None)


def default_weights(use: UserUse, own: Mapping[Aspect, float] | None = None) -> dict[Aspect, float]:
    """The weights of a use, with a user's own in their place."""
    return {aspect: (own or {}).get(aspect, WEIGHTS[use].get(aspect, 0.0)) for aspect in Aspect}


def costs_of(report: Report, answer: AnswerReport) -> Costs:
    """Return what is known of a platform, in doublings."""
    aspects: dict[Aspect, Interval] = {}
    unsure = set()
    for standing in answer.dimensions:
        aspect = Aspect(standing.dimension.value)
        interval = _dimension(report, answer.platform, standing)
        if interval is not None and standing.dimension is not Dimension.CPU_COST:
            aspects[aspect] = interval
            if standing.state in {AnswerState.OPEN, AnswerState.ONCE}:
                unsure.add(aspect)
    if answer.calls is not None and answer.baseline_calls:
        share = math.log2(max(answer.calls, 1) / answer.baseline_calls)
        aspects[EXPOSED] = Interval(share, share, share)
    return Costs(aspects, _cpu(report, answer.platform), frozenset(unsure))


def for_page(costs: Costs) -> str:
    """A platform's costs as JSON, which the page's script weighs again: [point, low, high] by aspect."""
    of = {aspect.value: _ends(cost) for aspect, cost in costs.of.items()}
    cpu = {aspect.value: _ends(cost) for aspect, cost in costs.cpu.items()}
    return json.dumps({"of": of, "cpu": cpu, "unsure": sorted(costs.unsure)})


def _ends(cost: Interval) -> list[float]:
    return [round(value, 6) for value in (cost.point, cost.low, cost.high)]


def measured(report: Report) -> frozenset[Aspect]:
    """The aspects that some platform of the campaign has a figure of."""
    every = [costs_of(report, answer) for answer in report.answers]
    aspects = {aspect for costs in every for aspect in costs.of}
    return frozenset(aspects | ({Aspect.CPU_COST} if any(costs.cpu for costs in every) else set()))


def answerable(report: Report) -> list[UserUse]:
    """The uses that the campaign measured the main work of, in the order of their definition."""
    there = measured(report)
    return [use for use in UserUse if there & NEEDED[use]]


def weighed(report: Report, weights: Mapping[Aspect, float]) -> list[Weighed]:
    """All platforms, the least weighted cost first; then those of which something that counts is not known."""
    there = measured(report)
    counted = {aspect: weight for aspect, weight in weights.items() if weight > 0 and aspect in there}
    shown = [_weighed(answer.platform, costs_of(report, answer), counted, weights) for answer in report.answers]
    return sorted(shown, key=lambda of: math.inf if of.times is None else of.times.point)


def _weighed(name: str, costs: Costs, counted: Mapping[Aspect, float], weights: Mapping[Aspect, float]) -> Weighed:
    terms = {aspect: costs.of.get(aspect) for aspect in counted}
    if Aspect.CPU_COST in terms:
        terms[Aspect.CPU_COST] = costs.cpu_cost(weights)
    missing = tuple(aspect for aspect, term in terms.items() if term is None)
    known = {aspect: (term.point, term.low, term.high) for aspect, term in terms.items() if term is not None}
    if missing or not known:
        return Weighed(name, None, sure=False, missing=missing)
    total = sum(counted.values())
    point, low, high = (
        float(2.0 ** (sum(counted[aspect] * ends[at] for aspect, ends in known.items()) / total)) for at in range(3)
    )
    return Weighed(name, Interval(point, low, high), sure=not costs.unsure & set(known), missing=())


def unweighed(report: Report, weights: Mapping[Aspect, float]) -> dict[str, str]:
    """Return why platforms have no weighted cost, by name."""
    return {of.platform: not_known(of.missing) for of in weighed(report, weights) if of.times is None}


def told_apart(best: Weighed, others: Sequence[Weighed]) -> tuple[str, ...]:
    """The platforms that may be as good as the best: those whose ends overlap with its own."""
    if best.times is None:
        return ()
    high = best.times.high
    return tuple(other.platform for other in others if other.times is not None and other.times.low <= high)


def _dimension(report: Report, platform: str, standing: DimensionReport) -> Interval | None:
    if standing.state in _WITHOUT:
        return None
    if standing.dimension in {Dimension.START, Dimension.FOOTPRINT}:
        figures = _figures(report, platform, standing.workload, standing.metric)
        return None if figures is None else _amount(figures, standing)
    if standing.bound is not None:
        low, high = standing.bound.low, standing.bound.high
        return _doublings(min(max(standing.times or low, low), high), low, high)
    if standing.times is None:
        return None
    return _doublings(standing.times, standing.times_low, standing.times_high)


def _doublings(times: float, low: float | None, high: float | None) -> Interval:
    point, least, most = (math.log2(max(value, 1e-6)) for value in (times, low or times, high or times))
    return Interval(point, least, most)


def _amount(figures: PlatformReport, standing: DimensionReport) -> Interval | None:
    """An added amount in doublings, from the interval that is shown."""
    units, whole = (_TIMES, START_MS) if standing.dimension is Dimension.START else (_SIZES, FOOTPRINT_MIB)
    scale = units.get(figures.amount_unit or standing.unit)
    if figures.amount is None or scale is None:
        return None
    low, high = figures.amount_low, figures.amount_high
    if standing.bound is not None:
        low, high = standing.bound.amount_low, standing.bound.amount_high
    ends = (figures.amount if end is None else end for end in (figures.amount, low, high))
    point, least, most = (math.log2(1 + max(scale * end / whole, _LEAST)) for end in ends)
    return Interval(point, min(least, point), max(most, point))


def _figures(report: Report, platform: str, workload: str, metric: str) -> PlatformReport | None:
    matching = (
        figures
        for result in report.results
        if (result.workload, result.metric) == (workload, metric)
        for figures in result.platforms
        if figures.platform == platform
    )
    return next(matching, None)


def _cpu(report: Report, platform: str) -> dict[Aspect, Interval]:
    """The worst CPU cost of each dimension's workloads."""
    worst: dict[Aspect, Interval] = {}
    for aspect, cost in _cpu_costs(report, platform):
        if aspect not in worst or cost.point > worst[aspect].point:
            worst[aspect] = cost
    return worst


def _cpu_costs(report: Report, platform: str) -> Iterator[tuple[Aspect, Interval]]:
    for result in report.results:
        if result.metric != CPU_COST or result.family not in FAMILIES:
            continue
        for figures in result.platforms:
            limited = any(caution.kind in NOT_THE_PLATFORMS for caution in figures.cautions)
            if figures.platform == platform and figures.effect is not None and not limited:
                effect = figures.effect
                low, high = effect.low, effect.high
                if effect.bound is not None:
                    low, high = effect.bound.low, effect.bound.high
                point = min(max(effect.times, low or effect.times), high or effect.times)
                yield Aspect(FAMILIES[result.family].value), _doublings(point, low, high)


@dataclass(frozen=True, slots=True)
class UsesView:
    """The uses that the page's script weighs platforms for: the first is chosen; ``weights``: of all, as JSON."""

    uses: Mapping[UserUse, str]
    chosen: UserUse
    aspects: Mapping[Aspect, str]  # those measured, with their names
    weights: str

    @property
    def values(self) -> Mapping[Aspect, float]:
        """The weights of the chosen use."""
        return default_weights(self.chosen)


def uses_view(report: Report) -> UsesView | None:
    """Return what the page asks for; None where the campaign answers no use."""
    uses = answerable(report)
    if not uses:
        return None
    there = measured(report)
    weights = {use.value: {aspect.value: weight for aspect, weight in WEIGHTS[use].items()} for use in uses}
    names = {aspect: aspect_name(aspect) for aspect in Aspect if aspect in there}
    return UsesView({use: USES[use] for use in uses}, uses[0], names, json.dumps(weights))
