"""The rule for verdicts: an interval judged against a margin that was set before the data.

The report, the live table, `tare calibrate` and `tare diff` all use this module (docs/method.md, Verdicts).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tare.analysis.evidence import Evidence
from tare.analysis.hidden import Hidden
from tare.analysis.quality.drift import drift
from tare.analysis.verdicts import (
    EQUAL,
    NOTHING_HIDDEN,
    BaselineSide,
    Basis,
    Closed,
    Question,
    Reason,
    Verdict,
    VerdictKind,
)
from tare.estimates.intervals import Interval
from tare.estimates.looks import Look, Looks
from tare.estimates.overhead import overhead
from tare.model import Direction

WIDE, NARROW = 0.95, 0.90
#: Level against false alarms: one in a hundred, shared by two looks at the same blocks (Bonferroni).
SURE = 0.99
#: The level for a table that is redrawn after each block, as a user who stops at its first verdict has looked many
#: times.
SURE_LIVE = 0.999


@dataclass(frozen=True, slots=True)
class LogIntervals:
    """Intervals of a log ratio to the baseline: for the report, for equivalence, and against false alarms."""

    wide: Interval  # 95 %.
    narrow: Interval  # 90 %.
    sure: Interval  # 99 %, or 99.5 % each for two looks.

    @classmethod
    def of(cls, look: Look, sure: float) -> LogIntervals:
        """Return the intervals of a look; ``sure``: the level of the last."""
        return cls(look.interval(WIDE), look.judged_at(NARROW), look.judged_at(sure))


def intervals_of(looks: Looks, sure: float = SURE) -> tuple[LogIntervals, LogIntervals | None]:
    """Return the intervals of the typical round and of totals; if there are both, they share the error of ``sure``."""
    each = sure_each(looks, sure)
    typical = LogIntervals.of(looks.typical, each)
    return typical, None if looks.totals is None else LogIntervals.of(looks.totals, each)


def sure_each(looks: Looks, sure: float = SURE) -> float:
    """Return the level of each look's interval against false alarms."""
    return 1 - (1 - sure) / len(looks.all())


def settle(
    question: Question,
    seen: Evidence,
    twin: Evidence | None = None,
    sure: float = SURE,
) -> Verdict:
    """Return the verdict on a platform from its evidence, by the one rule.

    ``twin``: the baseline's second arm against its first, None for one arm; ``sure``: the level against false alarms,
    for both looks together.
    """
    if seen.looks is None:
        return too_few(seen.n_blocks, seen.lone)
    verdict = judge(question, *intervals_of(seen.looks, sure), seen.hidden)
    closed = closed_by(question, twin) if twin is not None else None
    if closed is None and (drifts := drift(seen)) is not None:
        closed = drifts.closes(question)
    if closed is not None:
        return closed.verdict(verdict.basis)
    return within_noise(verdict, question.margin, noise_floor(question, twin))


def noise_floor(question: Question, twin: Evidence | None) -> Interval | None:
    """Return the A/A figure: the overhead of the second baseline arm against the first, 95 %; None without it."""
    if twin is None or twin.looks is None:
        return None
    return overhead(twin.looks.typical.interval(WIDE), question.direction)


def closed_by(question: Question, twin: Evidence) -> Closed | None:
    """Return the reason for no verdicts: the two baseline arms differ, or their ratio drifts. None: neither."""
    closed = None if twin.looks is None else aa_gate(question, intervals_of(twin.looks)[0])
    if closed is None and (drifts := drift(twin)) is not None and (why := drifts.closes(question)) is not None:
        return replace(why, reason=Reason.BASELINES_DRIFT)
    return closed


def decide(
    question: Question, typical: LogIntervals, totals: LogIntervals | None = None, unseen: Hidden = NOTHING_HIDDEN
) -> VerdictKind:
    """Return the verdict (docs/method.md, Verdicts) on the typical round and on the ratio of totals (None: equal).

    Slower or faster: the 95 % interval of either lies wholly beyond the margin on that side, and its interval against
    false alarms excludes zero. The second condition matters if the noise is much wider than the margin: the first alone
    would then call one in twenty equal platforms different. Equivalent: two one-sided tests at 5 % (Schuirmann 1987) of
    both: both 90 % intervals lie wholly inside the margin, and still do with the worst that so few draws can have
    missed. Typical: only this last condition fails. Failed trials count as runs at half speed. Otherwise: inconclusive.
    """
    if unseen.no_verdict:
        return VerdictKind.INCONCLUSIVE
    looks = (typical,) if totals is None else (typical, totals)
    sides = {kind for look in looks if (kind := side(question, look, unseen)) is not None}
    if sides:  # If the typical round is slower and the whole faster, neither is the answer.
        return sides.pop() if len(sides) == 1 else VerdictKind.INCONCLUSIVE
    if not all(_within(question, look.narrow, unseen.failed, unseen.baseline_failed) for look in looks):
        return VerdictKind.INCONCLUSIVE
    if all(_within(question, look.narrow, unseen.possible, unseen.baseline_failed) for look in looks):
        return VerdictKind.EQUIVALENT
    return VerdictKind.TYPICAL


