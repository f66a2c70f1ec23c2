"""The campaign in one or two sentences: what whoever reads nothing else takes along."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from tare.analysis.answers import AnswerState, Dimension
from tare.analysis.bounds import BoundKind
from tare.estimates.intervals import Interval
from tare.report.model import AnswerReport, DimensionReport, Report, ResultReport
from tare.report.sentences.dimensions import DIMENSIONS
from tare.report.sentences.numbers import number_of, quantity
from tare.report.sentences.scale import at_most, overheads
from tare.report.sentences.signs import UNSURE

#: The heading of the few cautions that stand beside an answer, and the legend of the picture beside its table.
CAUTIONS = "Read it with this in mind"
PICTURE = " Beside: how many times worse each is, from which to which."
#: The first of these that the campaign has is named: what most people run, otherwise the speed of programs.
_WORK = (Dimension.APPLICATIONS, Dimension.NETWORK, Dimension.COMPUTE, Dimension.DISK, Dimension.MEMORY)
#: Times that people know: a start that is below one of them, in ms.
_ROUND_MS = (10, 20, 50, 100, 200, 300, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000)
#: Up to here a cost is said in per cent, and beyond as a factor.
_FACTOR_FROM = 2.0
#: Costs that differ by less, as fractions, are said together.
_CLOSE = 0.1
#: From this factor on, intervals are said to be wider.
_FELT = 1.15


def sentences(answers: Sequence[AnswerReport], own: Mapping[str, str] | None = None) -> list[str]:
    """Return what the answers say of work, start and memory; nothing where they say nothing of these.

    ``own``: what a user calls workloads of their own, by workload.
    """
    words = [_of_work(answers, own or {}), _of_starts(answers), _of_memory(answers)]
    return [sentence for sentence in words if sentence]


def life(results: Sequence[ResultReport]) -> list[str]:
    """Return what a whole life costs and what a command in a running instance does, where that was measured."""
    whole, cpu = (_values(results, "whole-life", metric) for metric in ("whole", "cpu"))
    lived = sorted((ms, name) for name, ms in whole.items() if name in cpu)[::-1]
    lines = []
    if lived:
        (ms, first), *others = lived
        head = f"{first}: a one-shot command costs {ms:,.0f} ms and {cpu[first]:,.0f} ms of CPU from nothing to nothing"
        lines.append("; ".join([head, *(f"{name} {ms:,.0f} and {cpu[name]:,.0f}" for ms, name in others)]) + ".")
    entered = sorted(((ms, name) for name, ms in _values(results, "exec", "return").items()), reverse=True)
    if entered:
        shown = (f"{name} {ms:,.{0 if ms >= 10 else 1}f}" for ms, name in entered)
        lines.append(f"One more command in a running instance, in ms: {', '.join(shown)}.")
    return lines


def _values(results: Sequence[ResultReport], workload: str, metric: str) -> dict[str, float]:
    """The platforms' means of a metric."""
    return {
        figures.platform: figures.mean
        for result in results
        if (result.workload, result.metric) == (workload, metric)
        for figures in result.platforms
        if figures.mean is not None
    }


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _of(answers: Sequence[AnswerReport], dimension: Dimension) -> list[tuple[str, DimensionReport]]:
    """The platforms that have a figure in a dimension."""
    return [
        (answer.platform, standing)
        for answer in answers
        for standing in answer.dimensions
        if standing.dimension is dimension and standing.state not in {AnswerState.NONE, AnswerState.LIMITED}
    ]


def own_words(report: Report) -> dict[str, str]:
    """Return what a user calls workloads of their own: a command as it was given, an application by its name."""
    words = {ranking.workload: ranking.workload for ranking in report.rankings}
    for result in report.results:
        if result.workload.startswith("app:"):
            words[result.workload] = result.workload.removeprefix("app:")
    return words


def _of_work(answers: Sequence[AnswerReport], own: Mapping[str, str]) -> str:
    """As in "For applications, runc and docker cost at most 15 %; gvisor is 6.0 times slower"."""
    dimension = next((dimension for dimension in _WORK if _of(answers, dimension)), None)
    if dimension is None:
        return ""
    parts = [*_little(_of(answers, dimension)), *_much(_of(answers, dimension))]
    words = list(dict.fromkeys(own.get(standing.workload, "") for _, standing in _of(answers, dimension)))
    what = _listed(words) if all(words) else DIMENSIONS[dimension]
    return f"For {what}, {'; '.join(parts)}." if parts else ""


def _most(standing: DimensionReport) -> float | None:
    """At most this many times worse, where that is known."""
    if standing.bound is not None:
        return standing.bound.high if standing.bound.kind is not BoundKind.AT_LEAST else None
    if standing.state in {AnswerState.ALIKE, AnswerState.BETTER, AnswerState.SURELY_BETTER}:
        return standing.times_high or standing.times
    return None


