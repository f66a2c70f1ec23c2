"""Requests and answers over UDP, one at a time, from the client's side: how many a second, and how long each took.

In an instance with an agent a command of the agent's echoes; one without (a unikernel) echoes by itself, if it has that
service. The client is the same program for all. A request that is lost is waited for a second and counted
as lost, not as slow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.model import Family
from tare.workloads.base import Completed, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.network import exchange

#: The name of the echo service that an instance without an agent may have.
SERVICE = "udp-echo"


class UdpRtt(RunWorkload):
    """Parameters: ``time_s`` in seconds, ``warmup_s`` before it, and the ``size`` of a datagram in bytes."""

    name = "udp-rtt"
    title = "UDP requests and answers, one at a time"
    family = Family.NETWORK
    by_default = True
    metrics = exchange.METRICS
    work_unit = "request"
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"time_s": 0.2, "warmup_s": 0.05, "size": 64, "rounds": 3},
        "full": {"time_s": 10.0, "warmup_s": 1.0, "size": 64, "rounds": 1},
    }

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        return exchange.plan(self.name, params, around, "udp", SERVICE)

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        return exchange.read(params, results)


WORKLOAD = UdpRtt()
