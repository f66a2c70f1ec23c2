"""Each platform's answer by dimension: the figure that stands for it, its state, and the questions that are still open.

Nothing is estimated here, pooled or averaged: a dimension is shown by the worst of its headline figures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import polars as pl

from tare.analysis.bounds import Bound, merged
from tare.analysis.quality.findings import NOT_THE_PLATFORMS
from tare.analysis.results import MetricResult, PlatformResult
from tare.analysis.verdicts import BaselineSide, VerdictKind
from tare.estimates.widths import WidthRow
from tare.model import CPU_COST, Family, Mode
from tare.store import CampaignRecord, PlatformRecord, WorkloadRecord, workload_seconds


class Dimension(StrEnum):
    """A part of a platform's cost that a user asks for, in the order of tables."""

    COMPUTE = "compute"
    CPU_COST = "cpu-cost"  # CPU time of the whole platform for a unit of work, of the worst of all workloads
    MEMORY = "memory"
    DISK = "disk"
    NETWORK = "network"
    APPLICATIONS = "applications"
    SYSTEM_CALLS = "system-calls"
    START = "start"
    FOOTPRINT = "memory-footprint"


class AnswerState(StrEnum):
    """The state of a platform in a dimension."""

    WORSE = "worse"  # by more than the margin
    BETTER = "better"
    SURELY_WORSE = "surely-worse"  # whether by more than the margin is open
    SURELY_BETTER = "surely-better"
    ALIKE = "alike"  # equivalent, or in all that was seen
    BOUNDED = "bounded"  # no verdict, and a bound
    OPEN = "open"  # neither
    ONCE = "once"  # seen in one block: a value without an interval
    LIMITED = "limited"  # the client or the disk was the limit in all of its figures: they are not the platform's
    NONE = "none"  # no figure


#: What a user may feel alike in each dimension, for the order of sentences: a doubled time, by its weight ...
_WEIGHTS: Mapping[Dimension, float] = {
    Dimension.COMPUTE: 1.0,
    Dimension.CPU_COST: 0.9,
    Dimension.MEMORY: 0.8,
    Dimension.DISK: 0.7,
    Dimension.NETWORK: 0.7,
    Dimension.APPLICATIONS: 1.0,
    Dimension.SYSTEM_CALLS: 0.4,
}
#: ... and as much as a doubled time: an added second of a start, in ms, and an added 256 MiB.
_FELT: Mapping[Dimension, float] = {Dimension.START: 1_000.0, Dimension.FOOTPRINT: 256.0}
#: The dimension of a family's speed; CPU cost is of all of these.
FAMILIES: Mapping[Family, Dimension] = {
    Family.CPU: Dimension.COMPUTE,
    Family.MEMORY: Dimension.MEMORY,
    Family.STORAGE: Dimension.DISK,
    Family.NETWORK: Dimension.NETWORK,
    Family.APPLICATION: Dimension.APPLICATIONS,
    Family.KERNEL: Dimension.SYSTEM_CALLS,
}
#: Blocks that a campaign of one block is advised to have: its noise is not known yet.
FIRST_BLOCKS = 6
#: A longer campaign than this, in seconds, is not proposed: the host is too noisy for the margins.
MAX_CAMPAIGN_S = 3600.0


@dataclass(frozen=True, slots=True)
class Standing:
    """A platform in one dimension; ``workload`` and ``metric``: whose figure stands for it."""

    dimension: Dimension
    state: AnswerState
    workload: str
    metric: str
    n_figures: int  # of the dimension, with a figure or without, but for those that stand for none; the worst is shown
    felt: float  # how much the difference matters: 1 is as much as a doubled time; below 0 it is better
    bound: Bound | None = None  # of all the dimension's figures without a verdict: the worst of several is so by luck
    seconds: float | None = None  # the cost of an answer, by even odds; None: it is there, or cannot be predicted


