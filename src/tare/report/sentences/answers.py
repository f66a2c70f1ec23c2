"""The answer on a platform: some sentences, what matters most first, and the clauses that they are made of."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tare.analysis.answers import Answer, Dimension, Settling, Standing, State
from tare.analysis.verdicts import Reason
from tare.estimates.intervals import Interval
from tare.model import Direction
from tare.report.model import PlatformReport, ResultReport
from tare.report.sentences.dimensions import DIMENSIONS
from tare.report.sentences.numbers import TO, all_failed, forecast, magnitude_range, percent, quantity, times_range
from tare.report.sentences.signs import added
from tare.report.sentences.verdicts import TIMES_FROM
from tare.report.sentences.wording import Wording, wording

#: Said of the dimension CPU cost, which names what is more.
_COST = Wording("{} more", "{} less", "{} times as much", "{} times less")
#: How many differences get a sentence each.
_APART = 3
#: How many open figures are named.
_NAMED = 4


@dataclass(frozen=True, slots=True)
class Shown:
    """The figure that stands for a dimension, with the platform's result in it and the baseline's."""

    standing: Standing
    result: ResultReport
    platform: PlatformReport
    baseline: PlatformReport


@dataclass(frozen=True, slots=True)
class Exposed:
    """System calls that a platform's tenant may make, and the baseline's; ``least``: some filters were not read."""

    calls: int
    baseline: int
    least: bool = False


def clause(shown: Shown) -> str:
    """The difference with its interval and both values: "48 % slower (46 to 50; 22.1 MiB/s against 42.2 MiB/s)"."""
    size, ends = _size(shown)
    return f"{size} ({'; '.join(part for part in (ends, _values(shown)) if part)})" if size else _values(shown)


def short(shown: Shown) -> str:
    """The difference alone, in a phrase: "48 % slower", "+212 ms"; the value where there is no difference."""
    return _size(shown)[0] or _values(shown)


def figure(shown: Shown) -> str:
    """The difference for a table: "+48 %", a factor, "+212 ms"; "" where there is none."""
    amount = _amount(shown)
    if amount is not None:
        return amount[0]
    ratio, percents = shown.platform.ratio, shown.platform.op_percent
    if ratio is None or percents is None:
        return ""
    times = ratio if shown.result.direction is Direction.LOWER else 1 / ratio
    for factor, better in ((times, ""), (1 / times, " better")):
        if factor > TIMES_FROM:
            return f"{times_range(Interval(factor, factor, factor))[0]} ×{better}"
    digits = 0 if abs(percents) >= 10 else 1
    text = f"{abs(percents):.{digits}f}"
    sign = "" if not float(text) else "+" if percents > 0 else "\N{MINUS SIGN}"
    return f"{sign}{text} %"


def sentences(answer: Answer, shown: Sequence[Shown], exposed: Exposed | None, failed: Mapping[str, int]) -> list[str]:
    """Some sentences: what is worse, what is alike, what is better, the kernel, and last what is open.

    ``shown``: of every standing, in the answer's order. ``failed``: workloads of which each trial failed, and how many.
    """
    states = {comparison.standing.dimension: comparison.standing.state for comparison in shown}
    twice = states.get(Dimension.CPU_COST) is states.get(Dimension.COMPUTE)
    spoken = [comparison for comparison in shown if not (twice and comparison.standing.dimension is Dimension.CPU_COST)]
    mentioned = {comparison.standing.workload for comparison in spoken if comparison.standing.state is State.NONE}
    by_state = {state: [comparison for comparison in spoken if comparison.standing.state is state] for state in State}
    return [
        *_worse(by_state[State.WORSE]),
        *_alike(by_state[State.ALIKE]),
        *_better(by_state[State.BETTER]),
        *([exposed_clause(exposed)] if exposed is not None else []),
        *_once(by_state[State.ONCE]),
        *_unsure(by_state[State.OPEN]),
        *_limited(by_state[State.LIMITED]),
        *_missing(by_state[State.NONE]),
        *_failed({name: trials for name, trials in failed.items() if name not in mentioned}),
        *_settling(answer.settling),
    ]


def exposed_clause(exposed: Exposed) -> str:
    """How many system calls the tenant may make, as a sentence."""
    least = "at least " if exposed.least else ""
    calls_text = f"{least}{exposed.calls} system calls of {exposed.baseline}"
    change = 1 - exposed.calls / exposed.baseline if exposed.baseline else 0.0
    fewer = f", {percent(change)} fewer" if change > 0 else ""
    return f"Exposed kernel: {calls_text}{fewer}."


def command(settling: Settling, platform: str) -> str:
    """The command that settles what is open of a platform; "" where none of less than an hour does."""
    if not settling.workloads:
        return ""
    workloads = " ".join(f"-w {shlex.quote(name)}" for name in settling.workloads)
    return f"tare run -p {shlex.quote(platform)} {workloads} --time {minutes(settling.seconds)}m"


def minutes(seconds: float) -> int:
    """Seconds as whole minutes, rounded up, at least one."""
    return max(1, math.ceil(seconds / 60))


def _size(shown: Shown) -> tuple[str, str]:
    """A difference and its interval in words; two empty texts where there is none."""
    amount = _amount(shown)
    if amount is not None:
        return amount
    result, platform = shown.result, shown.platform
    if platform.ratio is None or platform.op_percent is None:
        return "", ""
    words = _words(shown)
    lower = result.direction is Direction.LOWER
    ends = platform.ratio_low, platform.ratio_high
    low, high = (platform.ratio, platform.ratio) if ends[0] is None or ends[1] is None else (ends[0], ends[1])
    times = Interval(platform.ratio, low, high) if lower else Interval(1 / platform.ratio, 1 / high, 1 / low)
    worse = times.point > 1
    if not worse:
        times = Interval(1 / times.point, 1 / times.high, 1 / times.low)
    if times.point > TIMES_FROM:
        size, span_text = times_range(times)
        return (words.times_worse if worse else words.times_better).format(size), _ends(span_text, ends)
    over = [platform.op_percent / 100, (platform.op_low_percent or 0) / 100, (platform.op_high_percent or 0) / 100]
    size, span_text = magnitude_range(Interval(over[0], over[0], over[0]) if ends[0] is None else Interval(*over))
    return (words.worse if worse else words.better).format(size), _ends(span_text, ends)


def _words(shown: Shown) -> Wording:
    if shown.standing.dimension is Dimension.CPU_COST:
        return _COST
    result = shown.result
    return wording(result.metric, result.unit, result.direction, result.family)


def _ends(text: str, ends: tuple[float | None, float | None]) -> str:
    return "" if ends[0] is None else text


def _amount(shown: Shown) -> tuple[str, str] | None:
    """What is added and its interval, where the metric says that first."""
    return added(shown.platform, TO) if _words(shown).amount_first else None


def _values(shown: Shown) -> str:
    unit = shown.result.unit
    value, base = shown.platform.mean, shown.baseline.mean
    if value is None:
        return "no figure"
    if base is None:
        return quantity(value, unit)
    return f"{quantity(value, unit)} against {quantity(base, unit)}"


def _name(shown: Shown) -> str:
    return DIMENSIONS[shown.standing.dimension]


def _where(shown: Shown) -> str:
    """The workload, where the dimension has several."""
    n_figures = shown.standing.n_figures
    return f", the worst of {n_figures}: {shown.standing.workload}" if n_figures > 1 else ""


def _worse(shown: Sequence[Shown]) -> list[str]:
    apart, rest = (shown, []) if len(shown) <= _APART else (shown[: _APART - 1], shown[_APART - 1 :])
    lines = [
        _capital(f"{_name(comparison)}: {clause(comparison)}{_where(comparison)}{_chance(comparison)}.")
        for comparison in apart
    ]
    if rest:
        lines.append(f"Also worse: {', '.join(f'{_name(comparison)} {short(comparison)}' for comparison in rest)}.")
    return lines


def _chance(shown: Shown) -> str:
    return "; it may be chance" if shown.platform.survives_holm is False else ""


def _alike(shown: Sequence[Shown]) -> list[str]:
    if not shown:
        return []
    baseline = shown[0].baseline.platform
    margins: dict[float, list[str]] = {}
    for comparison in shown:
        amount = _amount(comparison)
        name = _name(comparison) if amount is None else f"{_name(comparison)} ({amount[0]})"
        margins.setdefault(comparison.result.margin_percent, []).append(name)
    parts = [f"{_listed(names)} within {percent(margin / 100)}" for margin, names in margins.items()]
    return [f"As {baseline}: {', '.join(parts)}."]


def _better(shown: Sequence[Shown]) -> list[str]:
    if not shown:
        return []
    return [f"Better: {', '.join(f'{_name(comparison)} {short(comparison)}' for comparison in reversed(shown))}."]


def _once(shown: Sequence[Shown]) -> list[str]:
    if not shown:
        return []
    parts = [f"{_name(comparison)} {short(comparison)} ({_values(comparison)})" for comparison in shown]
    return [f"Seen once, without an interval: {', '.join(parts)}."]


def _unsure(shown: Sequence[Shown]) -> list[str]:
    """What has no verdict: for want of blocks or quiet, or because the baseline's own two arms differ."""
    differ = [comparison for comparison in shown if comparison.platform.verdict_reason is Reason.BASELINES_DIFFER]
    groups = {
        "Seen, but not sure": [comparison for comparison in shown if comparison not in differ],
        "Seen, but the baseline's own two arms differ there": differ,
    }
    return [
        f"{head}: {', '.join(f'{_name(comparison)} {short(comparison)}{_known(comparison)}' for comparison in group)}."
        for head, group in groups.items()
        if group
    ]


