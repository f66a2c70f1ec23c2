"""Verdicts on simulated platforms whose truth is known: stalls, rare modes, failures, coarse metrics, no difference.

"Before" is the rule until 2026-11-22: Student's interval of the blocks' Hodges-Lehmann estimates alone (`before`).
"After" is what `tare report` says. Every table has its own seed.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tare.analysis.evidence import evidence
from tare.analysis.hidden import Trials
from tare.analysis.quality.slow_rounds import stalls
from tare.analysis.rule import LogIntervals, decide, intervals_of
from tare.analysis.verdicts import Question, VerdictKind
from tare.estimates.grid import Grid, block_ratios, total_ratios
from tare.estimates.intervals import t_interval
from tare.model import Arm, Design, Direction

Floats = NDArray[np.float64]
ARMS = (Arm("native"), Arm("native", 1), Arm("docker"))
CAMPAIGNS = 400
ALARMS = (VerdictKind.SLOWER, VerdictKind.FASTER)


def grid_of(speeds: Floats) -> Grid:
    """Rates of the two native arms and of the platform, by block and round."""
    nothing = np.zeros(len(ARMS), dtype=np.int64)
    return Grid(ARMS, np.arange(speeds.shape[1]), speeds, nothing, nothing + speeds[0].size)


def before(question: Question, grid: Grid) -> VerdictKind:
    """The former rule."""
    logs = block_ratios(grid, 2, [0, 1]).logs
    return decide(question, LogIntervals(*(t_interval(logs, level) for level in (0.95, 0.90, 0.99))))


def after(question: Question, grid: Grid, trials: Trials | None = None) -> VerdictKind:
    """The rule that ships."""
    comparison = evidence(grid, 2, [0, 1], Design.BLOCKS, trials)
    assert comparison.looks is not None
    return decide(question, *intervals_of(comparison.looks), comparison.hidden)


def percents(kinds: Counter[VerdictKind], *chosen: VerdictKind) -> str:
    """How many of 100 were of these kinds."""
    return f"{100 * sum(kinds[kind] for kind in chosen) / kinds.total():.1f}"


def noise(rng: np.random.Generator, blocks: int, rounds: int, block: float = 0.002, sample: float = 0.004) -> Floats:
    """Logs of speed: instances that differ, and rounds that do."""
    shape = (len(ARMS), blocks, rounds)
    return rng.normal(0, block, (*shape[:2], 1)) + rng.normal(0, sample, shape)


def stalling() -> None:
    """Docker runs some of its rounds at half speed; in the last rows all arms do."""
    rng, question = np.random.default_rng(10), Question("rate", Direction.HIGHER, 0.01)
    print("\n## 10. Stalls: rounds at half speed, 12 blocks, margin 1 %\n")
    print("| rounds | slow | whose | rate lost | median Op | equivalent before | after | slower after | stalls said |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for rounds, share, everybody in ((8, 0.05, 0), (20, 0.1, 0), (20, 0.2, 0), (20, 0.1, 1), (20, 0.02, 1)):
        old: Counter[VerdictKind] = Counter()
        new: Counter[VerdictKind] = Counter()
        stalled, lost, typical = 0, [], []
        for _ in range(CAMPAIGNS // 2):
            slow = rng.random((len(ARMS), 12, rounds)) < share
            slow[:2] &= bool(everybody)
            grid = grid_of(np.exp(noise(rng, 12, rounds) + np.where(slow, np.log(0.5), 0.0)))
            comparison = evidence(grid, 2, [0, 1], Design.BLOCKS)
            old[before(question, grid)] += 1
            new[after(question, grid)] += 1
            stalled += stalls(grid, 2, [0, 1], question, comparison) is not None
            lost.append(-float(np.expm1(total_ratios(grid, 2, [0, 1]).logs.mean())))
            typical.append(-float(np.expm1(block_ratios(grid, 2, [0, 1]).logs.mean())))
        print(
            f"| {rounds} | {share:.0%} | {'all' if everybody else 'docker'} | {np.mean(lost):.1%} "
            f"| {np.median(typical):.2%} "
            f"| {percents(old, VerdictKind.EQUIVALENT)} | {percents(new, VerdictKind.EQUIVALENT, VerdictKind.TYPICAL)} "
            f"| {percents(new, VerdictKind.SLOWER)} | {100 * stalled / new.total():.1f} |"
        )


def rare() -> None:
    """One figure a block; some of docker's are at half speed."""
    rng, question = np.random.default_rng(11), Question("throughput", Direction.HIGHER, 0.05)
    print("\n## 11. Rare modes: one run a block, margin 5 %, noise 1 %; of 100\n")
    print("| share of runs at half speed | blocks | equivalent before | equivalent after | typical after |")
    print("| --- | --- | --- | --- | --- |")
    for share in (0.15, 0.10, 0.0):
        for blocks in (3, 6, 10, 30, 40):
            old: Counter[VerdictKind] = Counter()
            new: Counter[VerdictKind] = Counter()
            for _ in range(CAMPAIGNS):
                logs = noise(rng, blocks, 1, 0.01, 0.0)
                logs[2] += np.where(rng.random((blocks, 1)) < share, np.log(0.5), 0.0)
                old[before(question, grid_of(np.exp(logs)))] += 1
                new[after(question, grid_of(np.exp(logs)))] += 1
            print(
                f"| {share:.0%} | {blocks} | {percents(old, VerdictKind.EQUIVALENT)} "
                f"| {percents(new, VerdictKind.EQUIVALENT)} "
                f"| {percents(new, VerdictKind.TYPICAL)} |"
            )
    print(
        "\nSlices, margin 1 %, quiet (instances 0.2 %, rounds 0.4 %); the slow thing is a round or a whole instance:\n"
    )
    print("| rounds | blocks | slow | equivalent before | equivalent after | typical after |")
    print("| --- | --- | --- | --- | --- | --- |")
    sliced = Question("rate", Direction.HIGHER, 0.01)
    for rounds, blocks in ((8, 10), (8, 30), (20, 12), (40, 12)):
        for slow in ("nothing", "2.5 % of rounds", "15 % of instances"):
            old, new = Counter(), Counter()
            for _ in range(CAMPAIGNS // 4):
                logs = noise(rng, blocks, rounds)
                if slow != "nothing":
                    share, draws = (0.025, rounds) if slow.endswith("rounds") else (0.15, 1)
                    logs[2] += np.where(rng.random((blocks, draws)) < share, np.log(0.5), 0.0)
                old[before(sliced, grid_of(np.exp(logs)))] += 1
                new[after(sliced, grid_of(np.exp(logs)))] += 1
            print(
                f"| {rounds} | {blocks} | {slow} | {percents(old, VerdictKind.EQUIVALENT)} "
                f"| {percents(new, VerdictKind.EQUIVALENT)} "
                f"| {percents(new, VerdictKind.TYPICAL)} |"
            )


def failing() -> None:
    """Slow runs end in a time limit, and leave no figure."""
    rng, question = np.random.default_rng(12), Question("throughput", Direction.HIGHER, 0.05)
    print("\n## 12. Failures: runs that are 40 % slower fail; 12 blocks, one run each, margin 5 %; of 100\n")
    print("| share of runs that are slow | any verdict before | any after | equivalent or typical after |")
    print("| --- | --- | --- | --- |")
    for share in (0.42, 0.1, 0.05):
        old: Counter[VerdictKind] = Counter()
        new: Counter[VerdictKind] = Counter()
        for _ in range(CAMPAIGNS):
            speeds = np.exp(noise(rng, 12, 1, 0.01, 0.0))
            slow = rng.random(12) < share
            speeds[2, slow] = np.nan
            if (~slow).sum() < 2:
                continue
            trials = Trials(int(slow.sum()), 12, 0, 24)
            old[before(question, grid_of(speeds))] += 1
            new[after(question, grid_of(speeds), trials)] += 1
        verdicts = (*ALARMS, VerdictKind.EQUIVALENT, VerdictKind.TYPICAL)
        print(
            f"| {share:.0%} | {percents(old, *verdicts)} | {percents(new, *verdicts)} "
            f"| {percents(new, VerdictKind.EQUIVALENT, VerdictKind.TYPICAL)} |"
        )


def coarse() -> None:
    """Figures in steps."""
    rng, question = np.random.default_rng(14), Question("time", Direction.LOWER, 0.05)
    print("\n## 14. Steps: equal platforms, noise of 0.4 steps, a step is 5 % of the figure; of 100\n")
    print("| blocks | false slower or faster before | after |")
    print("| --- | --- | --- |")
    for blocks in (2, 3, 6, 10):
        old: Counter[VerdictKind] = Counter()
        new: Counter[VerdictKind] = Counter()
        for _ in range(5 * CAMPAIGNS if blocks < 10 else CAMPAIGNS):
            grid = grid_of(np.round(20.3 + rng.normal(0, 0.4, (len(ARMS), blocks, 1))))
            old[before(question, grid)] += 1
            new[after(question, grid)] += 1
        print(f"| {blocks} | {percents(old, *ALARMS)} | {percents(new, *ALARMS)} |")
    for blocks in (2, 7, 8):
        grid = grid_of(np.repeat([41.0, 41.0, 250.0], blocks).reshape(3, blocks, 1))
        verdicts = f"before {before(question, grid)}, after {after(question, grid)}"
        print(f"\nThe same figures in {blocks} blocks (250 against 41): {verdicts}")


def _own_drift(rng: np.random.Generator, blocks: int, rounds: int) -> Floats:
    logs = noise(rng, blocks, rounds, 0.0)
    for arm in range(len(ARMS)):
        at = rng.normal(0, 0.02)
        for block in range(blocks):
            at = 0.6 * at + rng.normal(0, 0.02 * 0.8)
            logs[arm, block] += at
    return logs


def _unsteady(rng: np.random.Generator, blocks: int, rounds: int) -> Floats:
    logs = noise(rng, blocks, rounds)
    logs[2] *= 5
    return logs


WORLDS: dict[str, Callable[[np.random.Generator, int, int], Floats]] = {
    "normal": lambda rng, n, r: noise(rng, n, r, 0.02, 0.02),
    "far above the margin": lambda rng, n, r: noise(rng, n, r, 0.0, 0.3),
    "t3": lambda rng, n, r: 0.02 * rng.standard_t(3, (3, n, r)),
    "lognormal": lambda rng, n, r: -0.02 * np.exp(rng.normal(0, 1, (3, n, r))),
    "lognormal, far above": lambda rng, n, r: -0.2 * np.exp(rng.normal(0, 1, (3, n, r))),
    "shared drift": lambda rng, n, r: noise(rng, n, r, 0.02) + np.cumsum(rng.normal(0, 0.05, (1, n, 1)), axis=1),
    "own drift, AR(1) 0.6": _own_drift,
    "bimodal": lambda rng, n, r: noise(rng, n, r) + np.where(rng.random((3, n, r)) < 0.15, np.log(0.5), 0.0),
    "platform SD x 5": _unsteady,
}


def silent() -> None:
    """Native and platform equal: does anything get worse?"""
    print("\n## No difference, margin 1 %; of 100\n")
    print(
        "| noise | rounds | blocks | false before | after | intervals hold: typical | totals | equal before | after |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    question = Question("rate", Direction.HIGHER, 0.01)
    for name, world in WORLDS.items():
        for rounds, blocks in ((1, 6), (8, 3), (8, 6), (8, 9), (8, 30)):
            rng = np.random.default_rng(15)
            old: Counter[VerdictKind] = Counter()
            new: Counter[VerdictKind] = Counter()
            held = np.zeros(2)
            for _ in range(2 * CAMPAIGNS if blocks < 10 else CAMPAIGNS // 2):
                grid = grid_of(np.exp(world(rng, blocks, rounds)))
                comparison = evidence(grid, 2, [0, 1], Design.BLOCKS)
                assert comparison.looks is not None
                in_rounds, in_blocks = intervals_of(comparison.looks)
                old[before(question, grid)] += 1
                new[decide(question, in_rounds, in_blocks, comparison.hidden)] += 1
                held += [look.wide.low <= 0 <= look.wide.high for look in (in_rounds, in_blocks or in_rounds)]
            typical, totals = 100 * held / new.total()
            print(
                f"| {name} | {rounds} | {blocks} | {percents(old, *ALARMS)} | {percents(new, *ALARMS)} | {typical:.1f} "
                f"| {totals:.1f} | {percents(old, VerdictKind.EQUIVALENT)} "
                f"| {percents(new, VerdictKind.EQUIVALENT, VerdictKind.TYPICAL)} |",
                flush=True,
            )


def main() -> None:
    """Print all tables."""
    for table in (stalling, rare, failing, coarse, silent):
        table()


if __name__ == "__main__":
    sys.exit(main())