@dataclass(frozen=True, slots=True)
class Settling:
    """More of this campaign, which would answer what is open; it fits into `MAX_CAMPAIGN_S`.

    Half of such campaigns take longer: the noise of few blocks is known roughly.
    """

    workloads: tuple[str, ...]  # empty: each would take longer
    blocks: int  # more of the workload that lacks most
    seconds: float
    beyond: tuple[str, ...]  # workloads that would take longer, on this host as it was
    beyond_seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """The results of a platform: a standing for each dimension with trials, the most felt first."""

    platform: str
    standings: tuple[Standing, ...]
    settling: Settling | None  # None: nothing is open, or it cannot be predicted


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of a campaign, one a platform but the baseline; ``settling``: of all platforms together."""

    platforms: tuple[Answer, ...]
    settling: Settling | None


def answers(record: CampaignRecord, results: Sequence[MetricResult], trials: pl.DataFrame) -> Answers:
    """The answers, in the record's order of platforms. ``trials``: of `tare.store.Store`."""
    workloads = {workload.name: workload for workload in record.workloads}
    cost = _Cost.of(record, trials)
    platform_answers, lacking = [], []
    for platform in record.platforms:
        if platform.name == record.baseline or _shows_noise(record, platform):
            continue
        figures = list(_figures(workloads, results, platform.name))
        blocks = _lacking(figures)
        standings = [_worst([figure for figure in figures if figure[0] is kind], cost) for kind in Dimension]
        ranked = sorted(
            (standing for standing in standings if standing is not None), key=lambda standing: -standing.felt
        )
        platform_answers.append(Answer(platform.name, tuple(ranked), cost.settling(blocks)))
        if not _isolates_nothing(platform):
            lacking.append(blocks)
    return Answers(tuple(platform_answers), cost.settling(_most(lacking)))


def _isolates_nothing(platform: PlatformRecord) -> bool:
    return "*" in platform.open_by_design


def _shows_noise(record: CampaignRecord, platform: PlatformRecord) -> bool:
    """Return True if it is a second baseline that nobody asked for by its name."""
    return _isolates_nothing(platform) and platform.name not in record.asked


_Figure = tuple[Dimension, MetricResult, PlatformResult]


def dimension(workload: WorkloadRecord, unit: str) -> Dimension | None:
    """The dimension of a workload's headline; None: it belongs to none (the size of an image, density)."""
    if workload.mode is Mode.START:
        return Dimension.START
    if workload.family is Family.MEMORY and unit in {"B", "KiB", "MiB", "GiB"}:
        return Dimension.FOOTPRINT
    return FAMILIES.get(workload.family)


def _figures(
    workloads: Mapping[str, WorkloadRecord], results: Sequence[MetricResult], platform: str
) -> Iterator[_Figure]:
    """The platform's headlines, and its CPU cost of all work. Of a start: the first mark that it has."""
    started: set[str] = set()
    for result in results:
        workload = workloads[result.workload]
        platform_result = next((candidate for candidate in result.platforms if candidate.platform == platform), None)
        if platform_result is None or result.workload in started:
            continue
        if workload.mode is Mode.START:
            if platform_result.described.mean is None and result.metric != workload.metrics[-1].name:
                continue
            started.add(result.workload)
            yield Dimension.START, result, platform_result
        elif result.metric == workload.metrics[0].name:
            kind = dimension(workload, result.unit)
            if kind is not None:
                yield kind, result, platform_result
        elif result.metric == CPU_COST and workload.family in FAMILIES:
            yield Dimension.CPU_COST, result, platform_result


_STATES: Mapping[VerdictKind, AnswerState] = {
    VerdictKind.SLOWER: AnswerState.WORSE,
    VerdictKind.FASTER: AnswerState.BETTER,
    VerdictKind.EQUIVALENT: AnswerState.ALIKE,
    VerdictKind.TYPICAL: AnswerState.ALIKE,
}


def _state(platform: PlatformResult) -> AnswerState:
    verdict = platform.verdict
    if any(note.kind in NOT_THE_PLATFORMS for note in platform.notes):
        return AnswerState.LIMITED
    if verdict.kind in _STATES:
        return _STATES[verdict.kind]
    if platform.lone is not None:
        return AnswerState.ONCE
    if platform.effect is None:
        return AnswerState.NONE
    if verdict.kind is VerdictKind.INCONCLUSIVE and verdict.certain is not None:
        return AnswerState.SURELY_WORSE if verdict.certain is BaselineSide.WORSE else AnswerState.SURELY_BETTER
    return AnswerState.OPEN if platform.effect.bound is None else AnswerState.BOUNDED


def _standing(kind: Dimension, result: MetricResult, platform: PlatformResult, n_figures: int) -> Standing:
    state = _state(platform)
    felt = 0.0 if state is AnswerState.LIMITED else _felt(kind, platform)
    return Standing(kind, state, result.workload, result.metric, n_figures, felt)


