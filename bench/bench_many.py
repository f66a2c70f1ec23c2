"""Simulations of the rules for many rows at once, each beside what it replaced: seeded, a minute or two, no sandbox.

    .venv/bin/python bench/bench_many.py

When to stop and which workloads get the time, how many blocks a half-width takes, verdicts of whole reports, pairs with
missing figures, and blocks that depend on each other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import signal, stats

from tare.analysis.comparisons.many import all_pairs
from tare.analysis.comparisons.multiplicity import Multiplicity, corrected
from tare.analysis.results import Description, MetricResult, PlatformResult, TrialCounts
from tare.analysis.rule import LogIntervals, decide, intervals_of, judge
from tare.analysis.verdicts import Question, VerdictKind
from tare.campaign.plan.stopping import LOOK_EVERY, LOOK_FROM, is_look, still_wanted
from tare.estimates.dependence import dependence
from tare.estimates.grid import BlockRatios
from tare.estimates.intervals import Interval, t_interval
from tare.estimates.looks import Look, Looks
from tare.estimates.overhead import overhead
from tare.estimates.widths import WidthRow, WorkloadWidths, blocks_needed
from tare.model import Direction

Floats = NDArray[np.float64]

MARGIN = 0.01
LOOKS = range(LOOK_FROM, 101, LOOK_EVERY)


def _intervals(logs: Floats) -> LogIntervals:
    return LogIntervals(*(t_interval(logs, level) for level in (0.95, 0.90, 0.99)))


def _question(margin: float = MARGIN) -> Question:
    return Question("m", Direction.LOWER, margin)


# --- when to stop ------------------------------------------------------------------------------------------


def stopping(campaigns: int = 600) -> None:
    """Coverage and false verdicts where a row ends by each rule, looked at every five blocks from the tenth."""
    print("\nWhen a row ends: coverage of its 95 % interval, false verdicts, blocks (worst and mean over 12 truths)")
    for name in ("width of the log ratio", "and clear of the margin", "at the first verdict"):
        covered, false, blocks = [], [], []
        for deviation in (0.01, 0.05, 0.1):
            for effect in (0.0, math.log1p(MARGIN), 0.03, 0.5):
                ended = list(_ended(name, effect, deviation, campaigns))
                covered.append(np.mean([low <= effect <= high for low, high, _, _ in ended]))
                if effect < MARGIN:
                    false.append(np.mean([kind in {VerdictKind.SLOWER, VerdictKind.FASTER} for _, _, kind, _ in ended]))
                blocks.append(np.mean([n for *_, n in ended]))
        print(
            f"  {name:<26} coverage {min(covered):.1%} ({np.mean(covered):.1%}),"
            f" false {max(false):.1%} ({np.mean(false):.1%}), {np.mean(blocks):.0f} blocks"
        )


def _ended(
    rule: str, effect: float, deviation: float, campaigns: int
) -> Iterator[tuple[float, float, VerdictKind, int]]:
    rng = np.random.default_rng(1)
    for _ in range(campaigns):
        logs = rng.normal(effect, deviation, LOOKS[-1])
        for n_blocks in LOOKS:
            wide = t_interval(logs[:n_blocks], 0.95)
            row = WidthRow(wide.point, wide.half_width, n_blocks)
            if rule == "width of the log ratio":
                ends = row.half_width <= math.log1p(MARGIN / 2)
            elif rule == "and clear of the margin":
                ends = row.half_width <= row.goal(MARGIN / 2, MARGIN)
            else:
                ends = decide(_question(), _intervals(logs[:n_blocks])) is not VerdictKind.INCONCLUSIVE
            if ends:
                break
        yield wide.low, wide.high, decide(_question(), _intervals(logs[:n_blocks])), n_blocks


# --- who gets the time -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Load:
    """A workload of an invented campaign: seconds of a block, and by platform the true log ratio and a block's SD."""

    seconds: float
    margin: float
    platforms: Sequence[tuple[float, float]]


LOADS = {
    "startup": Load(4.0, 0.05, [(0.05, 0.05), (math.log(5), 0.1), (math.log(66), 0.12)]),
    "cpu": Load(6.0, 0.01, [(0.0, 0.006), (0.002, 0.006), (0.015, 0.008)]),
    "memory": Load(6.0, 0.02, [(0.0, 0.02), (0.0, 0.02), (0.06, 0.02)]),
    "storage": Load(8.0, 0.05, [(0.0, 0.12), (0.03, 0.12), (0.4, 0.15)]),
    "network": Load(8.0, 0.05, [(0.1, 0.08), (0.05, 0.08), (1.2, 0.1)]),
}


