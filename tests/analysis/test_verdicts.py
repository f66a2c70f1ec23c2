from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tare.analysis.hidden import Hidden
from tare.analysis.rule import LogIntervals, aa_gate, decide, judge, too_few
from tare.analysis.verdicts import BaselineSide, Basis, Question, Reason, VerdictKind
from tare.estimates.intervals import Interval, t_interval
from tare.model import Direction


def logs(
    low: float, high: float, *, narrow: tuple[float, float] | None = None, sure: tuple[float, float] | None = None
) -> LogIntervals:
    """Intervals of the ratio; unless given the 90 % one is a fifth narrower, and the 99 % one as wide: many blocks."""
    wide = Interval((math.log(low) + math.log(high)) / 2, math.log(low), math.log(high))
    half = 0.8 * wide.half_width
    ends = tuple(map(math.log, narrow)) if narrow else (wide.point - half, wide.point + half)
    far = tuple(map(math.log, sure)) if sure else (wide.low, wide.high)
    return LogIntervals(wide, Interval(wide.point, *ends), Interval(wide.point, *far))


TIME = Question("wall", Direction.LOWER, 0.01)
RATE = Question("rate", Direction.HIGHER, 0.01)


@pytest.mark.parametrize(
    ("question", "interval", "kind", "reason"),
    [
        (TIME, logs(1.036, 1.047), VerdictKind.SLOWER, Reason.TYPICAL_ROUND),
        (RATE, logs(0.953, 0.964), VerdictKind.SLOWER, Reason.TYPICAL_ROUND),
        (TIME, logs(0.953, 0.964), VerdictKind.FASTER, Reason.TYPICAL_ROUND),
        (RATE, logs(1.036, 1.047), VerdictKind.FASTER, Reason.TYPICAL_ROUND),
        (TIME, logs(0.998, 1.005), VerdictKind.EQUIVALENT, Reason.WITHIN_MARGIN),
        (TIME, logs(1.004, 1.006), VerdictKind.EQUIVALENT, Reason.WITHIN_MARGIN),
        (TIME, logs(0.995, 1.023), VerdictKind.INCONCLUSIVE, Reason.WIDE_INTERVAL),
        (TIME, logs(1.004, 1.02), VerdictKind.INCONCLUSIVE, Reason.SIZE_OPEN),
        (TIME, logs(1.004, 1.02, sure=(0.999, 1.025)), VerdictKind.INCONCLUSIVE, Reason.CHANCE),
        (TIME, logs(1.02, 1.12, sure=(0.995, 1.15)), VerdictKind.INCONCLUSIVE, Reason.CHANCE),
    ],
)
def test_verdicts_and_why_they_are_that(
    question: Question, interval: LogIntervals, kind: VerdictKind, reason: Reason
) -> None:
    verdict = judge(question, interval)
    assert (verdict.kind, verdict.reason) == (kind, reason)
    assert verdict.basis == Basis(interval.wide)


@pytest.mark.parametrize(
    ("typical", "totals", "unseen", "kind", "reason"),
    [
        (logs(0.999, 1.002), logs(1.02, 1.04), Hidden(), VerdictKind.SLOWER, Reason.WHOLE_BLOCKS),
        (logs(1.02, 1.04), logs(0.96, 0.98), Hidden(), VerdictKind.INCONCLUSIVE, Reason.LOOKS_DIFFER),
        (logs(0.999, 1.002), logs(0.98, 1.02), Hidden(), VerdictKind.INCONCLUSIVE, Reason.BLOCKS_WIDER),
        (logs(0.999, 1.002), None, Hidden(failed=0.02), VerdictKind.INCONCLUSIVE, Reason.FAILED_BEYOND),
        (logs(0.999, 1.002), None, Hidden(possible=0.02, draws=9, blocks=9), VerdictKind.TYPICAL, Reason.WITHIN_MARGIN),
        (logs(1.036, 1.047), None, Hidden(no_verdict=True), VerdictKind.INCONCLUSIVE, Reason.UNRELIABLE),
    ],
)
def test_whole_blocks_and_what_was_not_seen_have_reasons_of_their_own(
    typical: LogIntervals, totals: LogIntervals | None, unseen: Hidden, kind: VerdictKind, reason: Reason
) -> None:
    verdict = judge(TIME, typical, totals, unseen)
    assert (verdict.kind, verdict.reason) == (kind, reason)
    assert verdict.basis == Basis(typical.wide, totals.wide if totals else None, unseen)


