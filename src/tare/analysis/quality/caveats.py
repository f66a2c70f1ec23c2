"""The findings that belong beside a platform's verdict, with their numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from tare.analysis.evidence import Evidence
from tare.analysis.hidden import BLOCKS_WITHOUT_SPREAD, Trials, highest_share
from tare.analysis.quality.findings import Finding, FindingKind
from tare.analysis.quality.slow_rounds import stalls
from tare.analysis.verdicts import Question
from tare.estimates.grid import Grid


def caveats(
    grid: Grid, arm: int, baseline: Sequence[int], question: Question, seen: Evidence, trials: Trials
) -> list[Finding]:
    """Return the findings of a platform that has an interval; the last is `unseen`."""
    stalling = stalls(grid, arm, baseline, question, seen)
    return [*([stalling] if stalling else []), *_failures(trials), *_steps(seen), _unseen(seen)]


def _failures(trials: Trials) -> Iterator[Finding]:
    if trials.failed or trials.baseline_failed:
        yield Finding(FindingKind.FAILURES, asdict(trials))


def _steps(evidence: Evidence) -> Iterator[Finding]:
    """Yield findings that the metric's steps alone make the interval's width, or that nothing varies."""
    if evidence.looks is not None and evidence.rounding is not None:
        least = evidence.rounding.half_width(0.95, evidence.n_blocks)
        if evidence.looks.typical.interval(0.95).half_width <= least * (1 + 1e-9):
            yield Finding(FindingKind.RESOLUTION, {"step": evidence.rounding.step, "half_width": least})
    if evidence.same and evidence.n_blocks < BLOCKS_WITHOUT_SPREAD:
        yield Finding(FindingKind.NO_SPREAD, {"blocks": evidence.n_blocks, "needed": BLOCKS_WITHOUT_SPREAD})


def _unseen(evidence: Evidence) -> Finding:
    draws = {
        "draws": evidence.hidden.draws,
        "share": evidence.hidden.share,
        "cost": -math.expm1(-evidence.hidden.possible),
    }
    starts = {"blocks": evidence.n_blocks, "blocks_share": highest_share(0, evidence.n_blocks)}
    return Finding(FindingKind.UNSEEN, {**draws, **starts})
