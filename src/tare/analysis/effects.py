"""Figure to show for a platform: from the same estimate as its verdict, on one scale, with its interval.

Every printed figure of a platform comes from it: the ratio, the value in the metric's unit, the added amount, and the
bound in place of a verdict. So a verdict, its interval and its values agree wherever they are shown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tare.analysis.amounts import UnitScale
from tare.analysis.bounds import Bound, bound
from tare.analysis.evidence import Evidence
from tare.analysis.rule import WIDE, intervals_of, sure_each
from tare.analysis.verdicts import Question, Reason, Verdict, VerdictKind
from tare.estimates.intervals import Amount, Interval
from tare.estimates.overhead import ratio, times_worse
from tare.model import Direction

#: For these reasons, the figure is that of whole blocks; for all others, of the typical round.
_OF_WHOLE_BLOCKS = frozenset({Reason.WHOLE_BLOCKS, Reason.BLOCKS_WIDER})


@dataclass(frozen=True, slots=True)
class Effect:
    """Factor by which a platform is worse; ``level``: of the interval, None if there is none.

    ``value``: in the metric's unit, the baseline's mean times the ratio.
    """

    times: Interval  # Its ends are the point if there is no interval.
    level: float | None
    whole_blocks: bool = False  # Of whole blocks, and not of the typical round.
    value: float | None = None
    amount: Amount | None = None
    bound: Bound | None = None  # None: there is a verdict, or nothing is known.


def effect(
    question: Question, seen: Evidence, verdict: Verdict, baseline: float | None, scale: UnitScale
) -> Effect | None:
    """Return the effect for a verdict, or None without a ratio. ``baseline``: its mean, in the unit."""
    if seen.looks is None:
        if seen.lone is None:
            return None
        return _effect(question, seen, Interval(seen.lone, seen.lone, seen.lone), None, baseline, scale)
    whole = seen.looks.totals is not None and _is_of_whole_blocks(seen, verdict)
    look = seen.looks.totals if whole and seen.looks.totals is not None else seen.looks.typical
    level = WIDE
    if verdict.reason is Reason.CHANCE:  # The 95 % interval excludes zero, but does not decide.
        level = sure_each(seen.looks)
    logs = look.interval(WIDE) if level == WIDE else look.judged_at(level)
    known = bound(question, seen.looks, seen.hidden) if verdict.kind is VerdictKind.INCONCLUSIVE else None
    return _effect(
        question, seen, logs, level if logs.half_width > 0 else None, baseline, scale, known, whole_blocks=whole
    )


def _is_of_whole_blocks(seen: Evidence, verdict: Verdict) -> bool:
    """Return True if the verdict is of whole blocks, or only they show a difference of open size."""
    if verdict.reason is not Reason.SIZE_OPEN or seen.looks is None:
        return verdict.reason in _OF_WHOLE_BLOCKS
    typical, totals = intervals_of(seen.looks)
    return totals is not None and typical.sure.low <= 0 <= typical.sure.high


def _effect(
    question: Question,
    seen: Evidence,
    logs: Interval,
    level: float | None,
    baseline: float | None,
    scale: UnitScale,
    known: Bound | None = None,
    *,
    whole_blocks: bool = False,
) -> Effect:
    times = times_worse(logs, question.direction)
    if baseline is None or not math.isfinite(per := scale.per(baseline)):
        return Effect(times, level, whole_blocks, bound=known)

    def added(times_worse: float) -> float:
        """Return the amount added to the baseline's mean; for a rate of calls, to the time of a call."""
        rises = scale.inverse or question.direction is Direction.LOWER
        return per * ((times_worse if rises else 1 / times_worse) - 1)

    ends = sorted((added(times.low), added(times.high)))
    interval = None if level is None else Interval(added(times.point), *ends)
    amount = Amount(scale.unit, added(times.point), interval, seen.n_blocks)
    if known is not None:
        known = replace(known, added=(added(known.low), added(known.high)))
    return Effect(times, level, whole_blocks, baseline * ratio(logs).point, amount, known)
