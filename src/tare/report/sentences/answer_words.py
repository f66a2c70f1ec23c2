"""The answer on a platform: some sentences, what matters most first, and the clauses that they are made of."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tare.analysis.answers import AnswerState, Dimension, Settling, Standing
from tare.analysis.verdicts import Reason
from tare.estimates.widths import ANSWER
from tare.report.model import PlatformReport, ResultReport
from tare.report.sentences.dimensions import DIMENSIONS
from tare.report.sentences.numbers import all_failed, forecast, percent, quantity
from tare.report.sentences.scale import bound_difference, bound_phrase, coarse
from tare.report.sentences.shown import ShownFigure
from tare.report.sentences.signs import UNSURE
from tare.report.sentences.wording import Wording

#: Said of the dimension CPU cost, which names what is more.
_COST = Wording("{} more", "{} less", "{} times as much", "{} times less")
#: Number of differences that get a sentence each.
_APART = 3
#: Number of open figures that are named.
_NAMED = 4


@dataclass(frozen=True, slots=True)
class StandingFigure:
    """The figure that stands for a dimension, with the platform's result in it and the baseline's."""

    standing: Standing
    result: ResultReport
    platform: PlatformReport
    baseline: PlatformReport

    @property
    def figure(self) -> ShownFigure:
        """The figure with its words."""
        words = _COST if self.standing.dimension is Dimension.CPU_COST else None
        return ShownFigure.of(self.result, self.platform, words)


@dataclass(frozen=True, slots=True)
class Exposed:
    """System calls that a platform's tenant may make, and the baseline's; ``least``: some filters were not read."""

    calls: int
    baseline: int
    least: bool = False


def clause(shown: StandingFigure) -> str:
    """The difference with its interval and both values: "48 % slower (46 to 50; 22.1 MiB/s against 42.2 MiB/s)"."""
    size, ends = shown.figure.in_words()
    known = bounded(shown)
    if known:
        return f"{known} ({'; '.join(part for part in (f'{size}, {ends}', _values(shown)) if part)})"
    return f"{size} ({'; '.join(part for part in (ends, _values(shown)) if part)})" if size else _values(shown)


def short(shown: StandingFigure) -> str:
    """The difference alone, in a phrase: "48 % slower", "+212 ms"; the value where there is no difference."""
    return shown.figure.in_words()[0] or _values(shown)


def bounded(shown: StandingFigure) -> str:
    """Return what is known of a dimension without a verdict, in words; "" where that is nothing."""
    bound, figure = shown.standing.bound, shown.figure
    return "" if bound is None else bound_phrase(bound, shown.result.direction, figure.words, figure.unit)


def figure(shown: StandingFigure) -> str:
    """The difference for a table: "+48 %", a factor, "+212 ms", a bound; "" where there is none."""
    bound, of = shown.standing.bound, shown.figure
    if bound is not None:
        return bound_difference(bound, shown.result.direction, of.unit)
    if shown.standing.state is AnswerState.OPEN:
        return "" if shown.standing.seconds is None else f"({forecast(shown.standing.seconds)})"
    added = of.first()
    size = added[0] if added else "" if of.times is None else coarse(of.times.point, shown.result.direction)
    differs = shown.standing.state in {AnswerState.WORSE, AnswerState.BETTER}
    return size + (UNSURE if differs and shown.platform.survives_holm is False else "")


def sentences(shown: Sequence[StandingFigure], exposed: Exposed | None, failed: Mapping[str, int]) -> list[str]:
    """Some sentences: what is worse, what is alike, what is better, the kernel, and last what is open.

    ``shown``: of every standing, the most felt first. ``failed``: workloads of which each trial failed, and how many.
    """
    of = {comparison.standing.dimension: comparison for comparison in shown}
    compute, cost = of.get(Dimension.COMPUTE), of.get(Dimension.CPU_COST)
    twice = compute and cost and _kind(compute) == _kind(cost)
    spoken = [comparison for comparison in shown if not (twice and comparison is cost)]
    mentioned = {comparison.standing.workload for comparison in spoken if comparison.standing.state is AnswerState.NONE}
    by_state = {
        state: [comparison for comparison in spoken if comparison.standing.state is state] for state in AnswerState
    }
    return [
        *_worse(by_state[AnswerState.WORSE]),
        *_surely(by_state[AnswerState.SURELY_WORSE] + by_state[AnswerState.SURELY_BETTER]),
        *_alike(by_state[AnswerState.ALIKE]),
        *_better(by_state[AnswerState.BETTER]),
        *([exposed_clause(exposed)] if exposed is not None else []),
        *_once(by_state[AnswerState.ONCE]),
        *_bounded(by_state[AnswerState.BOUNDED]),
        *_unsure(by_state[AnswerState.OPEN]),
        *_limited(by_state[AnswerState.LIMITED]),
        *_missing(by_state[AnswerState.NONE]),
        *_failed({name: trials for name, trials in failed.items() if name not in mentioned}),
    ]


def _kind(shown: StandingFigure) -> tuple[AnswerState, str]:
    """The state and the family of the work: a CPU cost of computing as its speed is not said twice."""
    return shown.standing.state, shown.result.family


def exposed_clause(exposed: Exposed) -> str:
    """Return how many system calls the tenant may make, as a sentence."""
    least = "at least " if exposed.least else ""
    calls_text = f"{least}{exposed.calls} system calls of {exposed.baseline}"
    change = 1 - exposed.calls / exposed.baseline if exposed.baseline else 0.0
    fewer = f", {percent(change)} fewer" if change > 0 else ""
    return f"Exposed kernel: {calls_text}{fewer}."


def command(settling: Settling, file: str) -> str:
    """The command that continues the campaign until what is open is answered; "" where that takes above an hour."""
    return f"tare run --more {minutes(settling.seconds)}m {shlex.quote(file)}" if settling.workloads else ""


def minutes(seconds: float) -> int:
    """Seconds as minutes that are said: whole ones up to ten, then fives, always rounded up."""
    whole = max(1, math.ceil(seconds / 60))
    return whole if whole <= 10 else 5 * math.ceil(whole / 5)


def _values(shown: StandingFigure) -> str:
    unit = shown.result.unit
    value, base = shown.figure.value(), shown.baseline.mean
    if not value:
        return "no figure"
    return value if base is None else f"{value} against {quantity(base, unit)}"


def _name(shown: StandingFigure) -> str:
    return DIMENSIONS[shown.standing.dimension]


def _where(shown: StandingFigure) -> str:
    """The workload, where the dimension has several."""
    n_figures = shown.standing.n_figures
    return f", the worst of {n_figures}: {shown.standing.workload}" if n_figures > 1 else ""


def _worse(shown: Sequence[StandingFigure]) -> list[str]:
    apart, rest = (shown, []) if len(shown) <= _APART else (shown[: _APART - 1], shown[_APART - 1 :])
    lines = [
        _capital(f"{_name(comparison)}: {clause(comparison)}{_where(comparison)}{_chance(comparison)}.")
        for comparison in apart
    ]
    if rest:
        lines.append(f"Also worse: {', '.join(f'{_name(comparison)} {short(comparison)}' for comparison in rest)}.")
    return lines


def _chance(shown: StandingFigure) -> str:
    return f" {UNSURE}" if shown.platform.survives_holm is False else ""


def _surely(shown: Sequence[StandingFigure]) -> list[str]:
    """Return what differs for sure, whether by more than the margin or not."""
    if not shown:
        return []
    parts = [f"{_name(comparison)} {short(comparison)} ({shown_ends(comparison)})" for comparison in shown]
    return [f"A difference, whether beyond the margin or not: {', '.join(parts)}."]


def shown_ends(shown: StandingFigure) -> str:
    """The interval of a figure in words."""
    return shown.figure.in_words()[1]


def _bounded(shown: Sequence[StandingFigure]) -> list[str]:
    """Return what has no verdict, and is known within bounds."""
    if not shown:
        return []
    parts = [f"{_name(comparison)} {bounded(comparison)}" for comparison in shown]
    return [f"No verdict, and in what was seen: {', '.join(parts)}."]


def _alike(shown: Sequence[StandingFigure]) -> list[str]:
    if not shown:
        return []
    baseline = shown[0].baseline.platform
    margins: dict[float, list[str]] = {}
    for comparison in shown:
        amount = comparison.figure.first()
        name = _name(comparison) if amount is None else f"{_name(comparison)} ({amount[0]})"
        margins.setdefault(comparison.result.margin_percent, []).append(name)
    parts = [f"{_listed(names)} within {percent(margin / 100)}" for margin, names in margins.items()]
    return [f"As {baseline}: {', '.join(parts)}."]


def _better(shown: Sequence[StandingFigure]) -> list[str]:
    if not shown:
        return []
    return [f"Better: {', '.join(f'{_name(comparison)} {short(comparison)}' for comparison in reversed(shown))}."]


def _once(shown: Sequence[StandingFigure]) -> list[str]:
    if not shown:
        return []
    parts = [f"{_name(comparison)} {short(comparison)} ({_values(comparison)})" for comparison in shown]
    return [f"Seen once, without an interval: {', '.join(parts)}."]


def _unsure(shown: Sequence[StandingFigure]) -> list[str]:
    """Return what nobody knows: for want of blocks or quiet, or because the baseline's own two arms differ."""
    differ = [comparison for comparison in shown if comparison.platform.verdict_reason is Reason.BASELINES_DIFFER]
    groups = {
        "Not known within a factor of two": [comparison for comparison in shown if comparison not in differ],
        "The baseline's own two arms differ in": differ,
    }
    return [
        f"{head}: {', '.join(f'{_name(comparison)}{_known(comparison)}' for comparison in group)}."
        for head, group in groups.items()
        if group
    ]