def allocation(campaigns: int = 40, hours: float = 0.5) -> None:
    """Blocks and decided rows by workload, of campaigns of native and three platforms."""
    print(f"\nWho gets the time: blocks by workload in {60 * hours:.0f} minutes, rows with a verdict of 15")
    for name, choose in (("before", _chosen_before), ("after", _chosen)):
        blocks: Counter[str] = Counter()
        decided = 0
        for seed in range(campaigns):
            logs = _campaign(choose, 3600 * hours, np.random.default_rng(seed))
            for load, rows in logs.items():
                blocks[load] += len(rows[0])
                question = _question(LOADS[load].margin)
                decided += sum(
                    decide(question, _intervals(np.array(row))) is not VerdictKind.INCONCLUSIVE for row in rows
                )
        means = ", ".join(f"{load} {blocks[load] / campaigns:.0f}" for load in LOADS)
        print(f"  {name:<6} {means}; {decided / campaigns:.1f} rows")


def _campaign(choose, budget_s: float, rng: np.random.Generator) -> dict[str, list[list[float]]]:  # type: ignore[no-untyped-def]
    logs: dict[str, list[list[float]]] = {name: [[] for _ in load.platforms] for name, load in LOADS.items()}
    chosen, spent, block = tuple(LOADS), 0.0, 0
    while chosen and spent + sum(LOADS[name].seconds for name in chosen) <= budget_s:
        for name in chosen:
            for row, (effect, deviation) in zip(logs[name], LOADS[name].platforms, strict=True):
                row.append(rng.normal(effect, deviation))
            spent += LOADS[name].seconds
        block += 1
        if is_look(block):
            chosen = choose(logs, budget_s - spent)
    return logs


def _seconds() -> dict[str, float]:
    return {name: load.seconds for name, load in LOADS.items()}


def _chosen(logs: dict[str, list[list[float]]], left_s: float) -> tuple[str, ...]:
    missing = {}
    for name, load in LOADS.items():
        intervals = [t_interval(np.array(row), 0.95) for row in logs[name]]
        so_far = WorkloadWidths(
            tuple(WidthRow(interval.point, interval.half_width, len(logs[name][0])) for interval in intervals)
        )
        missing[name] = so_far.missing(load.margin / 2, load.margin)
    return still_wanted(missing, _seconds(), left_s)


def _chosen_before(logs: dict[str, list[list[float]]], left_s: float) -> tuple[str, ...]:
    """Until 2026-11-22: by the widest overhead, most gain in a second first, and the first alone where none fits."""
    needs = {}
    for name, load in LOADS.items():
        n_blocks = len(logs[name][0])
        half_width = max(overhead(t_interval(np.array(row), 0.95), Direction.LOWER).half_width for row in logs[name])
        excess = half_width / (load.margin / 2)
        if excess > 1:
            needs[name] = (math.ceil(n_blocks * excess**2) - n_blocks, excess / (2 * n_blocks * load.seconds))
    chosen = []
    ranked = sorted(needs, key=lambda name: -needs[name][1])
    for name in ranked:
        takes = needs[name][0] * LOADS[name].seconds
        if takes <= left_s:
            chosen.append(name)
            left_s -= takes
    return tuple(chosen or ranked[:1])


# --- how many blocks ---------------------------------------------------------------------------------------


def needed() -> None:
    """The median answer to what a half-width of 0.5 % takes, where a block's SD is 1 %: 18 blocks."""
    print("\nBlocks needed (18 in truth), median answer after so many")
    rng = np.random.default_rng(2)
    for n_blocks in (2, 3, 5, 6, 10):
        deviations = rng.normal(0, 0.01, (4_000, n_blocks)).std(axis=1, ddof=1)
        half_widths = stats.t.ppf(0.975, n_blocks - 1) * deviations / math.sqrt(n_blocks)
        before = np.median(np.ceil(n_blocks * (half_widths / 0.005) ** 2))
        after = np.median([blocks_needed(half_width, n_blocks, 0.005) for half_width in half_widths.tolist()])
        print(f"  after {n_blocks:>2}: before {before:.0f}, after {after:.0f}")


# --- whole reports -----------------------------------------------------------------------------------------