def side(question: Question, look: LogIntervals, unseen: Hidden = NOTHING_HIDDEN) -> VerdictKind | None:
    """Return slower or faster, or None if this look alone is not sure of it."""
    if not (look.sure.low > 0 or look.sure.high < 0):
        return None
    over = _with_losses(question, look.wide, unseen.failed, unseen.baseline_failed)
    if over.low > question.margin:
        return VerdictKind.SLOWER
    return VerdictKind.FASTER if over.high < -question.margin else None


def not_worse(question: Question, look: LogIntervals) -> bool:
    """Return True if the platform is worse by less than the margin, at 95 %: the one-sided test of a gate."""
    return overhead(look.narrow, question.direction).high < question.margin


def certain(
    question: Question, typical: LogIntervals, totals: LogIntervals | None = None, unseen: Hidden = NOTHING_HIDDEN
) -> BaselineSide | None:
    """Return the side of the baseline by the platform's 99 % interval, however small the difference is.

    None if the interval contains zero, if the typical round and whole blocks lie on different sides, and if there can
    be no verdict (`Hidden.no_verdict`).
    """
    if unseen.no_verdict:
        return None
    looks = (typical,) if totals is None else (typical, totals)
    overs = [_with_losses(question, look.sure, unseen.failed, unseen.baseline_failed) for look in looks]
    worse, better = any(over.low > 0 for over in overs), any(over.high < 0 for over in overs)
    if worse == better:
        return None
    return BaselineSide.WORSE if worse else BaselineSide.BETTER


def _within(question: Question, logs: Interval, lost: float, baseline_lost: float) -> bool:
    over = _with_losses(question, logs, lost, baseline_lost)
    return -question.margin < over.low and over.high < question.margin


def _with_losses(question: Question, logs: Interval, lost: float, baseline_lost: float) -> Interval:
    """Return the overhead if the platform, or the baseline, had lost this much speed (a log) unseen."""
    up, down = (lost, baseline_lost) if question.direction is Direction.LOWER else (baseline_lost, lost)
    return overhead(Interval(logs.point, logs.low - down, logs.high + up), question.direction)


def judge(
    question: Question,
    typical: LogIntervals,
    totals: LogIntervals | None = None,
    unseen: Hidden = NOTHING_HIDDEN,
) -> Verdict:
    """Return the verdict by `decide`, with its reason and its intervals."""
    kind = decide(question, typical, totals, unseen)
    surely = certain(question, typical, totals, unseen)
    basis = Basis(typical.wide, None if totals is None else totals.wide, unseen)
    if kind in {VerdictKind.SLOWER, VerdictKind.FASTER}:
        certain_side = BaselineSide.WORSE if kind is VerdictKind.SLOWER else BaselineSide.BETTER
        in_typical_round = totals is None or side(question, typical, unseen) is kind
        return Verdict(kind, Reason.TYPICAL_ROUND if in_typical_round else Reason.WHOLE_BLOCKS, certain_side, basis)
    if kind in EQUAL:
        return Verdict(kind, Reason.WITHIN_MARGIN, surely, basis)
    return Verdict(kind, _why_open(question, typical, totals, unseen), surely, basis)


def _why_open(question: Question, typical: LogIntervals, totals: LogIntervals | None, unseen: Hidden) -> Reason:
    """Return the reason why the verdict is inconclusive."""
    over = overhead(typical.wide, question.direction)
    if unseen.no_verdict:
        return Reason.UNRELIABLE
    if over.low > question.margin or over.high < -question.margin:
        return Reason.CHANCE if side(question, typical) is None else Reason.LOOKS_DIFFER
    if _within(question, typical.narrow, 0.0, 0.0):
        if totals is not None and not _within(question, totals.narrow, 0.0, 0.0):
            return Reason.BLOCKS_WIDER
        return Reason.FAILED_BEYOND
    if certain(question, typical, totals, unseen) is not None:
        return Reason.SIZE_OPEN
    return Reason.CHANCE if over.low > 0 or over.high < 0 else Reason.WIDE_INTERVAL


def too_few(n_blocks: int, log: float | None) -> Verdict:
    """Return the verdict on fewer blocks than an interval needs; ``log``: the log ratio of a single block."""
    if log is None:
        return Verdict(VerdictKind.INCONCLUSIVE, Reason.TOO_FEW_BLOCKS, numbers={"blocks": n_blocks})
    return Verdict(VerdictKind.INCONCLUSIVE, Reason.ONE_BLOCK, basis=Basis(Interval(log, log, log)))


def within_noise(verdict: Verdict, margin: float, floor: Interval | None) -> Verdict:
    """Replace equivalent by inconclusive if the noise floor is wider than the margin (docs/method.md, Notes)."""
    if verdict.kind not in EQUAL or floor is None or floor.half_width <= margin:
        return verdict
    numbers = {"half_width": floor.half_width}
    return Verdict(VerdictKind.INCONCLUSIVE, Reason.WIDE_FLOOR, basis=verdict.basis, numbers=numbers)


def aa_gate(question: Question, baseline: LogIntervals) -> Closed | None:
    """Return the reason for no verdicts in this campaign if its two baseline arms differ, or None.

    The two baseline arms run the same bits in the same way. If the interval of their difference excludes zero, and lies
    wholly beyond half of the margin, the measured difference is not real (docs/method.md, Gate).
    """
    over = overhead(baseline.wide, question.direction)
    if -question.margin / 2 <= over.high and over.low <= question.margin / 2:
        return None
    return Closed(Reason.BASELINES_DIFFER, {"point": over.point, "low": over.low, "high": over.high})
