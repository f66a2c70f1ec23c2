from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tare.analysis.verdicts import Kind, LogIntervals, Question, Side, decide, gate, judge, too_few
from tare.analysis.wording import wording
from tare.estimates.intervals import Amount, Interval, t_interval
from tare.model import CPU_COST, Direction, Family


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
COST = Question(CPU_COST, Direction.LOWER, 0.01, wording(CPU_COST, "ns/event", Direction.LOWER))
MEMORY = Question("idle-pss", Direction.LOWER, 0.02, wording("idle-pss", "MiB", Direction.LOWER, Family.MEMORY))


@pytest.mark.parametrize(
    ("question", "interval", "kind", "text"),
    [
        (TIME, logs(1.036, 1.047), Kind.SLOWER, "4.1 % slower, 3.6 to 4.7"),
        (RATE, logs(0.953, 0.964), Kind.SLOWER, "4.2 % slower, 3.6 to 4.7"),
        (TIME, logs(0.953, 0.964), Kind.FASTER, "4.2 % faster, 3.6 to 4.7"),
        (RATE, logs(1.036, 1.047), Kind.FASTER, "4.1 % faster, 3.6 to 4.7"),
        (COST, logs(1.036, 1.047), Kind.SLOWER, "costs 4.1 % more CPU, 3.6 to 4.7"),
        (COST, logs(0.953, 0.964), Kind.FASTER, "costs 4.2 % less CPU, 3.6 to 4.7"),
        (TIME, logs(3.2, 3.4), Kind.SLOWER, "3.3 times slower, 3.2 to 3.4"),
        (RATE, logs(1 / 3.4, 1 / 3.2), Kind.SLOWER, "3.3 times slower, 3.2 to 3.4"),
        (COST, logs(3.2, 3.4), Kind.SLOWER, "costs 3.3 times the CPU, 3.2 to 3.4"),
        (RATE, logs(3.2, 3.4), Kind.FASTER, "3.3 times faster, 3.2 to 3.4"),
        (TIME, logs(0.998, 1.005), Kind.EQUIVALENT, "equivalent within 1 % (+0.15 %, \N{MINUS SIGN}0.20 to +0.50)"),
        (TIME, logs(1.004, 1.006), Kind.EQUIVALENT, "equivalent within 1 % (0.50 % slower, 0.40 to 0.60)"),
        (
            TIME,
            logs(0.995, 1.023),
            Kind.INCONCLUSIVE,
            "inconclusive: +0.9 %, \N{MINUS SIGN}0.5 to +2.3; known to ±1.4 %, the margin is 1 %",
        ),
        (
            TIME,
            logs(1.004, 1.02),
            Kind.INCONCLUSIVE,
            "inconclusive: 1.2 % slower, 0.4 to 2.0: worse for sure; whether by more than the 1 % margin is open",
        ),
        (
            TIME,
            logs(1.004, 1.02, sure=(0.999, 1.025)),
            Kind.INCONCLUSIVE,
            "inconclusive: 1.2 % slower, 0.4 to 2.0,"
            " but were there no difference, more than 1 of 100 campaigns would show as much",
        ),
        (
            TIME,
            logs(1.02, 1.12, sure=(0.995, 1.15)),
            Kind.INCONCLUSIVE,
            "inconclusive: 7 % slower, 2 to 12, but were there no difference, more than 1 of 100 campaigns would show"
            " as much",
        ),
    ],
)
def test_verdicts_and_their_words(question: Question, interval: LogIntervals, kind: Kind, text: str) -> None:
    verdict = judge(question, interval)
    assert (verdict.kind, verdict.text) == (kind, text)


@pytest.mark.parametrize(
    ("interval", "kind", "certain"),
    [
        (logs(1.02, 1.04), Kind.SLOWER, Side.WORSE),
        (logs(1.004, 1.02), Kind.INCONCLUSIVE, Side.WORSE),  # how much worse is open
        (logs(0.98, 0.996), Kind.INCONCLUSIVE, Side.BETTER),
        (logs(1.004, 1.02, sure=(0.999, 1.03)), Kind.INCONCLUSIVE, None),  # of 95 % alone one in twenty is chance
        (logs(0.97, 1.03), Kind.INCONCLUSIVE, None),
        (logs(1.004, 1.006), Kind.EQUIVALENT, Side.WORSE),  # and it does not matter
        (logs(0.998, 1.005), Kind.EQUIVALENT, None),
    ],
)
def test_that_there_is_a_difference_is_told_apart_from_how_large_it_is(
    interval: LogIntervals, kind: Kind, certain: Side | None
) -> None:
    verdict = judge(TIME, interval)
    assert (verdict.kind, verdict.certain) == (kind, certain)
    turned = LogIntervals(
        *(Interval(-i.point, -i.high, -i.low) for i in (interval.wide, interval.narrow, interval.sure))
    )
    assert judge(RATE, turned).certain == certain


def test_memory_is_told_by_what_is_added() -> None:
    added = Amount("MiB", 45.87, Interval(45.87, 45.72, 46.02), 15)
    text = judge(MEMORY, logs(26.1, 26.6), amount=added).text
    assert text == "+45.87 MiB (45.72 to 46.02): 26.3 times as much, 26.1 to 26.6"
    small = Amount("MiB", 0.01, Interval(0.01, -0.02, 0.04), 15)
    text = judge(MEMORY, logs(0.995, 1.006), amount=small).text
    minus = "\N{MINUS SIGN}"
    assert text == f"equivalent within 2 % (+10 KiB ({minus}20 to +41): 0.0 %, {minus}0.5 to +0.6)"


def test_one_block_tells_what_was_measured_and_concludes_nothing() -> None:
    added = Amount("MiB", 12.0, None, 1)
    told = too_few(MEMORY, 1, math.log(3.3), added)
    assert told.text == "inconclusive: +12.0 MiB: 3.3 times as much in 1 block, and an interval needs 2"
    assert (told.kind, told.certain) == (Kind.INCONCLUSIVE, None)
    assert too_few(TIME, 0, None).text == "inconclusive: 0 blocks with the baseline, at least 2 are needed"


def test_equivalence_goes_by_the_90_percent_interval() -> None:
    assert decide(TIME, logs(0.995, 1.011, narrow=(0.996, 1.0099))) is Kind.EQUIVALENT
    assert decide(TIME, logs(0.995, 1.011, narrow=(0.996, 1.0101))) is Kind.INCONCLUSIVE


def test_equivalence_is_two_one_sided_t_tests() -> None:
    rng = np.random.default_rng(11)
    agree = set()
    for _ in range(200):
        values = rng.normal(0.003, 0.012, 12)
        interval = LogIntervals(*(t_interval(values, level) for level in (0.95, 0.90, 0.99)))
        above = stats.ttest_1samp(values, math.log(0.99), alternative="greater").pvalue
        below = stats.ttest_1samp(values, math.log(1.01), alternative="less").pvalue
        shown = max(above, below) < 0.05
        assert (decide(TIME, interval) is Kind.EQUIVALENT) == shown
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
    said = gate(TIME, interval)
    assert (said is not None) == closed
    if said:
        assert "more than half of the 1 % margin" in said


def test_the_gate_is_open_without_a_second_baseline_arm() -> None:
    assert gate(TIME, None) is None
