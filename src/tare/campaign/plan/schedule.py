"""The order of starts and trials in a block, as pure data from the campaign's seed (randomised complete blocks)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tare.model import Arm, Design, Mode, TrialKey
from tare.workloads.base import RunWorkload, StartWorkload, Workload


@dataclass(frozen=True, slots=True)
class Stage:
    """One workload of a block, with the order of the arms."""

    workload: str
    mode: Mode
    order: tuple[Arm, ...]
    #: for slices, and for runs in rounds: the order of the arms in each round; otherwise empty
    rounds: tuple[tuple[Arm, ...], ...] = ()
    #: the arms of a round run at the same time
    at_once: bool = False
    #: with ``at_once``: each arm is pinned to a CPU of its own, the first to the first; False: all may use all CPUs
    own_cpus: bool = True
    #: every trial has an instance of its own, and no other instance of the campaign runs meanwhile
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class BlockSchedule:
    """The order of a block: first the starts (trials themselves where a workload measures them), then the stages."""

    block: int
    launch_order: tuple[Arm, ...]
    stages: tuple[Stage, ...]

    def trials(self) -> list[TrialKey]:
        """All trials of the block, in order."""
        return [TrialKey(self.block, stage.workload, arm) for stage in self.stages for arm in stage.order]


def schedule_block(
    seed: int,
    block: int,
    arms: Sequence[Arm],
    workloads: Sequence[tuple[Workload, int]],
    design: Design = Design.BLOCKS,
    *,
    in_order: bool = False,
    takes_part: Callable[[Workload, Arm], bool] | None = None,
) -> BlockSchedule:
    """The schedule of one block: the same for the same arguments, whatever ran before.

    ``workloads``: each with its number of rounds (0: one run of each arm). ``in_order``: they run in that order, as
    a study did, and not in a random one. ``takes_part``: whether an arm runs a workload; None: all run all. An arm that
    runs no other workload of the block is not started for the sake of its start.
    """
    # A random generator for each block: a resumed campaign draws the same orders without those of earlier blocks.
    generator = random.Random(f"tare/{seed}/{block}")
    runs = takes_part or (lambda workload, arm: True)  # noqa: ARG005 (the signature is the parameter's)
    work = [workload for workload, _ in workloads if not _is_launch(workload)] or [
        workload for workload, _ in workloads
    ]
    launched = [arm for arm in arms if any(runs(workload, arm) for workload in work)]
    launch_order = _shuffled(generator, launched)
    duet = design is Design.DUET
    stages = [
        _stage(
            generator,
            workload,
            rounds,
            [arm for arm in launched if runs(workload, arm)],
            tuple(arm for arm in launch_order if runs(workload, arm)),
            duet=duet,
        )
        for workload, rounds in workloads
    ]
    starts = [stage for stage in stages if stage.mode is Mode.START and not stage.fresh]
    rest = [stage for stage in stages if stage not in starts]
    if not in_order:
        generator.shuffle(rest)
    # Last, so that the block's own instances need not be started again.
    rest.sort(key=lambda stage: stage.fresh)
    return BlockSchedule(block, launch_order, (*starts, *rest))


def _is_launch(workload: Workload) -> bool:
    """Return True if the start of a block's instances is itself the workload."""
    return isinstance(workload, StartWorkload) and not workload.cold


def _stage(
    generator: random.Random,
    workload: Workload,
    rounds: int,
    arms: Sequence[Arm],
    launch_order: tuple[Arm, ...],
    *,
    duet: bool,
) -> Stage:
    if _is_launch(workload):
        return Stage(workload.name, workload.mode, launch_order)
    order = _shuffled(generator, arms)
    if workload.mode in {Mode.START, Mode.APART}:
        return Stage(workload.name, workload.mode, order, fresh=True)
    if workload.mode is Mode.RUN:
        fresh = isinstance(workload, RunWorkload) and workload.fresh
        return Stage(workload.name, workload.mode, order, _turns(generator, arms, rounds), fresh=fresh)
    if duet:
        return Stage(workload.name, workload.mode, order, _pairs(generator, arms, rounds), at_once=True)
    return Stage(workload.name, workload.mode, order, _turns(generator, arms, rounds))


def _turns(generator: random.Random, arms: Sequence[Arm], rounds: int) -> tuple[tuple[Arm, ...], ...]:
    return tuple(_shuffled(generator, arms) for _ in range(rounds))


def _pairs(generator: random.Random, arms: Sequence[Arm], rounds: int) -> tuple[tuple[Arm, ...], ...]:
    """Pairs of every arm with the first, the baseline's, in each round; which has which CPU is drawn for each pair."""
    return tuple(
        _shuffled(generator, (arms[0], partner)) for _ in range(rounds) for partner in _shuffled(generator, arms[1:])
    )


def _shuffled(generator: random.Random, arms: Sequence[Arm]) -> tuple[Arm, ...]:
    return tuple(generator.sample(list(arms), len(arms)))
