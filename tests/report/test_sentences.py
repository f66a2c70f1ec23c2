"""Every code that analysis returns has a sentence, word for word; and no module of analysis has one."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest

from tare.analysis.bounds import Bound, BoundKind
from tare.analysis.effects import Effect
from tare.analysis.hidden import Hidden
from tare.analysis.quality.contamination import Disturbance
from tare.analysis.quality.fairness import ALIKE
from tare.analysis.quality.findings import Finding, FindingKind
from tare.analysis.refusals import NoAnswer, RefusalKind, RefusedAnswer
from tare.analysis.results import Description, FloorReason, NoiseFloor, PlatformResult, TrialCounts, Unmarked
from tare.analysis.rule import LogIntervals, judge, too_few
from tare.analysis.verdicts import BaselineSide, Basis, Closed, Enough, Question, Reason, Verdict, VerdictKind
from tare.errors import UsageError
from tare.estimates.dependence import Dependence
from tare.estimates.intervals import Amount, Interval
from tare.estimates.overhead import overhead, times_worse
from tare.features.compare.analysis import Procedure
from tare.features.compare.words import PROCEDURES
from tare.features.kernel.analysis.stacks import Entered, KernelEntry
from tare.features.kernel.words.entry_words import entry_text
from tare.features.studies.analysis.published import PublishedLine, Statement
from tare.features.studies.words.published_words import statement_text
from tare.model import CPU_COST, Direction, Family
from tare.report.model import Report
from tare.report.model.fact_models import PlatformFacts
from tare.report.sentences.fairness_words import UNFAIR, fact_text
from tare.report.sentences.host import (
    age_note,
    cpus_note,
    cpus_text,
    daemons_note,
    layout_note,
    priorities_note,
    tracking_note,
    versions_text,
)
from tare.report.sentences.notes import DISTURBANCES, NO_FLOOR, FindingContext, dependence_note, sentence
from tare.report.sentences.refusal_words import _FIXES, _TEXTS, refusal_text, refusals_told
from tare.report.sentences.shown import ShownFigure
from tare.report.sentences.verdict_words import Subject, verdict_text

MINUS = "\N{MINUS SIGN}"
TIME = Subject("wall", "s", Direction.LOWER, 0.01)
RATE = Subject("rate", "events/s", Direction.HIGHER, 0.01)
COST = Subject(CPU_COST, "ns/event", Direction.LOWER, 0.01)
MEMORY = Subject("idle-pss", "MiB", Direction.LOWER, 0.02, Family.MEMORY)


def log(low: float, high: float) -> Interval:
    """The log ratio between two ratios."""
    return Interval((math.log(low) + math.log(high)) / 2, math.log(low), math.log(high))


def logs(low: float, high: float) -> LogIntervals:
    """Of many blocks: the 99 % interval as wide as that of 95 %."""
    wide = log(low, high)
    half = 0.8 * wide.half_width
    return LogIntervals(wide, Interval(wide.point, wide.point - half, wide.point + half), wide)


def effect_of(verdict: Verdict, subject: Subject, **facts: Any) -> Effect | None:
    """The figure that a verdict is shown with."""
    basis = verdict.basis
    if basis is None:
        return None
    whole = verdict.reason in {Reason.WHOLE_BLOCKS, Reason.BLOCKS_WIDER}
    logs = basis.totals if whole and basis.totals is not None else basis.typical
    level = None if verdict.reason is Reason.ONE_BLOCK else 0.95
    return replace(Effect(times_worse(logs, subject.direction), level, whole), **facts)


def verdict_line(subject: Subject, verdict: Verdict, **facts: Any) -> str:
    return verdict_text(verdict, subject, "docker", effect_of(verdict, subject, **facts))


# --- verdicts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subject", "interval", "text"),
    [
        (TIME, logs(1.036, 1.047), "4.1 % slower, 3.6 to 4.7"),
        (RATE, logs(0.953, 0.964), "4.2 % slower, 3.6 to 4.7"),
        (TIME, logs(0.953, 0.964), "4.2 % faster, 3.6 to 4.7"),
        (RATE, logs(1.036, 1.047), "4.1 % faster, 3.6 to 4.7"),
        (COST, logs(1.036, 1.047), "costs 4.1 % more CPU, 3.6 to 4.7"),
        (COST, logs(0.953, 0.964), "costs 4.2 % less CPU, 3.6 to 4.7"),
        (TIME, logs(3.2, 3.4), "3.3 times slower, 3.2 to 3.4"),
        (RATE, logs(1 / 3.4, 1 / 3.2), "3.3 times slower, 3.2 to 3.4"),
        (COST, logs(3.2, 3.4), "costs 3.3 times the CPU, 3.2 to 3.4"),
        (RATE, logs(3.2, 3.4), "3.3 times faster, 3.2 to 3.4"),
        (TIME, logs(0.998, 1.005), f"equivalent within 1 % (+0.15 %, {MINUS}0.20 to +0.50)"),
        (TIME, logs(1.004, 1.006), "equivalent within 1 % (0.50 % slower, 0.40 to 0.60)"),
    ],
)
def test_the_words_are_those_of_the_metric(subject: Subject, interval: LogIntervals, text: str) -> None:
    question = Question(subject.metric, subject.direction, subject.margin)
    assert verdict_line(subject, judge(question, interval)) == text


def test_memory_is_told_by_what_is_added() -> None:
    question = Question(MEMORY.metric, MEMORY.direction, MEMORY.margin)
    added = Amount("MiB", 45.87, Interval(45.87, 45.72, 46.02), 15)
    text = verdict_line(MEMORY, judge(question, logs(26.1, 26.6)), amount=added)
    assert text == "+45.87 MiB (45.72 to 46.02): 26.3 times as much, 26.1 to 26.6"
    small = Amount("MiB", 0.01, Interval(0.01, -0.02, 0.04), 15)
    text = verdict_line(MEMORY, judge(question, logs(0.995, 1.006)), amount=small)
    assert text == f"equivalent within 2 % (+10 KiB ({MINUS}20 to +41): 0.0 %, {MINUS}0.5 to +0.6)"


def _open(reason: Reason, typical: Interval, **fields: object) -> Verdict:
    return replace(Verdict(VerdictKind.INCONCLUSIVE, reason, basis=Basis(typical)), **fields)


SMALL, BEYOND, HALF = log(0.998, 1.005), log(1.02, 1.12), log(1.004, 1.02)
HIDDEN = Hidden(share=0.0124, draws=240, blocks=12)
VERDICTS: list[tuple[Verdict, str]] = [
    (Verdict(VerdictKind.BASELINE, Reason.BASELINE), "the baseline"),
    (
        Verdict(VerdictKind.SLOWER, Reason.TYPICAL_ROUND, BaselineSide.WORSE, Basis(log(1.036, 1.047))),
        "4.1 % slower, 3.6 to 4.7",
    ),
    (
        Verdict(VerdictKind.SLOWER, Reason.WHOLE_BLOCKS, BaselineSide.WORSE, Basis(SMALL, log(1.036, 1.047))),
        f"4.1 % slower, 3.6 to 4.7, over whole blocks; a typical round: +0.15 %, {MINUS}0.20 … +0.50",
    ),
    (
        Verdict(VerdictKind.EQUIVALENT, Reason.WITHIN_MARGIN, basis=Basis(SMALL, unseen=HIDDEN)),
        f"equivalent within 1 % (+0.15 %, {MINUS}0.20 to +0.50); 240 samples exclude only slow modes in more than 1.2 %"
        " of them, 12 starts in more than 22 %",
    ),
    (
        Verdict(
            VerdictKind.TYPICAL, Reason.WITHIN_MARGIN, basis=Basis(SMALL, unseen=replace(HIDDEN, draws=12, share=0.22))
        ),
        f"equivalent within 1 % in all that was seen (+0.15 %, {MINUS}0.20 to +0.50); 12 samples exclude only slow"
        " modes in more than 22 % of them",
    ),
    (too_few(0, None), "inconclusive: 0 blocks with the baseline, at least 2 are needed"),
    (too_few(1, math.log(3.3)), "inconclusive: 3.3 times slower in 1 block, and an interval needs 2"),
    (_open(Reason.UNRELIABLE, log(1.036, 1.047)), "inconclusive: 4.1 % slower, 3.6 to 4.7"),
    (
        _open(Reason.CHANCE, BEYOND),
        "inconclusive: 7 % slower, 2 to 12: were there no difference, more than 1 of 100 campaigns would show as much",
    ),
    (
        _open(Reason.LOOKS_DIFFER, BEYOND),
        "inconclusive: 7 % slower, 2 to 12; whole blocks, or trials that failed, may lie on the other side of the 1 %"
        " margin",
    ),
    (
        _open(Reason.BLOCKS_WIDER, SMALL, basis=Basis(SMALL, log(0.98, 1.02))),
        f"inconclusive: 0.0 %, {MINUS}2.0 to +2.0, over whole blocks; a typical round, within the margin: +0.15 %,"
        f" {MINUS}0.20 … +0.50",
    ),
    (
        _open(Reason.FAILED_BEYOND, SMALL),
        f"inconclusive: +0.15 %, {MINUS}0.20 to +0.50; trials that failed may lie beyond the 1 % margin",
    ),
    (
        _open(Reason.SIZE_OPEN, HALF, certain=BaselineSide.WORSE),
        "inconclusive: 1.2 % slower, 0.4 to 2.0: surely worse; whether by more than the 1 % margin is open",
    ),
    (
        _open(Reason.WIDE_INTERVAL, log(0.995, 1.023), enough=Enough(40, 20, 110, 3_900.0)),
        f"inconclusive: +0.9 %, {MINUS}0.5 to +2.3; the margin is 1 %; ±0.5 % would take about 40 blocks (20 to 110),"
        " 1.1 h of this workload",
    ),
    (
        _open(Reason.WIDE_FLOOR, SMALL, numbers={"half_width": 0.019}),
        f"inconclusive: +0.15 %, {MINUS}0.20 to +0.50, but the noise floor ±1.9 % is wider than the 1 % margin",
    ),
    (
        Closed(Reason.BASELINES_DIFFER, {"point": 0.03, "low": 0.02, "high": 0.04}).verdict(Basis(BEYOND)),
        "invalid: the two baseline arms differ by +3.0 % (+2.0 … +4.0), more than half of the 1 % margin; what was"
        " seen: 7 % slower, 2 to 12",
    ),
    (
        Closed(Reason.BASELINES_DRIFT, {"correlation": -0.9, "size": 0.03}).verdict(Basis(BEYOND)),
        "invalid: of the two baseline arms the ratio drifts over the campaign: rank correlation with the block -0.90,"
        " by 3 % from the first to the last; what was seen: 7 % slower, 2 to 12",
    ),
    (
        Closed(Reason.DRIFT, {"correlation": 0.9, "size": 0.03}).verdict(Basis(BEYOND)),
        "invalid: the ratio drifts over the campaign: rank correlation with the block +0.90, by 3 % from the first to"
        " the last; what was seen: 7 % slower, 2 to 12",
    ),
    (Verdict(VerdictKind.NO_DATA, Reason.NO_DATA), "no data"),
    (Verdict(VerdictKind.NO_DATA, Reason.UNSUPPORTED), "no data: the platform cannot do this"),
    (Verdict(VerdictKind.NO_DATA, Reason.ALL_FAILED, numbers={"failed": 3}), "no data: all 3 trials failed"),
    (
        Verdict(VerdictKind.NO_DATA, Reason.NOT_SHOWN, numbers={"ok": 12}),
        "no data: none of its 12 good trials could show this",
    ),
    (Verdict(VerdictKind.NO_DATA, Reason.NO_BASELINE), "no data: the baseline has none to compare with"),
    (
        Verdict(VerdictKind.NO_DATA, Reason.UNFIT, numbers={"unfit": 1, "samples": 240}),
        "refused: 1 of 240 samples are zero, negative or not finite, and have no ratio",
    ),
    (
        Verdict(VerdictKind.NO_DATA, Reason.UNFIT_BASELINE, numbers={"unfit": 1, "samples": 240}),
        "refused: 1 of 240 samples of the baseline are zero, negative or not finite, and have no ratio",
    ),
    (
        Verdict(VerdictKind.NO_DATA, Reason.NOT_ALIKE, unlike=("image", "agent")),
        "refused: not alike, it has other bits, another agent; asked for by its name (-p docker) it is compared all the"
        " same",
    ),
    (Verdict(VerdictKind.NO_DATA, Reason.ALL_MARKED), "no data: no block is left that has it and the baseline"),
]


@pytest.mark.parametrize(("verdict", "text"), VERDICTS, ids=[verdict.reason for verdict, _ in VERDICTS])
def test_every_reason_has_its_sentence(verdict: Verdict, text: str) -> None:
    assert verdict_line(TIME, verdict) == text


def test_no_reason_is_left_without_one() -> None:
    assert {verdict.reason for verdict, _ in VERDICTS} == set(Reason)


def test_one_block_tells_what_was_measured_with_what_it_adds() -> None:
    verdict = too_few(1, math.log(3.3))
    assert (
        verdict_line(MEMORY, verdict, amount=Amount("MiB", 12.0, None, 1))
        == "inconclusive: +12.0 MiB: 3.3 times as much in 1 block, and an interval needs 2"
    )


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        (Bound(BoundKind.BETWEEN, 0.98, 1.04), f"between {MINUS}2.0 and +4.0 %"),
        (Bound(BoundKind.BETWEEN, 1.04, 1.3391), "between +4.0 and +34 %"),
        (Bound(BoundKind.AT_MOST, 0.7, 1.0591), "at most 6.0 % slower"),
        (Bound(BoundKind.AT_MOST, 0.1, 0.4), "at least 2.5 times faster"),
        (Bound(BoundKind.AT_MOST, 0.4, 0.7), "at least 30 % faster"),
        (Bound(BoundKind.AT_LEAST, 4.0, 90.0), "at least 4.0 times slower"),
        (Bound(BoundKind.AT_LEAST, 1.3, 90.0), "at least 30 % slower"),
    ],
)
def test_a_bound_is_said_first_and_holds_as_it_is_printed(bound: Bound, words: str) -> None:
    line = verdict_line(TIME, _open(Reason.WIDE_INTERVAL, log(0.6, 1.5)), bound=bound)
    assert line.startswith(f"inconclusive: {words} in what was seen; ")


def test_the_interval_that_decides_has_its_level_beside_it() -> None:
    line = verdict_line(TIME, _open(Reason.CHANCE, log(0.995, 1.09)), level=0.995)
    assert line.startswith(f"inconclusive: +4.1 %, {MINUS}0.5 to +9.0 (99.5 %): were there no difference")


# --- what stands beside them -------------------------------------------------------------------------------------


UNMARKED = Unmarked(1, 0, 11, overhead(SMALL, Direction.LOWER), Verdict(VerdictKind.TYPICAL, Reason.WITHIN_MARGIN))
PLATFORM = PlatformResult(
    "docker",
    12,
    0,
    TrialCounts(),
    Description(12, 1.0, 0.1, 1.0),
    overhead=overhead(log(0.995, 1.023), Direction.LOWER),
    verdict=Verdict(VerdictKind.INCONCLUSIVE, Reason.WIDE_INTERVAL),
    unmarked=UNMARKED,
)
FLOOR = NoiseFloor(None, 0, FloorReason.TOO_FEW_BLOCKS)
STALLS = {"share": 0.1, "speed": 0.5, "lost": 0.05, "baseline_share": 0.01, "baseline_lost": 0.005}
FINDINGS: list[tuple[Finding, str]] = [
    (
        Finding(FindingKind.STALLS, STALLS),
        "stalls: 10 % of its rounds run at 50 % of their usual speed and lose 5 % of the work (the baseline's: 1 % of"
        " the rounds, 0.5 %)",
    ),
    (
        Finding(FindingKind.UNSEEN, {"draws": 240, "share": 0.0124, "cost": 0.006, "blocks": 12, "blocks_share": 0.22}),
        "240 rounds do not exclude a slow mode in up to 1.2 % of them; at half speed that would cost 0.6 % (of whole"
        " starts, 12: 22 %)",
    ),
    (
        Finding(FindingKind.UNSEEN, {"draws": 12, "share": 0.22, "cost": 0.11, "blocks": 12, "blocks_share": 0.22}),
        "12 runs do not exclude a slow mode in up to 22 % of them; at half speed that would cost 11 %",
    ),
    (
        Finding(FindingKind.FAILURES, {"failed": 4, "trials": 12, "baseline_failed": 1, "baseline_trials": 24}),
        "4 of 12 trials failed, and 1 of 24 of the baseline's",
    ),
    (
        Finding(FindingKind.RESOLUTION, {"step": 10.0, "half_width": 0.02}),
        "figures move in steps of 10.00 s: the interval is at least ±2 %",
    ),
    (
        Finding(FindingKind.NO_SPREAD, {"blocks": 4, "needed": 8}),
        "all 4 blocks show the same figures: 8 are needed to conclude from that",
    ),
    (
        Finding(FindingKind.CONTAMINATED, {"marked": 1, "ok": 12, "foreign-cpu": 1}),
        "1 of 12 trials contaminated: other programs on the measured CPUs above 5 %; kept",
    ),
    (
        Finding(FindingKind.CONTAMINATED, {"marked": 2, "ok": 12, "foreign-cpu": 1, "memory-pressure": 2}),
        "2 of 12 trials contaminated: other programs on the measured CPUs above 5 % (1), memory pressure above 1 % (2);"
        " kept",
    ),
    (
        Finding(FindingKind.BLOCKS_LEFT_OUT, {"missing": 4, "blocks": 12}),
        "4 of 12 blocks left out: this platform or the baseline has no sample",
    ),
    (
        Finding(FindingKind.SINGLE_BASELINE, {"single": 3, "blocks": 12}),
        "one baseline arm only in 3 of 12 blocks",
    ),
    (
        Finding(FindingKind.BOOTSTRAP, {"point": 0.012, "low": 0.004, "high": 0.02}, verdict=VerdictKind.SLOWER),
        "the bootstrap (BCa) says worse: +1.2 %, +0.4 … +2.0",
    ),
    (
        Finding(FindingKind.AFTER_EACH_OTHER),
        "the platforms ran one after the other: what the machine did meanwhile is in the figures",
    ),
    (
        Finding(FindingKind.DRIFT, {"correlation": 0.7}),
        "the ratio drifts over the campaign: rank correlation with the block +0.70",
    ),
    (
        Finding(FindingKind.ONE_BASELINE),
        "one baseline arm: no A/A figure, so nobody knows what no difference looks like",
    ),
    (Finding(FindingKind.NO_FLOOR), "no A/A figure: fewer than 2 blocks have both baseline arms"),
    (
        Finding(FindingKind.WIDE_FLOOR, {"half_width": 0.019}),
        "the noise floor ±1.9 % is wider than the 1 % margin",
    ),
    (Finding(FindingKind.FLOOR_EXCLUDES_ZERO), "the A/A interval excludes zero: take this with care"),
    (
        Finding(FindingKind.UNMARKED),
        f"without its 1 marked trial: +0.15 %, {MINUS}0.20 … +0.50 in 11 blocks; with all: +0.9 %, {MINUS}0.5 … +2.3"
        " in 12; the verdict would be typical",
    ),
    (
        Finding(FindingKind.CLIENT_LIMITED, {"busy": 0.97, "baseline_busy": 0.98}),
        "the client was the limit: it was busy 97% of its time, and the platform may be faster than this",
    ),
    (
        Finding(FindingKind.CLIENT_NEAR, {"busy": 0.8, "baseline_busy": 0.5, "limit": 12_500.0}, unit="requests/s"),
        "the client was near its limit: it was busy 80% of its time and can make some 12,500 requests/s",
    ),
    (
        Finding(FindingKind.CLOCK_OFF, {"rate": -0.0031, "open": 0.0002}),
        "the clock inside ran 0.31 % too slow (known to ±0.02 %): by that much the platform looks faster than it is",
    ),
    (
        Finding(FindingKind.CLOCK_OPEN, {"open": 0.012}),
        "the clock inside is only known to run right within ±1.2 %: the round trips to it are too long for half of the"
        " 1 % margin",
    ),
    (
        Finding(FindingKind.CLIENT_DEARER, {"times": 14.25}),
        "a unit of work cost the client 14.2 times the CPU time that it cost with the baseline: the figure is the"
        " client's as well as the platform's",
    ),
    (
        Finding(FindingKind.DISK_LIMITED, {"busy": 0.95, "baseline_busy": 0.98}),
        "the disk was the limit: it was busy 95% of the time, and 98% with the baseline",
    ),
    (
        Finding(FindingKind.HEADLINE_DIFFERS, verdict=VerdictKind.EQUIVALENT, metric="rate"),
        "differs from rate, which is equivalent",
    ),
    (
        Finding(FindingKind.SHARED_PAGES, metric="idle-own", others=("bubblewrap", "crun")),
        "idle-own ranks it the other way round against bubblewrap, crun: PSS also counts pages of programs and"
        " libraries, which instances share and the kernel can drop",
    ),
]


@pytest.mark.parametrize(("finding", "text"), FINDINGS, ids=[finding.kind for finding, _ in FINDINGS])
def test_every_finding_has_its_sentence(finding: Finding, text: str) -> None:
    assert sentence(finding, FindingContext(TIME, PLATFORM, FLOOR)) == text


def test_no_finding_is_left_without_one() -> None:
    assert {finding.kind for finding, _ in FINDINGS} == set(FindingKind)


def test_what_is_left_without_marked_trials_may_be_nothing() -> None:
    nothing = Unmarked(12, 24, 0, None, Verdict(VerdictKind.NO_DATA, Reason.ALL_MARKED))
    text = sentence(Finding(FindingKind.UNMARKED), FindingContext(TIME, replace(PLATFORM, unmarked=nothing), FLOOR))
    assert text == (
        "without its 12 marked trials and the baseline's 24 marked trials there is no figure: no data: no block is left"
        " that has it and the baseline"
    )


def test_marked_trials_of_the_baseline_alone_are_told_too() -> None:
    baseline = replace(UNMARKED, n_trials=0, n_baseline=2)
    text = sentence(Finding(FindingKind.UNMARKED), FindingContext(TIME, replace(PLATFORM, unmarked=baseline), FLOOR))
    assert text.startswith("without the baseline's 2 marked trials: ")


def test_blocks_that_are_alike_are_told_and_others_not() -> None:
    alike = Dependence(20, 10, 0.5, -0.1, 0.1, 0.001)
    assert dependence_note(alike) == (
        "neighbouring blocks are alike (lag-1 autocorrelation +0.60, p 0.001): 95 % intervals may be too narrow by a"
        " factor of 2.0"
    )
    assert dependence_note(replace(alike, p=0.02)) is None


# --- comparisons, stacks, studies --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("refusal", "text"),
    [
        (
            RefusedAnswer(RefusalKind.PAIR_TOO_FEW_BLOCKS, ("native", "docker"), {"blocks": 0}),
            "native and docker both have a value in 0 blocks, at least 2 are needed",
        ),
        (
            RefusedAnswer(RefusalKind.PAIR_NO_NOISE, ("native", "docker"), {"blocks": 9}),
            "native and docker differ by the same in every block: no noise to compare with",
        ),
        (
            RefusedAnswer(RefusalKind.NO_RATIOS, ("docker",)),
            "docker: samples are zero, negative or not finite, and have no ratio",
        ),
        (
            RefusedAnswer(RefusalKind.TOO_FEW, ("docker",), {"values": 1, "at_least": 4}),
            "docker: 1 value, at least 4 are needed",
        ),
        (
            RefusedAnswer(RefusalKind.EXTREME, ("{0}",), {"value": 1e40, "least": 1e-30, "most": 1e30}),
            "{0}: 1e+40 is no measurement: figures lie between 1e-30 and 1e+30",
        ),
        (RefusedAnswer(RefusalKind.NO_LOGARITHM), "it has samples without a logarithm (zero, negative, or none)"),
        (RefusedAnswer(RefusalKind.ONE_ROUND), "it has one figure a block"),
        (
            RefusedAnswer(RefusalKind.TRIALS, numbers={"trials": -1, "baseline": 3}),
            "trials are counted: -1 against 3 of the baseline",
        ),
        (RefusedAnswer(RefusalKind.P_VALUES), "p values lie between 0 and 1"),
    ],
)
def test_why_data_have_no_answer(refusal: RefusedAnswer, text: str) -> None:
    assert refusal_text(refusal) == text


def test_every_refusal_has_its_words() -> None:
    assert _TEXTS.keys() == set(RefusalKind)
    assert _FIXES.keys() < set(RefusalKind)
    for text in (*_TEXTS.values(), *_FIXES.values()):
        assert "_" not in re.sub(r"\{\w+[^}]*\}", "", text), "a name of the code's"


@pytest.mark.parametrize(
    ("refusal", "text"),
    [
        (
            NoAnswer(RefusalKind.OTHER_BASELINES, "old.tare", "native", "new.tare", "runc"),
            "old.tare is against native, new.tare against runc: overheads do not compare"
            " (fix: --absolute compares the figures themselves)",
        ),
        (
            NoAnswer(RefusalKind.NO_BASELINE_BESIDE),
            "a sequential campaign has no baseline beside each figure (fix: --absolute)",
        ),
        (
            NoAnswer(RefusalKind.COMPUTED_DIFFERENTLY, "old.tare", "new.tare", "a, b"),
            "old.tare and new.tare have no figure in common: those of a, b are computed differently"
            " (fix: run both with the same version of tare)",
        ),
        (
            NoAnswer(RefusalKind.NOTHING_IN_COMMON, "old.tare", "new.tare"),
            "old.tare and new.tare have no figure in common (fix: name campaigns of one plan)",
        ),
        (
            NoAnswer(RefusalKind.NOTHING_IN_COMMON_OF_PLATFORMS, "runc", "docker"),
            "runc and docker have no figure in common (fix: name platforms that ran the same)",
        ),
        (
            NoAnswer(RefusalKind.NO_INSTRUCTIONS_IN_COMMON),
            "no figure of instructions is on both sides (fix: count the same platforms and workloads)",
        ),
        (
            NoAnswer(RefusalKind.NO_SUCH_PLATFORM, "podman", "one.tare", "native, runc"),
            "podman did not take part in one.tare (fix: name two of native, runc)",
        ),
        (
            NoAnswer(RefusalKind.NO_CAMPAIGN),
            "there is no campaign that can be read (fix: name a folder with *.tare files)",
        ),
        (NoAnswer(RefusalKind.LEVELS, levels=2), "footprints of one level are needed, not of 2"),
    ],
)
def test_a_command_says_a_refusal_as_an_error_with_its_fix(refusal: NoAnswer, text: str) -> None:
    with pytest.raises(UsageError) as caught, refusals_told():
        raise refusal
    assert str(caught.value) == text


def test_what_the_kernel_was_entered_for() -> None:
    assert [entry_text(KernelEntry(kind, "x")) for kind in Entered] == ["x", "thread x", "the gate itself", "not known"]


def test_statements_of_a_study() -> None:
    lines = [
        PublishedLine("Table 1", "time", "docker", statement, 1.0, 1.0, wrong=False, of="sd") for statement in Statement
    ]
    assert [statement_text(line) for line in lines] == [
        "sd again",
        "change",
        "sd",
        "relative deviation at most",
        "score",
        "sum",
        "p below",
        "degrees of freedom",
    ]


# --- tables of words are whole -----------------------------------------------------------------------------------


def test_every_code_of_a_table_has_words() -> None:
    assert set(DISTURBANCES) == set(Disturbance)
    assert set(NO_FLOOR) == set(FloorReason)
    assert set(UNFAIR) == set(ALIKE)
    assert set(PROCEDURES) == set(Procedure)


@pytest.mark.parametrize(("value", "text"), [([0, 1], "0,1"), (None, "unknown"), (1 << 30, "1073741824")])
def test_facts_of_the_manifest_in_words(value: object, text: str) -> None:
    assert fact_text(value) == text


@pytest.mark.parametrize(
    ("resources", "had", "note"),
    [
        ({"cpus": [1]}, "CPU 1", None),  # of a file from before all this was recorded
        ({"cpus": [1], "probe_cpu": 1, "harness_cpus": [0]}, "CPU 1", None),
        ({"cpus": [1, 2, 3], "probe_cpu": 3, "harness_cpus": [0]}, "CPU 1, 2, 3, probes on CPU 3", None),
        (
            {"cpus": [0, 1], "probe_cpu": 1, "harness_cpus": [0], "cpu_quota": 1.5},
            "CPU 0, 1, of their time 1.5 CPUs' worth, probes on CPU 1",
            "tare and the client ran on CPU 0, which instances had too;"
            " CPU 1 was left to them and to the probes' slices",
        ),
        (
            {"cpus": [0], "probe_cpu": 0, "harness_cpus": [0]},
            "CPU 0",
            "tare and the client ran on CPU 0, which instances had too",
        ),
    ],
)
def test_who_was_on_which_cpu(resources: dict[str, Any], had: str, note: str | None) -> None:
    assert cpus_text(resources) == had
    assert cpus_note(resources) == note


def test_a_caution_stands_where_cpus_are_unlike() -> None:
    host = {"cpu": {"isolated": [2, 3], "kinds": [[0, 1], [2, 3]]}}
    assert layout_note(host, {"cpus": [3]}) is None
    assert "spread the threads" in (layout_note(host, {"cpus": [2, 3]}) or "")
    assert "fast and slow" in (layout_note(host, {"cpus": [1, 2]}) or "")
    assert layout_note({}, {"cpus": [0, 1]}) is None


@pytest.mark.parametrize("cpu", [5, "x", [], None, {"isolated": 1, "kinds": 2}, {"isolated": [[1]], "kinds": [0, "1"]}])
def test_a_record_of_other_facts_has_no_caution_on_cpus(cpu: object) -> None:
    assert layout_note({"cpu": cpu}, {"cpus": [0, 1]}) is None


@pytest.mark.parametrize(
    ("cpus", "note"),
    [
        ({"native": "it has none", "docker": "0-1", "lxd": "0-1"}, None),
        ({"native": "it has none", "docker": "0-1"}, None),
        (
            {"native": "it has none", "docker": "0-1", "lxd": "1", "docker-host": "0-1"},
            "shared daemons had unlike CPUs, which their starts are to be read with"
            " (CPU 0-1: docker, docker-host; CPU 1: lxd)",
        ),
    ],
)
def test_shared_daemons_on_unlike_cpus_are_told(cpus: dict[str, str], note: str | None) -> None:
    assert daemons_note({name: {"daemons' cpus": of_it} for name, of_it in cpus.items()}) == note
    assert daemons_note({"native": None, "docker": {}}) is None  # of a file from before this was recorded


def test_unlike_priorities_are_told() -> None:
    usual, idle = "normal, nice 0", "idle, nice 19"
    facts = {"native": {"priority": idle}, "runc": {"priority": idle}, "docker": {"priority": usual}}
    assert priorities_note(facts, "native") == (
        "the kernel scheduled instances at unlike priorities (native: idle, nice 19; docker: normal, nice 0):"
        " start tare without nice or chrt"
    )
    of_a_daemon = priorities_note({"native": {"priority": usual}, "docker": {"priority": idle}}, "native")
    assert of_a_daemon is not None
    assert of_a_daemon.endswith("; docker: idle, nice 19): see what sets that of the others' daemons")
    partly = {"native": {"priority": usual}, "gvisor": {"priority": f"{usual}; normal, nice 1"}}
    assert priorities_note(partly, "native") is None, "its own doing"
    alike = {name: {"priority": idle} for name in facts} | {"ssh": {"priority": "unknown"}}
    assert priorities_note(alike, "native") is None
    assert priorities_note({"native": None, "docker": {}, "old": {"priority": 5}}, "native") is None


PATHS = {
    "native": {"network path": "client, bridge, host stack"},
    "runc": {"network path": "client, bridge, veth"},
    "docker": {"network path": "client, bridge, published port (NAT), docker0, veth"},
    "docker-host": {"network path": "client, bridge, host stack"},
    "gvisor": {"network path": "client, bridge, veth, gVisor's netstack"},
    "box": {"network path": "it has no network"},
    "old": None,
}


def test_who_does_not_pay_for_tracked_connections_is_named(report: Report) -> None:
    cpu = next(result for result in report.results if result.family == "cpu")
    load = cpu.model_copy(update={"family": "application"})
    tracked = {"connection_tracking": True}
    note = tracking_note(tracked, PATHS, "native", [cpu, load])
    assert note is not None
    assert "slows native and not runc, gvisor:" in note
    assert note.endswith("(compare them with native-veth, native on their path)")
    assert tracking_note(tracked, PATHS, "native", [cpu]) is None
    assert tracking_note({"connection_tracking": False}, PATHS, "native", [load]) is None
    assert tracking_note({}, PATHS, "native", [load]) is None
    assert tracking_note(tracked, PATHS, "runc", [load]) is None
    alike = {name: PATHS[name] for name in ("native", "docker", "docker-host")}
    assert tracking_note(tracked, alike, "native", [load]) is None
    alone = {"native": PATHS["native"], "native-veth": PATHS["runc"]}
    assert tracking_note(tracked, alone, "native", [load]) is None


def test_what_the_baseline_without_tracking_has_is_said(report: Report) -> None:
    cpu = next(result for result in report.results if result.family == "cpu" and result.headline)
    runc = next(entry for entry in cpu.platforms if entry.platform == "runc")
    veth = runc.model_copy(update={"platform": "native-veth"})
    load = cpu.model_copy(update={"family": "application", "workload": "redis", "platforms": [*cpu.platforms, veth]})
    note = tracking_note({"connection_tracking": True}, PATHS | {"native-veth": PATHS["runc"]}, "native", [cpu, load])
    assert note is not None
    figure, span = ShownFigure.of(load, veth).in_words()
    assert figure
    assert note.endswith(f"(compare them with native-veth, native on their path: redis {figure} ({span}))")
    assert "not runc, gvisor:" in note


def _entry(name: str, version: str, released: int | None = None, **details: str) -> PlatformFacts:
    return PlatformFacts(
        name=name,
        title=name,
        version=version,
        details=details,
        image_bytes=None,
        not_honoured=[],
        open_by_design={},
        network_path="",
        released=released,
    )


ENGINES = [
    _entry("native", "6.12"),
    _entry("native-veth", "6.12"),
    _entry("runc-userns", "1.1.5", 2022),
    _entry("runc", "1.1.5", 2022),
    _entry("docker", "20.10.24", 2020, runtime="runc", parts="containerd 1.6.20, runc 1.1.5"),
    _entry("podman", "5.4.2", 2025, runtime="crun 1.21 (/usr/bin/crun)"),
    _entry("lxc", "7.0"),
]


def test_the_head_names_kernel_control_groups_and_engines() -> None:
    text = versions_text({"kernel": "6.12.1", "cgroup": "v2"}, ENGINES, "native")
    engines = "runc 1.1.5, docker 20.10.24 (runc 1.1.5), podman 5.4.2 (crun 1.21), lxc 7.0"
    assert text == f"Linux 6.12.1, cgroup v2; {engines}"
    assert versions_text({}, ENGINES[:1], "native") == "an unknown kernel"
    many = [_entry(f"engine{number}", f"{number}.0") for number in range(11)]
    assert versions_text({}, many, "native").endswith("engine7 7.0 and 3 more")


def test_engines_of_a_line_of_other_years_have_a_caution() -> None:
    in_2025 = 1_750_000_000.0
    note = age_note(ENGINES, in_2025)
    assert note is not None
    assert note.endswith("(of 2020: docker 20.10.24 (runc 1.1.5); of 2022: runc 1.1.5)")
    assert age_note(ENGINES[:2] + ENGINES[5:], in_2025) is None
    assert age_note(ENGINES[3:4], in_2025 - 365 * 86_400) is None, "two years are not more than two"