def reports(campaigns: int = 100) -> None:
    """Of 20 metrics x 10 platforms: reports with a false verdict, by noise; and true doublings that survive."""
    print("\nReports of 200 equal rows: with a false verdict, with one that survives Holm; false ones in all, expected")
    for name, deviations in (
        ("20 %", [0.2] * 20),
        ("0.5 to 20 %", np.geomspace(0.005, 0.2, 20)),
        ("0.3 %", [0.003] * 20),
    ):
        for n_blocks in (3, 6, 10):
            results = [_report(n_blocks, deviations, 0.0, seed) for seed in range(campaigns)]
            different = [result.n_different for result in results]
            sure = [result.n_different_sure for result in results]
            print(
                f"  noise {name:<11} {n_blocks:>2} blocks: {np.mean([count > 0 for count in different]):.2f},"
                f" {np.mean([count > 0 for count in sure]):.2f};"
                f" {np.mean(different):.2f}, {np.mean([result.by_chance for result in results]):.2f}"
            )
    for deviation in (0.1, 0.15):
        surviving = sum(_report(6, [deviation] * 20, math.log(2), seed).n_different_sure for seed in range(20))
        print(f"  true doublings that survive, noise {deviation:.0%}, 6 blocks: {surviving / 400:.1%}")


def _report(n_blocks: int, deviations: Sequence[float] | Floats, effect: float, seed: int) -> Multiplicity:
    rng = np.random.default_rng(seed)
    results = []
    for number, deviation in enumerate(deviations):
        platforms = []
        for at in range(10):
            looks = Looks(Look.over_blocks(rng.normal(0.0 if at else effect, deviation, n_blocks)))
            verdict = judge(_question(), *intervals_of(looks))
            nothing = Description(n_blocks, None, None, None)
            platforms.append(
                PlatformResult(f"p{at}", n_blocks, 0, TrialCounts(), nothing, looks=looks, verdict=verdict)
            )
        results.append(MetricResult("w", f"m{number}", "s", Direction.LOWER, MARGIN, None, tuple(platforms)))
    return corrected(results, {(result.workload, result.metric) for result in results})[1]


# --- pairs with holes --------------------------------------------------------------------------------------


def pairs() -> None:
    """Native against gVisor where docker failed once: how much wider its interval is; and some false pair of six."""
    print("\nPairs where another platform failed once: median half-width against no failure; wrong campaigns")
    rng = np.random.default_rng(3)
    for n_blocks in (4, 5, 6, 7, 10, 20):
        widths, wrong = [], 0
        for _ in range(300):
            values = rng.normal(0, 1, (n_blocks, 1)) + rng.normal(0, 1, (n_blocks, 4))
            holes = values.copy()
            holes[0, 1] = np.nan
            whole, cut, with_holes = (_half(table) for table in (values, holes[1:], holes))
            widths.append((cut / whole, with_holes / whole))
            wrong += any(pair.p <= 0.05 for pair in all_pairs(holes, ["native", "docker", "gvisor", "qemu"]).pairs)
        before, after = np.median(widths, axis=0)
        print(f"  {n_blocks:>2} blocks: before +{before - 1:.0%}, after +{after - 1:.0%}; wrong {wrong / 300:.1%}")


def _half(table: Floats) -> float:
    difference: Interval = all_pairs(table, ["native", "docker", "gvisor", "qemu"]).pairs[1].difference
    return difference.half_width


# --- blocks that depend on each other ----------------------------------------------------------------------


def _blocks(logs: Floats) -> BlockRatios:
    return BlockRatios(np.arange(logs.size), logs, np.zeros(logs.size, dtype=bool), np.full(logs.size, np.nan))


def alike() -> None:
    """How often the note comes, and what intervals cover, of 20 series in one campaign."""
    print("\nBlocks that depend on each other: coverage of 95 % intervals, campaigns with the note, factor told (true)")
    rng = np.random.default_rng(4)
    for correlation in (0.0, 0.3, 0.6):
        for n_blocks in (6, 10, 30):
            covered, noted, factors = 0, 0, []
            for _ in range(60):
                noise = rng.normal(0, 1, (20, n_blocks + 50))
                lines = signal.lfilter([1.0], [1.0, -correlation], noise, axis=1)[:, 50:]
                result = dependence([_blocks(line) for line in lines])
                assert result is not None
                noted += result.is_sure
                factors.append(result.too_narrow)
                covered += sum(abs(line.mean()) <= t_interval(line, 0.95).half_width for line in lines)
            true = math.sqrt((1 + correlation) / (1 - correlation))
            print(
                f"  {correlation:.1f}, {n_blocks:>2} blocks: {covered / 1200:.1%}, {noted / 60:.0%},"
                f" {np.median(factors):.2f} ({true:.2f})"
            )


if __name__ == "__main__":
    stopping()
    allocation()
    needed()
    reports()
    pairs()
    alike()
