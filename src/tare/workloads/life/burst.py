"""Starts that are issued together: 1, 2, 4 ... 64 at one instant, or one after the other at a stated rate.

A start is the platform's own commands, as its users type them, up to a first command that has run inside: create, start
and exec. Root, network and bundle, which users of bare runtimes make by hand, are made before; the commands wait, and
nothing of tare's own is started meanwhile. A start that fails counts in ``ok`` and has no time.

``knee``: the number from which the median start takes twice as long as alone, between two of the sizes on logarithmic
axes.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from tare.errors import ParseError
from tare.model import Direction, Metric
from tare.workloads.apart import Burst, BurstWorkload
from tare.workloads.base import Outcome, Params
from tare.workloads.life.operation_tails import tails
from tare.workloads.life.programs import WAITS

#: A start that takes so many times as long as alone is beyond the knee.
SLOWER = 2.0


def _metrics(counts: Iterable[int]) -> Iterable[Metric]:
    yield Metric("knee", "starts", Direction.HIGHER, "starts from which one takes twice as long as alone")
    for count in counts:
        lower, of = Direction.LOWER, f"of {count} starts"
        yield Metric(
            f"p50-{count}", "ms", lower, f"until the first command has returned, median {of}", headline=count == 4
        )
        yield Metric(f"p95-{count}", "ms", lower, f"the same: 95 of 100 were faster, {of}")
        yield Metric(f"p99-{count}", "ms", lower, f"the same: 99 of 100 were faster, {of}")
        yield Metric(f"ok-{count}", "%", Direction.HIGHER, f"share that succeeded {of}")
        yield Metric(f"total-{count}", "ms", lower, f"until the last one's first command has returned, {of}")
        yield Metric(f"cpu-{count}", "s", lower, f"CPU time of all, with the daemons', {of}")


class AtOnce(BurstWorkload):
    """Parameters: ``most``, ``starts``, ``memory_mib``, ``time_s``."""

    name = "burst"
    title = "1, 2, 4 ... starts at one instant, each up to its first command"
    metrics = tuple(_metrics(BurstWorkload.COUNTS))
    work_unit = "start"
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"most": 8, "starts": 2, "memory_mib": 192, "time_s": 20},
        "full": {"most": 64, "starts": 32, "memory_mib": 192, "time_s": 600},
    }
    payload = WAITS

    def gap_s(self, params: Params) -> float:
        """None: all are issued at one instant."""
        return 0.0

    def read(self, bursts: Sequence[Burst]) -> Outcome:
        by_count: dict[int, list[Burst]] = {}
        for burst in bursts:
            by_count.setdefault(len(burst.starts), []).append(burst)
        figures: dict[str, float] = {}
        unseen: dict[str, str] = {}
        for count, of_count in by_count.items():
            starts = [start for burst in of_count for start in burst.starts]
            times = [start.wall_ns / 1e6 for start in starts if start.wall_ns is not None]
            figures[f"ok-{count}"] = 100 * len(times) / len(starts)
            figures[f"cpu-{count}"] = statistics.fmean(burst.cpu_ns / 1e9 for burst in of_count)
            if not times:
                reason = next(start.reason for start in starts)
                unseen |= dict.fromkeys((f"p50-{count}", f"total-{count}"), f"no start succeeded: {reason}")
                continue
            figures[f"p50-{count}"] = statistics.median(times)
            figures[f"total-{count}"] = statistics.fmean(burst.total_ns / 1e6 for burst in of_count)
            seen, lacking = tails(times)
            figures |= {f"{name}-{count}": value for name, value in seen.items()}
            unseen |= {f"{name}-{count}": why for name, why in lacking.items()}
        if not any(name.startswith("p50-") for name in figures):
            raise ParseError(f"no start succeeded: {bursts[0].starts[0].reason}")
        medians = {count: figures[f"p50-{count}"] for count in by_count if f"p50-{count}" in figures}
        found = knee(medians)
        if found is None:
            unseen["knee"] = f"none up to {max(by_count)}"
        else:
            figures["knee"] = found
        return Outcome(figures, sum(len(burst.starts) for burst in bursts), unseen=unseen)


class Staggered(AtOnce):
    """Parameters: ``most``, ``starts``, ``memory_mib``, ``time_s``, and ``rate``: starts a second."""

    name = "burst-staggered"
    title = "1, 2, 4 ... starts at a stated rate, each up to its first command"
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"most": 8, "starts": 2, "memory_mib": 192, "time_s": 20, "rate": 5},
        "full": {"most": 64, "starts": 32, "memory_mib": 192, "time_s": 600, "rate": 5},
    }

    def gap_s(self, params: Params) -> float:
        """Between two starts, as the rate says."""
        return 1 / float(params["rate"])


def knee(medians: Mapping[int, float]) -> float | None:
    """Return the number of starts from which the median is `SLOWER` times that of one; None where it never is."""
    counts = sorted(medians)
    if not counts or counts[0] != 1:
        return None
    limit = SLOWER * medians[1]
    for below, above in itertools.pairwise(counts):
        low, high = medians[below], medians[above]
        if low < limit <= high:
            share = math.log(limit / low) / math.log(high / low)
            return float(below * (above / below) ** share)
    return None


WORKLOADS = (AtOnce(), Staggered())
