"""The end of a workload's blocks, as pure data: decided by the width of its intervals, never by their position.

Stopping when a difference shows finds one in a quarter of the cases where there is none (docs/method.md, When to
stop). Stopping by the width of a log ratio's interval keeps its coverage; `tare.estimates.widths` decides which width
is narrow enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

#: Blocks before the first look, and between two looks: two blocks say nothing of how wide an interval will be.
LOOK_FROM, LOOK_EVERY = 3, 3


class Widths(Protocol):
    """The number of blocks that a workload lacks: see `tare.estimates.widths.WorkloadWidths`."""

    def missing_for_answers(self) -> int:
        """Blocks until every figure of it answers a question; 0 where all do."""

    def missing(self, target: float, margin: float) -> int:
        """Blocks until every figure of it is as narrow as was asked for; 0 where all are."""


def is_look(block: int) -> bool:
    """Return True if the intervals are looked at before block number ``block`` (from 0)."""
    return block >= LOOK_FROM and (block - LOOK_FROM) % LOOK_EVERY == 0


def next_workloads(
    known: Mapping[str, Widths],
    targets: Mapping[str, float],
    margins: Mapping[str, float],
    seconds: Mapping[str, float],
    left_s: float | None,
) -> tuple[str, ...]:
    """The workloads that the next blocks run; none when all intervals are as narrow as was asked for.

    First those with figures that answer no question yet (± 15 %, or clear of the baseline), the nearest to an answer
    before all others; then those whose intervals are wider than their target.
    """
    lacking = {name: known[name].missing_for_answers() for name in targets}
    if not any(lacking.values()):
        lacking = {name: known[name].missing(target, margins[name]) for name, target in targets.items()}
    return still_wanted(lacking, seconds, left_s)


def still_wanted(missing: Mapping[str, int], seconds: Mapping[str, float], left_s: float | None) -> tuple[str, ...]:
    """The workloads that the next blocks run: those whose intervals can be narrow enough in the time that is left.

    Where the time is too short for all, those that take least time come first, so that most get there. Where it is too
    short for any, all that lack blocks go on. ``missing``: blocks that are still needed, by workload; ``seconds``: of a
    block, by workload; ``left_s``: seconds that are left, None without a limit.
    """
    takes = {name: blocks * seconds.get(name, 0.0) for name, blocks in missing.items() if blocks}
    ranked = sorted(takes, key=lambda name: takes[name])
    if left_s is None:
        return tuple(ranked)
    chosen: list[str] = []
    for name in ranked:
        if takes[name] <= left_s:
            chosen.append(name)
            left_s -= takes[name]
    return tuple(chosen or ranked)


def targets(margins: Mapping[str, float], asked: float | None) -> dict[str, float]:
    """The half-width to reach, by workload: ``asked``, or half of the margin where that is None; empty for 0.

    With half of the margin, equal platforms are found equivalent: their interval fits into the margin.
    """
    if asked == 0:
        return {}
    return {name: margin / 2 if asked is None else asked for name, margin in margins.items()}