def _limited(shown: Sequence[StandingFigure]) -> list[str]:
    if not shown:
        return []
    parts = [f"{_name(comparison)} ({comparison.standing.workload})" for comparison in shown]
    return [f"Measured, but the client or the disk was the limit: {_listed(parts)}."]


def _missing(shown: Sequence[StandingFigure]) -> list[str]:
    if not shown:
        return []
    return [f"No figure: {_listed([f'{_name(comparison)} ({_why(comparison.platform)})' for comparison in shown])}."]


def _failed(failed: Mapping[str, int]) -> list[str]:
    if not failed:
        return []
    return [f"Every trial failed: {_few([f'{name} ({trials} of {trials})' for name, trials in failed.items()])}."]


def settling_text(settling: Settling | None) -> str:
    """Return how to settle open questions, with a colon at the end if the command follows; "" if nothing is open."""
    if settling is None:
        return ""
    far = ""
    if settling.beyond:
        far = f"{_few(settling.beyond)} would take {forecast(settling.beyond_seconds)} on a host as noisy as this one."
    if not settling.workloads:
        return far
    near = (
        f"About {minutes(settling.seconds)} min more would answer {_few(settling.workloads)}, by even odds"
        f" (a verdict, or a bound within {percent(math.expm1(ANSWER))}):"
    )
    return f"{far} {near}" if far else near


def _few(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return _listed([*names[:_NAMED], f"{more} more"] if more > 0 else names)


def _known(shown: StandingFigure) -> str:
    """Return what is known of an open figure: its interval, or how many trials failed."""
    platform = shown.platform
    if platform.n_failed:
        return f" ({platform.n_failed} of {platform.n_failed + platform.n_ok} trials failed)"
    size, ends = shown.figure.in_words()
    return f" ({size}, {ends})" if ends else ""


def _why(platform: PlatformReport) -> str:
    if platform.n_unsupported and not platform.n_ok:
        return "it cannot do this"
    if platform.n_failed and not platform.n_ok:
        return all_failed(platform.n_failed)
    return platform.verdict_text


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
