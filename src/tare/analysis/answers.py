"""What a campaign says of each platform, by dimension: which figure stands for it, how it stands, what is still open.

Nothing is estimated here, pooled or averaged: a dimension is shown by the worst of its headline figures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from tare.analysis.results import MetricResult, PlatformResult
from tare.analysis.trust.findings import NOT_THE_PLATFORMS
from tare.analysis.verdicts import EQUAL, Kind, Reason, Side
from tare.estimates.intervals import MIN_BLOCKS
from tare.estimates.overhead import ratio_of
from tare.estimates.widths import Row
from tare.model import CPU_COST, Direction, Family, Mode
from tare.store import CampaignRecord, WorkloadRecord


class Dimension(StrEnum):
    """A part of a platform's cost that a user asks for, in the order of tables."""

    COMPUTE = "compute"
    CPU_COST = "cpu-cost"  # CPU time of the whole platform for a unit of the compute workloads' work
    MEMORY = "memory"
    DISK = "disk"
    NETWORK = "network"
    APPLICATIONS = "applications"
    SYSTEM_CALLS = "system-calls"
    START = "start"
    FOOTPRINT = "memory-footprint"


class State(StrEnum):
    """How a platform stands in a dimension."""

    WORSE = "worse"  # for sure, by more than the margin or by an open amount
    BETTER = "better"
    ALIKE = "alike"  # equivalent, or in all that was seen
    OPEN = "open"
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
_FAMILIES: Mapping[Family, Dimension] = {
    Family.CPU: Dimension.COMPUTE,
    Family.MEMORY: Dimension.MEMORY,
    Family.STORAGE: Dimension.DISK,
    Family.NETWORK: Dimension.NETWORK,
    Family.APPLICATION: Dimension.APPLICATIONS,
    Family.KERNEL: Dimension.SYSTEM_CALLS,
}
#: Blocks that a campaign of one block is told to have: what its noise is nobody knows yet.
FIRST_BLOCKS = 6
#: A longer campaign than this, in seconds, is not proposed: the host is too noisy for the margins.
MAX_CAMPAIGN_S = 3600.0


@dataclass(frozen=True, slots=True)
class Standing:
    """A platform in one dimension; ``workload`` and ``metric``: whose figure stands for it."""

    dimension: Dimension
    state: State
    workload: str
    metric: str
    n_figures: int  # of the dimension, with a figure or without, but for those that stand for none; the worst is shown
    felt: float  # how much the difference matters: 1 is as much as a doubled time; below 0 it is better


@dataclass(frozen=True, slots=True)
class Settling:
    """A campaign of this platform alone that would tell what is open; they fit into `MAX_CAMPAIGN_S` together."""

    workloads: tuple[str, ...]  # empty: each would take longer
    blocks: int
    seconds: float
    beyond: tuple[str, ...]  # workloads that would take longer, on this host as it was
    beyond_seconds: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of a platform: a standing for each dimension with trials, the most felt first."""

    platform: str
    standings: tuple[Standing, ...]
    settling: Settling | None  # None: nothing is open, or nobody can predict it


def answers(record: CampaignRecord, results: Sequence[MetricResult], trials: pl.DataFrame) -> list[Answer]:
    """One answer a platform but the baseline, in the record's order. ``trials``: of `tare.store.Store`."""
    workloads = {workload.name: workload for workload in record.workloads}
    turns = _turns(trials)
    platform_answers = []
    for platform in record.platforms:
        if platform.name == record.baseline:
            continue
        figures = list(_figures(workloads, results, platform.name))
        standings = [_worst([figure for figure in figures if figure[0] is kind]) for kind in Dimension]
        ranked = sorted(
            (standing for standing in standings if standing is not None), key=lambda standing: -standing.felt
        )
        unsure = [
            (_standing(*figure, 1), figure[2])
            for figure in figures
            if _state(figure[2]) in {State.OPEN, State.ONCE} and figure[0] is not Dimension.CPU_COST
        ]
        settling = _settling(record, unsure, turns, platform.name)
        platform_answers.append(Answer(platform.name, tuple(ranked), settling))
    return platform_answers


_Figure = tuple[Dimension, MetricResult, PlatformResult]


def dimension(workload: WorkloadRecord, unit: str) -> Dimension | None:
    """The dimension of a workload's headline; None: it belongs to none (the size of an image, density)."""
    if workload.mode is Mode.START:
        return Dimension.START
    if workload.family is Family.MEMORY and unit in {"B", "KiB", "MiB", "GiB"}:
        return Dimension.FOOTPRINT
    return _FAMILIES.get(workload.family)


def _figures(
    workloads: Mapping[str, WorkloadRecord], results: Sequence[MetricResult], platform: str
) -> Iterator[_Figure]:
    """The platform's headlines, and its CPU cost of compute. Of a start: the first mark that it has."""
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
        elif result.metric == CPU_COST and workload.family is Family.CPU:
            yield Dimension.CPU_COST, result, platform_result


