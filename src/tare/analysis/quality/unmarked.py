"""Effect of leaving out the contaminated trials; the results themselves always include all trials."""

from __future__ import annotations

from dataclasses import replace

from tare.analysis.quality.findings import Finding, FindingKind
from tare.analysis.results import MetricResult, PlatformResult, TrialCounts, Unmarked
from tare.analysis.verdicts import Reason, Verdict, VerdictKind

_NOTHING_LEFT = Verdict(VerdictKind.NO_DATA, Reason.ALL_MARKED)
_ALONE = {VerdictKind.BASELINE, VerdictKind.NO_DATA}


def with_unmarked(whole: MetricResult, clean: MetricResult) -> MetricResult:
    """Return the result of all trials; platforms with marked trials also get the result without them (`Unmarked`)."""
    baseline, *compared = whole.platforms
    platforms = [
        _with_unmarked(with_all, without_marked, baseline.counts)
        for with_all, without_marked in zip(compared, clean.platforms[1:], strict=True)
    ]
    return replace(whole, platforms=(baseline, *platforms))


def _with_unmarked(whole: PlatformResult, clean: PlatformResult, baseline: TrialCounts) -> PlatformResult:
    marked = whole.counts.contaminated
    if not (marked or baseline.contaminated) or whole.verdict.kind in _ALONE:
        return whole
    verdict = clean.verdict if clean.n_blocks else _NOTHING_LEFT
    unmarked = Unmarked(marked, baseline.contaminated, clean.n_blocks, clean.overhead, verdict, clean.effect)
    changed = verdict.kind is not whole.verdict.kind
    # A platform without marked trials gets the finding only if the baseline's marked trials change the verdict.
    notes = (*whole.notes, Finding(FindingKind.UNMARKED)) if marked or changed else whole.notes
    return replace(whole, notes=notes, unmarked=unmarked)
