"""iperf3 from the client to 1, 2, 4 ... instances at once: the throughput of each, and of all together.

Anjali 2020, figure 8: TCP in up to ten instances, where gVisor's aggregate still grows when that of all others no
longer does. A server runs in every instance; the clients, one for each instance, begin at one instant and share the
client's CPUs, which also limit the total. The figure is the receiver's, as in `iperf3-tcp`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.errors import ParseError
from tare.model import Direction
from tare.workloads.apart import RunDensity, density_metrics
from tare.workloads.base import Completed, Outcome, Params, RunPlan, Surroundings
from tare.workloads.network import iperf3
from tare.workloads.network.iperf3_tcp import Iperf3Tcp

FORTH = "to-instance"


class _Forth(Iperf3Tcp):
    """The direction to the instance only: a second test after the first would not begin at one instant."""

    name = "density-network"

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        both_ways = super().plan(params, around)
        return dataclasses.replace(both_ways, measures=both_ways.measures[:1])

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        if len(results) != 1:
            raise ParseError(f"one run of iperf3 was planned, {len(results)} results came")
        done = iperf3.read(results[0], params, reverse=False)
        return Outcome({FORTH: done.end.sum_received.bits_per_second / 1e6}, work=done.moved_bytes / 2**20)


class DensityNetwork(RunDensity):
    """Parameters: ``most``, and those of `iperf3-tcp`."""

    name = "density-network"
    title = "iperf3: a TCP stream to each of 1, 2, 4 ... instances at once"
    metrics = density_metrics("Mbit/s", Direction.HIGHER, "TCP to an instance", "TCP to all instances")
    work_unit = "MiB"
    packages = ("iperf3",)
    inner = _Forth()
    metric = FORTH
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"most": 4, "time_s": 1, "omit_s": 0},
        "full": {"most": 8, "time_s": 10, "omit_s": 2},
    }


WORKLOAD = DensityNetwork()