def _felt(kind: Dimension, platform: PlatformResult) -> float:
    if kind in _FELT:
        return 0.0 if platform.amount is None else platform.amount.point / _FELT[kind]
    return 0.0 if platform.effect is None else _WEIGHTS[kind] * math.log2(platform.effect.times.point)


#: Figures that stand for a dimension: worse ones before unknown ones before equal or better ones.
_BEFORE = (
    AnswerState.WORSE,
    AnswerState.SURELY_WORSE,
    AnswerState.OPEN,
    AnswerState.ONCE,
    AnswerState.BOUNDED,
    AnswerState.ALIKE,
    AnswerState.SURELY_BETTER,
    AnswerState.BETTER,
    AnswerState.NONE,
    AnswerState.LIMITED,
)


def _worst(figures: Sequence[_Figure], cost: _Cost) -> Standing | None:
    """The standing of a dimension, or None if it has no figure at all.

    A figure whose client or disk was the limit stands for the dimension only if all of its figures are so.
    """
    standing_for = [figure for figure in figures if _state(figure[2]) is not AnswerState.LIMITED] or figures
    standings = [_standing(*figure, len(standing_for)) for figure in standing_for]
    if not standings:
        return None
    worst = min(standings, key=lambda standing: (_BEFORE.index(standing.state), -standing.felt))
    settling = cost.settling(_lacking(standing_for)) if worst.state in {AnswerState.OPEN, AnswerState.ONCE} else None
    seconds = None if settling is None else settling.seconds + settling.beyond_seconds
    bound = _together([platform for _, _, platform in standing_for]) if worst.state is AnswerState.BOUNDED else None
    return replace(worst, bound=bound, seconds=seconds)


def _together(platforms: Sequence[PlatformResult]) -> Bound | None:
    """The bound of a dimension, which holds for all of its figures that have one in place of a verdict."""
    bounds = [
        platform.effect.bound
        for platform in platforms
        if platform.effect is not None and platform.effect.bound is not None and platform.verdict.certain is None
    ]
    return merged(bounds) if bounds else None


def _lacking(figures: Sequence[_Figure]) -> dict[str, int]:
    """By workload, the blocks that an answer for each of these figures needs; without those that have one."""
    blocks: dict[str, int] = {}
    for _, result, platform in figures:
        state = _state(platform)
        if state is AnswerState.ONCE:
            missing = FIRST_BLOCKS - platform.n_blocks
        elif state in {AnswerState.OPEN, AnswerState.BOUNDED} and platform.looks is not None:
            rows = [WidthRow.of(look) for look in platform.looks.all()]
            missing = max(row.until(row.answer) for row in rows)
        else:
            missing = 0
        if missing:
            blocks[result.workload] = max(missing, blocks.get(result.workload, 0))
    return blocks


def _most(lacking: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """By workload the most that any platform lacks."""
    names = dict.fromkeys(name for blocks in lacking for name in blocks)
    return {name: max(blocks.get(name, 0) for blocks in lacking) for name in names}


@dataclass(frozen=True, slots=True)
class _Cost:
    """Seconds of a block of each workload; ``starts``: the workloads that every block has, as it starts instances."""

    seconds: Mapping[str, float]
    starts: frozenset[str]

    @classmethod
    def of(cls, record: CampaignRecord, trials: pl.DataFrame) -> _Cost:
        starts = frozenset(start.name for start in record.workloads if start.mode is Mode.START)
        return cls(workload_seconds(trials), starts)

    def settling(self, blocks: Mapping[str, int]) -> Settling | None:
        """More blocks of these workloads, those first that take least; None where there are none."""
        if not blocks:
            return None
        chosen: list[str] = []
        for name in sorted(blocks, key=lambda name: self._takes(blocks, [name])):
            if self._takes(blocks, [*chosen, name]) <= MAX_CAMPAIGN_S:
                chosen.append(name)
        near = [name for name in blocks if name in chosen]
        far = [name for name in blocks if name not in chosen]
        most = max((blocks[name] for name in near or far), default=0)
        return Settling(tuple(near), most, self._takes(blocks, near), tuple(far), self._takes(blocks, far))

    def _takes(self, blocks: Mapping[str, int], names: Sequence[str]) -> float:
        most = max((blocks[name] for name in names), default=0)
        counts = {name: blocks[name] for name in names} | dict.fromkeys(self.starts, most)
        return sum(count * self.seconds.get(name, 0.0) for name, count in counts.items())
