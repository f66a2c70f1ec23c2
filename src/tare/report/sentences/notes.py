"""Sentences beside a verdict: findings, cautions, contaminated trials, and dependence between blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tare.analysis.quality.client_limit import BUSY
from tare.analysis.quality.contamination import (
    FOREIGN_LIMIT,
    MEMORY_PRESSURE_LIMIT,
    SIBLING_LIMIT,
    STEAL_LIMIT,
    SWAP_LIMIT,
    Disturbance,
)
from tare.analysis.quality.findings import Finding, FindingKind
from tare.analysis.results import FloorReason, NoiseFloor, PlatformResult, Unmarked
from tare.estimates.dependence import Dependence
from tare.estimates.intervals import Interval
from tare.report.sentences.numbers import number_of, percent, quantity, signed
from tare.report.sentences.scale import difference, times_of
from tare.report.sentences.verdict_words import UNFIT, Subject, drift_text, kind_word, verdict_text, wide_floor

#: Why a trial is marked as contaminated.
DISTURBANCES: Mapping[str, str] = {
    Disturbance.STEAL: f"steal above {percent(STEAL_LIMIT)}",
    Disturbance.FOREIGN_CPU: f"other programs on the measured CPUs above {percent(FOREIGN_LIMIT)}",
    Disturbance.SIBLING: f"other programs on the measured core's other thread above {percent(SIBLING_LIMIT)}",
    Disturbance.THROTTLED: "its CPU quota was used up",
    Disturbance.SWAP: f"more than {SWAP_LIMIT} pages swapped a second",
    Disturbance.MEMORY_PRESSURE: f"memory pressure above {percent(MEMORY_PRESSURE_LIMIT)}",
}

#: Why there is no A/A figure.
NO_FLOOR: Mapping[FloorReason, str] = {
    FloorReason.UNFIT: f"samples are {UNFIT}",
    FloorReason.TOO_FEW_BLOCKS: "fewer than 2 blocks have both baseline arms",
}


@dataclass(frozen=True, slots=True)
class FindingContext:
    """The context of a finding: the metric, the platform's result in it, and the metric's noise floor."""

    subject: Subject
    platform: PlatformResult
    floor: NoiseFloor | None


def sentence(finding: Finding, context: FindingContext) -> str:
    """The finding as a sentence."""
    return _SENTENCES[finding.kind](finding, finding.numbers, context)


def dependence_note(seen: Dependence) -> str | None:
    """A caution on intervals; None where blocks look independent, or are negatively correlated."""
    if not seen.is_sure:
        return None
    return (
        f"neighbouring blocks are alike (lag-1 autocorrelation {signed(seen.correlation, 2)}, p {seen.p:.3f}): 95 %"
        f" intervals may be too narrow by a factor of {seen.too_narrow:.1f}"
    )


def unchanged_note(number: int) -> str:
    """Return how many figures with contaminated trials keep their verdict without them."""
    return f"Contaminated trials touch {number_of(number, 'figure')} whose verdict would be the same without them"


def wide_floors_note(metrics: Mapping[str, Sequence[str]]) -> str:
    """Return where the noise of the baseline is wider than the margin: metrics by workload."""
    where = "; ".join(f"{workload} ({', '.join(names)})" for workload, names in metrics.items())
    return f"The noise floor is wider than the margin: equality cannot be shown, more blocks narrow it: {where}"


def wide_floors_count(wide: int, metrics: int) -> str:
    """In how many metrics the noise of the baseline is wider than the margin."""
    where = "all metrics" if wide == metrics else f"{wide} of {metrics} metrics"
    return f"The noise floor is wider than the margin in {where}: equality cannot be shown there yet"


#: What a caution is about, in a word or some; for counts of them.
CAUTIONS: Mapping[FindingKind, str] = {
    FindingKind.STALLS: "stalls",
    FindingKind.UNSEEN: "rare slow runs not excluded",
    FindingKind.FAILURES: "failed trials",
    FindingKind.RESOLUTION: "coarse steps",
    FindingKind.NO_SPREAD: "no spread",
    FindingKind.CONTAMINATED: "contaminated trials, kept",
    FindingKind.BLOCKS_LEFT_OUT: "blocks left out",
    FindingKind.SINGLE_BASELINE: "one baseline arm",
    FindingKind.BOOTSTRAP: "the bootstrap judges otherwise",
    FindingKind.AFTER_EACH_OTHER: "platforms one after the other",
    FindingKind.DRIFT: "drift",
    FindingKind.CLIENT_LIMITED: "the client was the limit",
    FindingKind.CLIENT_NEAR: "the client near its limit",
    FindingKind.CLIENT_DEARER: "the client spent more on each unit",
    FindingKind.DISK_LIMITED: "the disk was the limit",
    FindingKind.ONE_BASELINE: "no A/A figure",
    FindingKind.NO_FLOOR: "no A/A figure",
    FindingKind.WIDE_FLOOR: "noise wider than the margin",
    FindingKind.FLOOR_EXCLUDES_ZERO: "A/A without zero",
    FindingKind.UNMARKED: "the figure without contaminated trials",
    FindingKind.CLOCK_OFF: "the clock inside was off",
    FindingKind.CLOCK_OPEN: "the clock inside is not known well enough",
    FindingKind.HEADLINE_DIFFERS: "headline and CPU cost differ",
    FindingKind.SHARED_PAGES: "shared program pages change the order",
}


#: Figures with such a verdict are counted among the cautions.
INVALID, REFUSED_FIGURES = "invalid figures", "refused figures"


def caution_counts(kinds: Mapping[FindingKind, int], *, changed: int, invalid: int) -> str:
    """Return how many cautions there are, by what they are about.

    ``changed``: figures that would have another verdict without the marked trials; ``invalid``: those with it.
    """
    counts = {INVALID: invalid} if invalid else {}
    for kind, number in kinds.items():
        if kind is not FindingKind.UNMARKED:
            counts[CAUTIONS[kind]] = counts.get(CAUTIONS[kind], 0) + number
    parts = [f"{text} {number}" for text, number in sorted(counts.items(), key=lambda pair: -pair[1])]
    if changed:
        parts.append(f"without contaminated trials {number_of(changed, 'verdict')} would be another")
    return f"{', '.join(parts)} (all of them: --cautions)"


_Numbers = Mapping[str, float]


def _stalls(_finding: Finding, numbers: _Numbers, _context: FindingContext) -> str:
    return (
        f"stalls: {percent(numbers['share'])} of its rounds run at {percent(numbers['speed'])} of their usual speed"
        f" and lose {percent(numbers['lost'])} of the work"
        f" (the baseline's: {percent(numbers['baseline_share'])} of the rounds, {percent(numbers['baseline_lost'])})"
    )


def _unseen(_finding: Finding, numbers: _Numbers, _context: FindingContext) -> str:
    draws, blocks = round(numbers["draws"]), round(numbers["blocks"])
    cost = f"at half speed that would cost {percent(numbers['cost'])}"
    if draws == blocks:
        return f"{draws} runs do not exclude a slow mode in up to {percent(numbers['share'])} of them; {cost}"
    return (
        f"{draws} rounds do not exclude a slow mode in up to {percent(numbers['share'])} of them; {cost}"
        f" (of whole starts, {blocks}: {percent(numbers['blocks_share'])})"
    )


def _failures(_finding: Finding, numbers: _Numbers, _context: FindingContext) -> str:
    failed = f"{round(numbers['failed'])} of {round(numbers['trials'])} trials failed"
    if not numbers["baseline_failed"]:
        return failed
    return f"{failed}, and {round(numbers['baseline_failed'])} of {round(numbers['baseline_trials'])} of the baseline's"


def _resolution(_finding: Finding, numbers: _Numbers, context: FindingContext) -> str:
    step, least = quantity(numbers["step"], context.subject.unit), percent(numbers["half_width"])
    return f"figures move in steps of {step}: the interval is at least ±{least}"


def _no_spread(_finding: Finding, numbers: _Numbers, _context: FindingContext) -> str:
    blocks, needed = round(numbers["blocks"]), round(numbers["needed"])
    return f"all {blocks} blocks show the same figures: {needed} are needed to conclude from that"


def _contaminated(_finding: Finding, numbers: _Numbers, _context: FindingContext) -> str:
    trials = {reason: number for reason, number in numbers.items() if reason in DISTURBANCES}
    if len(trials) == 1:
        why = DISTURBANCES[next(iter(trials))]
    else:
        why = ", ".join(f"{DISTURBANCES[reason]} ({number:.0f})" for reason, number in trials.items())
    return f"{numbers['marked']:.0f} of {numbers['ok']:.0f} trials contaminated: {why}; kept"


def _blocks_left_out(_finding: Finding, numbers: _Numbers, _context: FindingContext) -> str:
    left_out = f"{numbers['missing']:.0f} of {numbers['blocks']:.0f} blocks left out"
    return f"{left_out}: this platform or the baseline has no sample"


def _single_baseline(_finding: Finding, numbers: _Numbers, _context: FindingContext) -> str:
    return f"one baseline arm only in {numbers['single']:.0f} of {numbers['blocks']:.0f} blocks"


def _bootstrap(finding: Finding, numbers: _Numbers, context: FindingContext) -> str:
    assert finding.verdict is not None
    over = Interval(numbers["point"], numbers["low"], numbers["high"])
    between = _difference(over, context)
    return f"the bootstrap (BCa) says {kind_word(finding.verdict)}: {between}"


def _after_each_other(_finding: Finding, _numbers: _Numbers, _context: FindingContext) -> str:
    return "the platforms ran one after the other: what the machine did meanwhile is in the figures"


def _drift(_finding: Finding, numbers: _Numbers, _context: FindingContext) -> str:
    return drift_text(numbers["correlation"])


def _one_baseline(_finding: Finding, _numbers: _Numbers, _context: FindingContext) -> str:
    return "one baseline arm: no A/A figure, so nobody knows what no difference looks like"


def _no_floor(_finding: Finding, _numbers: _Numbers, context: FindingContext) -> str:
    assert context.floor is not None
    assert context.floor.reason is not None
    return f"no A/A figure: {NO_FLOOR[context.floor.reason]}"


def _wide_floor(_finding: Finding, numbers: _Numbers, context: FindingContext) -> str:
    return wide_floor(numbers["half_width"], context.subject)


def _floor_excludes_zero(_finding: Finding, _numbers: _Numbers, _context: FindingContext) -> str:
    return "the A/A interval excludes zero: take this with care"


def _unmarked(_finding: Finding, _numbers: _Numbers, context: FindingContext) -> str:
    whole, clean = context.platform, context.platform.unmarked
    assert clean is not None
    without = f"without {_left_out(clean)}"
    if clean.overhead is None:
        why = verdict_text(clean.verdict, context.subject, whole.platform, clean.effect)
        return f"{without} there is no figure: {why}"
    text = f"{without}: {_difference(clean.overhead, context)} in {number_of(clean.n_blocks, 'block')}"
    if whole.overhead is not None:
        text += f"; with all: {_difference(whole.overhead, context)} in {whole.n_blocks}"
    if clean.verdict.kind is not whole.verdict.kind:
        text += f"; the verdict would be {kind_word(clean.verdict.kind)}"
    return text


def _difference(over: Interval, context: FindingContext) -> str:
    direction = context.subject.direction
    return ", ".join(difference(times_of(over, direction), direction))


def _left_out(clean: Unmarked) -> str:
    baseline = f"the baseline's {number_of(clean.n_baseline, 'marked trial')}"
    if not clean.n_trials:
        return baseline
    marked = f"its {number_of(clean.n_trials, 'marked trial')}"
    return f"{marked} and {baseline}" if clean.n_baseline else marked


def _client_limited(finding: Finding, numbers: _Numbers, _context: FindingContext) -> str:
    """Return where the client had no more to give: its own limit is what it reaches without a platform between."""
    busy, base = numbers["busy"], numbers["baseline_busy"]
    if busy >= BUSY:
        return (
            f"the client was the limit: it was busy {busy:.0%} of its time{_at_most(finding)}, and the platform may be"
            " faster than this"
        )
    return (
        f"the client was the baseline's limit (busy {base:.0%} of its time, here {busy:.0%}{_at_most(finding)}): the"
        " platform may cost more than this"
    )


def _client_near(finding: Finding, numbers: _Numbers, _context: FindingContext) -> str:
    return f"the client was near its limit: it was busy {numbers['busy']:.0%} of its time{_at_most(finding)}"


def _client_dearer(_finding: Finding, numbers: _Numbers, _context: FindingContext) -> str:
    return (
        f"a unit of work cost the client {numbers['times']:.1f} times the CPU time that it cost with the baseline: the"
        " figure is the client's as well as the platform's"
    )


def _disk_limited(_finding: Finding, numbers: _Numbers, _context: FindingContext) -> str:
    return (
        f"the disk was the limit: it was busy {numbers['busy']:.0%} of the time, and {numbers['baseline_busy']:.0%}"
        " with the baseline"
    )


def _at_most(finding: Finding) -> str:
    """Return what the client could ask for, where its cost is known."""
    limit = finding.numbers.get("limit")
    return "" if limit is None else f" and can make some {quantity(limit, finding.unit)}"


def _clock_off(_finding: Finding, numbers: _Numbers, _context: FindingContext) -> str:
    rate = numbers["rate"]
    way, figures = ("fast", "slower") if rate > 0 else ("slow", "faster")
    return (
        f"the clock inside ran {percent(abs(rate))} too {way} (known to ±{percent(numbers['open'])}): by that much the"
        f" platform looks {figures} than it is"
    )


def _clock_open(_finding: Finding, numbers: _Numbers, context: FindingContext) -> str:
    return (
        f"the clock inside is only known to run right within ±{percent(numbers['open'])}: the round trips to it are too"
        f" long for half of the {percent(context.subject.margin)} margin"
    )


def _headline_differs(finding: Finding, _numbers: _Numbers, _context: FindingContext) -> str:
    assert finding.verdict is not None
    return f"differs from {finding.metric}, which is {kind_word(finding.verdict)}"


def _shared_pages(finding: Finding, _numbers: _Numbers, _context: FindingContext) -> str:
    return (
        f"{finding.metric} ranks it the other way round against {', '.join(finding.others)}: PSS also counts pages of"
        " programs and libraries, which instances share and the kernel can drop"
    )


_SENTENCES: Mapping[FindingKind, Callable[[Finding, _Numbers, FindingContext], str]] = {
    FindingKind.STALLS: _stalls,
    FindingKind.UNSEEN: _unseen,
    FindingKind.FAILURES: _failures,
    FindingKind.RESOLUTION: _resolution,
    FindingKind.NO_SPREAD: _no_spread,
    FindingKind.CONTAMINATED: _contaminated,
    FindingKind.BLOCKS_LEFT_OUT: _blocks_left_out,
    FindingKind.SINGLE_BASELINE: _single_baseline,
    FindingKind.BOOTSTRAP: _bootstrap,
    FindingKind.AFTER_EACH_OTHER: _after_each_other,
    FindingKind.DRIFT: _drift,
    FindingKind.ONE_BASELINE: _one_baseline,
    FindingKind.NO_FLOOR: _no_floor,
    FindingKind.WIDE_FLOOR: _wide_floor,
    FindingKind.FLOOR_EXCLUDES_ZERO: _floor_excludes_zero,
    FindingKind.UNMARKED: _unmarked,
    FindingKind.CLIENT_LIMITED: _client_limited,
    FindingKind.CLIENT_NEAR: _client_near,
    FindingKind.CLOCK_OFF: _clock_off,
    FindingKind.CLOCK_OPEN: _clock_open,
    FindingKind.CLIENT_DEARER: _client_dearer,
    FindingKind.DISK_LIMITED: _disk_limited,
    FindingKind.HEADLINE_DIFFERS: _headline_differs,
    FindingKind.SHARED_PAGES: _shared_pages,
}
