"""Changes of counted instructions between two files, or two platforms of a file: by ranges over machines, not by tests.

A machine with the same seed executes the same instructions. Only the kernel's random numbers vary, and each repeat has
others. So a change is surely worse if all repeats of the newer side are worse than all of the older side by more than
the threshold. It is surely not worse if no newer repeat is worse than any older repeat by as much.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tare.analysis import instructions
from tare.analysis.comparisons.sides import Way
from tare.analysis.comparisons.thresholds import Thresholds
from tare.analysis.instructions import START, InstructionAmount, figures
from tare.analysis.refusals import NoAnswer, RefusalKind
from tare.estimates.intervals import Interval
from tare.features.diff.analysis import (
    Absent,
    Diff,
    FigureChange,
    FigureOutcome,
    Lack,
    Piece,
    computed_differently,
    differing,
    platform_facts,
    worst_first,
)
from tare.footprint_model import SIDES, Footprint, Scope
from tare.model import Direction, Level
from tare.store import Store

#: Threshold of a regression if no thresholds are given.
MARGIN = 0.005
#: Number of pieces of code that explain a change.
PIECES = 12
UNIT_OF_MEASURE = "instructions"


def repeats(footprints: Sequence[Footprint]) -> int:
    """Return the number of different repeats among the footprints of the level ``instructions``."""
    return len({footprint.repeat for footprint in footprints if footprint.level is Level.INSTRUCTIONS})


def changes(
    old: Sequence[Footprint], new: Sequence[Footprint], thresholds: Thresholds, names: tuple[str, str] | None = None
) -> Iterator[FigureChange]:
    """Yield the changes of all figures that both sides have, in order. ``names``: from this platform to that one."""
    before, after = figures(old), figures(new)
    for (platform, workload, figure), amount in after.items():
        if names is not None and platform != names[1]:
            continue
        was = before.get((names[0] if names else platform, workload, figure))
        limit = thresholds.of(workload or START, figure, platform, MARGIN)
        if was is not None and was.least > 0 and limit is not None:
            change = _change(platform, workload, figure, limit, was, amount, (repeats(old), repeats(new)))
            sides = [_of(old, names[0] if names else platform, workload), _of(new, platform, workload)]
            yield change if any(map(instructions.in_pieces, sides)) else replace(change, pieces=_pieces(*sides))


def _of(footprints: Sequence[Footprint], platform: str, workload: str) -> list[Footprint]:
    """Return the footprints of a start, or of a workload, on the whole machine."""
    return [
        footprint
        for footprint in footprints
        if footprint.level is Level.INSTRUCTIONS
        and footprint.scope is Scope.HOST
        and (footprint.platform, footprint.workload or "") == (platform, workload)
    ]


def _pieces(old: Sequence[Footprint], new: Sequence[Footprint]) -> tuple[Piece, ...]:
    """Return both sides' code by median, most changed first; () if one side has no code recorded.

    For a run with units, the figures are for one unit.
    """
    before, after = (
        {(code.side, code.place): code.amount.median / instructions.units(side) for code in instructions.code(side)}
        for side in (old, new)
    )
    if not before or not after:
        return ()
    keys = sorted(before.keys() | after.keys(), key=lambda key: -abs(after.get(key, 0) - before.get(key, 0)))
    whole = [Piece(side, "", _sum(before, side), _sum(after, side)) for side in SIDES]
    return (*whole, *(Piece(*key, before.get(key, 0), after.get(key, 0)) for key in keys[:PIECES]))


def _sum(code: Mapping[tuple[str, str], float], side: str) -> float:
    return sum(count for (code_side, _), count in code.items() if code_side == side)


def diff_counted(old: Store, new: Store, thresholds: Thresholds, names: tuple[str, str] | None = None) -> Diff | None:
    """Compare two files, or two platforms of one, that hold only counted instructions; None for other files.

    Raises `NoAnswer` if they have no figure in common.
    """
    if any(store.schedule() for store in (old, new)):
        return None
    was, now = list(old.footprints()), list(new.footprints())
    if not repeats(was) or not repeats(now):
        return None
    others = computed_differently(old.record, new.record)
    was, now = ([footprint for footprint in side if footprint.workload not in others] for side in (was, now))
    compared = tuple(changes(was, now, thresholds, names))
    if not compared:
        raise NoAnswer(RefusalKind.NO_INSTRUCTIONS_IN_COMMON)
    sides = names or (old.name, new.name)
    facts = platform_facts(new.record, *names) if names else differing(old.record, new.record)
    absent = () if names else (*(Absent(Lack.REVISION, name) for name in others), *_absent(was, now))
    return Diff(Way.INSTRUCTIONS, *sides, new.record.baseline, worst_first(compared), facts, absent)


def _absent(was: Sequence[Footprint], now: Sequence[Footprint]) -> Iterator[Absent]:
    before, after = figures(was), figures(now)
    for platform, workload, figure in sorted(before.keys() ^ after.keys()):
        lack = Lack.OLD if (platform, workload, figure) in after else Lack.NEW
        yield Absent(lack, workload or START, figure, platform)


def _change(
    platform: str,
    workload: str,
    figure: str,
    limit: float,
    was: InstructionAmount,
    now: InstructionAmount,
    counts: tuple[int, int],
) -> FigureChange:
    least, most = now.least / was.most - 1, now.most / was.least - 1
    outcome = FigureOutcome.REGRESSION if least > limit else FigureOutcome.FINE if most <= limit else FigureOutcome.OPEN
    return FigureChange(
        platform,
        workload or START,
        figure,
        UNIT_OF_MEASURE,
        Direction.LOWER,
        limit,
        was.median,
        now.median,
        *counts,
        outcome,
        Interval(now.median / was.median - 1, least, most),
    )