def _state(platform: PlatformResult) -> State:
    verdict = platform.verdict
    if any(note.kind in NOT_THE_PLATFORMS for note in platform.notes):
        return State.LIMITED
    if verdict.kind is Kind.SLOWER or (verdict.kind is Kind.INCONCLUSIVE and verdict.certain is Side.WORSE):
        return State.WORSE
    if verdict.kind is Kind.FASTER or (verdict.kind is Kind.INCONCLUSIVE and verdict.certain is Side.BETTER):
        return State.BETTER
    if verdict.kind in EQUAL:
        return State.ALIKE
    if platform.lone is not None:
        return State.ONCE
    return State.NONE if platform.overhead is None else State.OPEN


def _standing(kind: Dimension, result: MetricResult, platform: PlatformResult, n_figures: int) -> Standing:
    state = _state(platform)
    felt = 0.0 if state is State.LIMITED else _felt(kind, result, platform)
    return Standing(kind, state, result.workload, result.metric, n_figures, felt)


def _felt(kind: Dimension, result: MetricResult, platform: PlatformResult) -> float:
    if kind in _FELT:
        return 0.0 if platform.amount is None else platform.amount.point / _FELT[kind]
    ratio = platform.ratio.point if platform.ratio else platform.lone.ratio if platform.lone else 1.0
    if platform.verdict.reason is Reason.WHOLE_BLOCKS and platform.totals is not None:  # what the verdict is of
        ratio = ratio_of(platform.totals.point, result.direction)
    times = ratio if result.direction is Direction.LOWER else 1 / ratio
    return _WEIGHTS[kind] * math.log2(times)


#: What stands for a dimension: what is worse, before what nobody knows, before what is alike or better.
_BEFORE = (State.WORSE, State.OPEN, State.ONCE, State.ALIKE, State.BETTER, State.NONE, State.LIMITED)


def _worst(figures: Sequence[_Figure]) -> Standing | None:
    """The figure that stands for a dimension: one whose client or disk was the limit only where all are so."""
    standing_for = [figure for figure in figures if _state(figure[2]) is not State.LIMITED] or figures
    standings = [_standing(*figure, len(standing_for)) for figure in standing_for]
    return min(standings, key=lambda standing: (_BEFORE.index(standing.state), -standing.felt), default=None)


def _turns(trials: pl.DataFrame) -> Mapping[tuple[str, str], float]:
    """Seconds of work that a platform's arms took of a block of a workload, on average."""
    means = trials.group_by("workload", "platform").agg(pl.col("turn_s").sum() / pl.col("block").n_unique())
    return {(str(workload), str(platform)): float(seconds) for workload, platform, seconds in means.iter_rows()}


def _settling(
    record: CampaignRecord,
    unsure: Sequence[tuple[Standing, PlatformResult]],
    turns: Mapping[tuple[str, str], float],
    platform: str,
) -> Settling | None:
    """By the blocks that the widths ask for, and the turns of these arms so far."""
    margins = {workload.name: workload.margin for workload in record.workloads}
    blocks: dict[str, int] = {}
    for standing, result in unsure:
        needed = FIRST_BLOCKS if standing.state is State.ONCE else _blocks(result, margins[standing.workload])
        if needed:
            blocks[standing.workload] = max(needed, blocks.get(standing.workload, 0))
    if not blocks:
        return None
    starts = [start.name for start in record.workloads if start.mode is Mode.START]

    def seconds(chosen: Sequence[str]) -> float:
        most = max((blocks[name] for name in chosen), default=0)
        took = {name: blocks[name] for name in chosen} | dict.fromkeys(starts, most)  # every block starts its instances
        arms = (record.baseline, platform)
        return sum(count * turns.get((name, arm), 0.0) for name, count in took.items() for arm in arms)

    chosen: list[str] = []
    for name in sorted(blocks, key=lambda name: seconds([name])):
        if seconds([*chosen, name]) <= MAX_CAMPAIGN_S:
            chosen.append(name)
    near = [name for name in blocks if name in chosen]
    far = [name for name in blocks if name not in chosen]
    most = max((blocks[name] for name in near or far), default=0)
    return Settling(tuple(near), most, seconds(near), tuple(far), seconds(far))


def _blocks(platform: PlatformResult, margin: float) -> int:
    """How many blocks would make an open figure narrow enough, by the stopping rule; 0: nobody can predict it."""
    verdict = platform.verdict
    if verdict.kind is not Kind.INCONCLUSIVE or verdict.basis is None or platform.n_blocks < MIN_BLOCKS:
        return 0
    looks = [look for look in (verdict.basis.typical, verdict.basis.totals) if look is not None]
    rows = [Row(look.point, look.half_width, platform.n_blocks) for look in looks]
    missing = max(row.missing(margin / 2, margin) for row in rows)
    return platform.n_blocks + missing if missing else 0