def _limited(shown: Sequence[Shown]) -> list[str]:
    if not shown:
        return []
    parts = [f"{_name(comparison)} ({comparison.standing.workload})" for comparison in shown]
    return [f"Measured, but the client or the disk was the limit: {_listed(parts)}."]


def _missing(shown: Sequence[Shown]) -> list[str]:
    if not shown:
        return []
    return [f"No figure: {_listed([f'{_name(comparison)} ({_why(comparison.platform)})' for comparison in shown])}."]


def _failed(failed: Mapping[str, int]) -> list[str]:
    if not failed:
        return []
    return [f"Every trial failed: {_few([f'{name} ({trials} of {trials})' for name, trials in failed.items()])}."]


def _settling(settling: Settling | None) -> list[str]:
    """What would tell what is open; it ends with a colon where the command follows."""
    if settling is None:
        return []
    far = ""
    if settling.beyond:
        far = (
            f"{_few(settling.beyond)} would take {forecast(settling.beyond_seconds)} on a host as noisy as this one:"
            " --tune, or --margin for less"
        )
    if not settling.workloads:
        return [f"{far}."]
    near = f"{minutes(settling.seconds)} min would tell {_few(settling.workloads)}:"
    return [f"{far}. {near}" if far else near]


def _few(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return _listed([*names[:_NAMED], f"{more} more"] if more > 0 else names)


def _known(shown: Shown) -> str:
    """How well an open figure is known."""
    platform = shown.platform
    if platform.n_failed:
        return f" ({platform.n_failed} of {platform.n_failed + platform.n_ok} trials failed)"
    amount = _amount(shown)
    if amount is not None:
        return f" ({amount[1]})" if amount[1] else ""
    low, high = platform.op_low_percent, platform.op_high_percent
    if low is None or high is None:
        return ""
    half = (high - low) / 200
    return f" (±{percent(half)})" if half <= 1 else " (±100 % or more)"


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
