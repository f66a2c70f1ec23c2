"""What leaving out the contaminated trials would change, beside what all trials say. Nothing is left out by it."""

from __future__ import annotations

from dataclasses import replace

from tare.analysis.results import Counts, MetricResult, PlatformResult, Unmarked
from tare.analysis.verdicts import Kind, Verdict
from tare.analysis.words import signed_range

#: How the note begins that tells it: a report may leave out those that change no verdict.
WITHOUT = "without "

_NOTHING_LEFT = Verdict(Kind.NO_DATA, "no data: no block is left that has it and the baseline")
_ALONE = {Kind.BASELINE, Kind.NO_DATA}


def beside(whole: MetricResult, clean: MetricResult) -> MetricResult:
    """The result of all trials, with that of those that are not marked noted at every platform that it concerns."""
    baseline, *others = whole.platforms
    platforms = [_beside(one, left, baseline.counts) for one, left in zip(others, clean.platforms[1:], strict=True)]
    return replace(whole, platforms=(baseline, *platforms))


def _beside(whole: PlatformResult, clean: PlatformResult, baseline: Counts) -> PlatformResult:
    marked = whole.counts.contaminated
    if not (marked or baseline.contaminated) or whole.verdict.kind in _ALONE:
        return whole
    verdict = clean.verdict if clean.n_blocks else _NOTHING_LEFT
    found = Unmarked(marked, baseline.contaminated, clean.n_blocks, clean.overhead, verdict)
    changed = verdict.kind is not whole.verdict.kind
    # Where its own trials are all well, a reader need only know when the baseline's would change the verdict.
    notes = (*whole.notes, _told(whole, found)) if marked or changed else whole.notes
    return replace(whole, notes=notes, unmarked=found)


def _told(whole: PlatformResult, found: Unmarked) -> str:
    left_out = f"{WITHOUT}{_left_out(found)}"
    if found.overhead is None:
        return f"{left_out} there is no figure: {found.verdict.text}"
    told = f"{left_out}: {signed_range(found.overhead)} in {_counted(found.n_blocks, 'block')}"
    if whole.overhead is not None:
        told += f"; with all: {signed_range(whole.overhead)} in {whole.n_blocks}"
    if found.verdict.kind is not whole.verdict.kind:
        told += f"; the verdict would be {found.verdict.kind.word}"
    return told


def _left_out(found: Unmarked) -> str:
    baseline = f"the baseline's {_counted(found.n_baseline, 'marked trial')}"
    if not found.n_trials:
        return baseline
    own = f"its {_counted(found.n_trials, 'marked trial')}"
    return f"{own} and {baseline}" if found.n_baseline else own


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