@pytest.mark.parametrize(
    ("interval", "kind", "certain"),
    [
        (logs(1.02, 1.04), VerdictKind.SLOWER, BaselineSide.WORSE),
        (logs(1.004, 1.02), VerdictKind.INCONCLUSIVE, BaselineSide.WORSE),  # how much worse is open
        (logs(0.98, 0.996), VerdictKind.INCONCLUSIVE, BaselineSide.BETTER),
        (
            logs(1.004, 1.02, sure=(0.999, 1.03)),
            VerdictKind.INCONCLUSIVE,
            None,
        ),  # of 95 % alone one in twenty is chance
        (logs(0.97, 1.03), VerdictKind.INCONCLUSIVE, None),
        (logs(1.004, 1.006), VerdictKind.EQUIVALENT, BaselineSide.WORSE),  # and it does not matter
        (logs(0.998, 1.005), VerdictKind.EQUIVALENT, None),
    ],
)
def test_that_there_is_a_difference_is_told_apart_from_how_large_it_is(
    interval: LogIntervals, kind: VerdictKind, certain: BaselineSide | None
) -> None:
    verdict = judge(TIME, interval)
    assert (verdict.kind, verdict.certain) == (kind, certain)
    turned = LogIntervals(
        *(Interval(-i.point, -i.high, -i.low) for i in (interval.wide, interval.narrow, interval.sure))
    )
    assert judge(RATE, turned).certain == certain


def test_one_block_has_a_figure_and_concludes_nothing() -> None:
    log = math.log(3.3)
    verdict = too_few(1, log)
    assert (verdict.kind, verdict.reason, verdict.certain) == (VerdictKind.INCONCLUSIVE, Reason.ONE_BLOCK, None)
    assert verdict.basis == Basis(Interval(log, log, log))
    none = too_few(0, None)
    assert (none.reason, none.basis, none.numbers) == (Reason.TOO_FEW_BLOCKS, None, {"blocks": 0})


def test_equivalence_goes_by_the_90_percent_interval() -> None:
    assert decide(TIME, logs(0.995, 1.011, narrow=(0.996, 1.0099))) is VerdictKind.EQUIVALENT
    assert decide(TIME, logs(0.995, 1.011, narrow=(0.996, 1.0101))) is VerdictKind.INCONCLUSIVE


def test_equivalence_is_two_one_sided_t_tests() -> None:
    rng = np.random.default_rng(11)
    agree = set()
    for _ in range(200):
        values = rng.normal(0.003, 0.012, 12)
        interval = LogIntervals(*(t_interval(values, level) for level in (0.95, 0.90, 0.99)))
        above = stats.ttest_1samp(values, math.log(0.99), alternative="greater").pvalue
        below = stats.ttest_1samp(values, math.log(1.01), alternative="less").pvalue
        shown = max(above, below) < 0.05
        assert (decide(TIME, interval) is VerdictKind.EQUIVALENT) == shown
        agree.add(shown)
    assert agree == {True, False}


@pytest.mark.parametrize(
    ("interval", "closed"),
    [
        (logs(0.999, 1.02), False),  # holds zero
        (logs(1.001, 1.02), False),  # excludes zero, but not beyond half of the margin
        (logs(1.006, 1.02), True),
        (logs(0.98, 0.994), True),
    ],
)
def test_the_gate_closes_when_the_arms_differ_beyond_half_of_the_margin(interval: LogIntervals, closed: bool) -> None:
    shut = aa_gate(TIME, interval)
    assert (shut is not None) == closed
    if shut is not None:
        assert shut.reason is Reason.BASELINES_DIFFER
        assert (shut.numbers["low"], shut.numbers["high"]) == pytest.approx(
            (math.expm1(interval.wide.low), math.expm1(interval.wide.high))
        )
