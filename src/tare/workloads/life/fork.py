"""Copies of one prepared instance that has 64 MiB of memory in use: 1, 4, 16 at one instant, from its snapshot.

``each-N``: from the instant until a copy has run a first command, the median; ``memory-N``: what the host gives for
each, once all have read their memory again, what is shared split between them; ``shared-N``: how much less that is than
for one alone, so what copies share with each other. Each copy is checked to have the memory of the instance.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from tare.errors import ParseError
from tare.model import Direction, Metric
from tare.workloads.apart import Copies, ForkWorkload
from tare.workloads.base import Outcome, Params
from tare.workloads.life.programs import remembers


def _metrics(counts: Iterable[int]) -> Iterable[Metric]:
    for count in counts:
        of = f"of {count}" if count > 1 else "alone"
        yield Metric(f"each-{count}", "ms", Direction.LOWER, f"until a copy's first command has returned, {of}")
        yield Metric(f"memory-{count}", "MiB", Direction.LOWER, f"the host's memory for each copy, {of}")
        if count > 1:
            yield Metric(f"shared-{count}", "%", Direction.HIGHER, f"what a copy takes less than one alone, {of}")
        yield Metric(f"ok-{count}", "%", Direction.HIGHER, f"share of copies that came up, {of}")


class Fork(ForkWorkload):
    """Parameters: ``most``, ``memory_mib``."""

    name = "fork"
    title = "copies of one prepared instance, 1, 4, 16 at one instant"
    metrics = tuple(_metrics(ForkWorkload.COUNTS))
    work_unit = "copy"
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"most": 4, "memory_mib": 384},
        "full": {"most": 16, "memory_mib": 384},
    }
    read_mib = 64
    payload = remembers(64, 64)

    def read(self, copies: Sequence[Copies]) -> Outcome:
        figures: dict[str, float] = {}
        unseen: dict[str, str] = {}
        for tried in copies:
            starts = tried.started.starts
            count, times = len(starts), [start.wall_ns / 1e6 for start in starts if start.wall_ns is not None]
            figures[f"ok-{count}"] = 100 * len(times) / count
            if not times:
                unseen[f"each-{count}"] = f"no copy came up: {starts[0].reason}"
                continue
            figures[f"each-{count}"] = statistics.median(times)
            figures[f"memory-{count}"] = tried.pss_bytes / len(times) / 2**20
            if count > 1 and "memory-1" in figures:
                figures[f"shared-{count}"] = 100 * (1 - figures[f"memory-{count}"] / figures["memory-1"])
        if not any(name.startswith("each-") for name in figures):
            raise ParseError(f"no copy came up: {copies[0].started.starts[0].reason}")
        return Outcome(figures, sum(len(tried.started.starts) for tried in copies), unseen=unseen)


WORKLOAD = Fork()
