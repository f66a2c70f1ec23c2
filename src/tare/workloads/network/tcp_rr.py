"""Requests and answers over TCP, one at a time, from the client's side: on one connection, and with one for each.

TCP loses nothing: a connection that is refused or reset, or that is silent for 5 s once it is made, ends the trial
with that as its reason.

What netperf calls TCP_RR and TCP_CRR (Giallorenzo 2021, Related Work, has others' figures of the kind); here commands
of the agent's ask and answer (`exchange` says why). `tcp-rr` is the cost of a small message each way, `tcp-crr` that
of a connection with one request: three packets to open it, the request, the answer, and its end, which the server
begins, as a web server without keep-alive does. So it is the server's side that waits in TIME_WAIT, and the client
does not run out of ports. An instance without an agent is asked on one connection, if it has an echo service.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.model import Family
from tare.workloads.base import Completed, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.network import exchange

#: The name of the echo service that an instance without an agent may have.
SERVICE = "tcp-echo"


class TcpRr(RunWorkload):
    """Parameters: ``time_s`` in seconds, ``warmup_s`` before it, and the ``size`` of request and answer in bytes."""

    name = "tcp-rr"
    title = "TCP requests and answers, one at a time, on one connection"
    family = Family.NETWORK
    metrics = exchange.METRICS
    work_unit = "request"
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"time_s": 0.5, "warmup_s": 0.1, "size": 64},
        "full": {"time_s": 10.0, "warmup_s": 1.0, "size": 64},
    }

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        return exchange.plan(self.name, params, around, "tcp", SERVICE)

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        return exchange.read(params, results)


class TcpCrr(TcpRr):
    """Parameters: as of one connection. What is timed begins before the connection and ends with its end."""

    name = "tcp-crr"
    title = "TCP requests and answers, one at a time, a connection for each"

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        return exchange.plan(self.name, params, around, "tcp-each")


WORKLOADS = (TcpRr(), TcpCrr())