def _little(standings: Sequence[tuple[str, DimensionReport]]) -> Iterator[str]:
    """Platforms with an upper end below a factor of two; those that are close to each other share the largest."""
    small = [
        (overheads(Interval(most, most, most), standing.direction).point, name, at_most(most, standing.direction))
        for name, standing in standings
        if (most := _most(standing)) is not None and most < _FACTOR_FROM
    ]
    shared: list[list[tuple[float, str, str]]] = []
    for cost in sorted(small, key=lambda of: of[0]):
        if shared and cost[0] - shared[-1][0][0] < _CLOSE:
            shared[-1].append(cost)
        else:
            shared.append([cost])
    order = [name for _, name, _ in small]
    for costs in shared:
        over, _, size = costs[-1]
        verb = "costs" if len(costs) == 1 else "cost"
        names = _listed(sorted((name for _, name, _ in costs), key=order.index))
        yield f"{names} {verb} {size.replace('+', '') if over > 0 else 'nothing'}"


def _much(standings: Sequence[tuple[str, DimensionReport]]) -> Iterator[str]:
    """Those that may cost more than that, each by itself; who is not known comes last."""
    unknown = []
    for name, standing in standings:
        if (_most(standing) or math.inf) < _FACTOR_FROM:
            continue
        if standing.state in {AnswerState.WORSE, AnswerState.SURELY_WORSE} and standing.times is not None:
            size, unsure = standing.figure.lstrip("+").rstrip(UNSURE), standing.figure.endswith(UNSURE)
            size = f"{standing.times:.1f} times" if standing.times >= _FACTOR_FROM else size
            yield f"{name} is {size} slower{UNSURE if unsure else ''}"
        elif standing.bound is not None and standing.bound.kind is BoundKind.AT_LEAST and standing.bound.low > 1:
            yield f"{name} is at least {standing.bound.low:.1f} times slower"
        else:
            unknown.append(name)
    if unknown:
        yield f"the cost of {_listed(unknown)} is not known yet"


def _of_starts(answers: Sequence[AnswerReport]) -> str:
    """As in "All start in under 300 ms"."""
    times = [
        (name, standing.value * scale)
        for name, standing in _of(answers, Dimension.START)
        if standing.value is not None and (scale := {"ms": 1.0, "s": 1_000.0}.get(standing.unit)) is not None
    ]
    if len(times) < len(answers) or not times:
        return ""
    longest = max(ms for _, ms in times)
    limit = next((limit for limit in _ROUND_MS if longest < limit), None)
    if limit is None or min(ms for _, ms in times) * 20 < longest:  # too far apart to be said together
        shown = ", ".join(f"{name} {quantity(ms, 'ms')}" for name, ms in times)
        return f"Start: {shown}."
    who = "All start" if len(times) > 1 else f"{times[0][0]} starts"
    return f"{who} in under {limit / 1_000:g} s."


def _of_memory(answers: Sequence[AnswerReport]) -> str:
    """As in "One more instance takes 0.5 MiB (runc), 3.1 MiB (docker)"."""
    sizes = [
        (name, standing.value) for name, standing in _of(answers, Dimension.FOOTPRINT) if standing.value is not None
    ]
    shown = [f"{mib:.{1 if mib < 10 else 0}f} MiB ({name})" for name, mib in sizes]
    return f"One more instance takes {', '.join(shown)}." if shown else ""


def invalid(figures: int) -> str:
    """That figures have no verdict for what they are of."""
    shown = number_of(figures, "figure")
    return f"{shown} cannot be judged: a clock, a limit or the client was wrong" if figures else ""


def failed(trials: int, first: str | None) -> str:
    """That trials have no result, and of one why."""
    return f"{number_of(trials, 'trial')} failed{':' if trials == 1 else ', such as'} {first}" if trials else ""


def disturbed(figures: int, of: int, factor: float | None) -> str:
    """That the machine was busy, and its consequence; ``factor``: how many times wider intervals are, if known."""
    if not figures:
        return ""
    busy = f"this machine was busy during trials of {figures} of {number_of(of, 'figure')}"
    if factor is None:
        return f"{busy}: how much wider that makes the intervals cannot be told (tare run --tune)"
    if factor < _FELT:
        return f"{busy}: intervals are about as wide as without these trials"
    return f"{busy}: intervals are about {_times(factor)} as wide as without these trials (tare run --tune)"


def _times(factor: float) -> str:
    return "twice" if 1.8 <= factor < 2.25 else f"{factor:.1f} times"


def wide(figures: int, of: int, baseline: str) -> str:
    """That the noise is larger than the margin."""
    return (
        f"{baseline} differs from itself by more than the margin in {figures} of {number_of(of, 'figure')}:"
        " that a platform is as fast cannot be shown there"
        if figures
        else ""
    )


def more(cautions: int) -> str:
    """Return where all is, and that there are others."""
    others = f"{number_of(cautions, 'more note')}, " if cautions else ""
    return f"{others}every figure and each caution: tare report FILE --all, or the page"
