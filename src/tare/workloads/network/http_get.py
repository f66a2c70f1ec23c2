"""Pages asked for over HTTP, one at a time and a connection for each, from the client's side.

For guests that answer nothing else, as many unikernels do, and for what stands in front of every web service: three
packets to open the connection, the request, the page, and its end, which the server begins (HTTP/1.0). An instance with
an agent serves a page by that; one without is asked for its own, whose size and contents are its own, so
such figures compare platforms only where they serve the same page. What is timed ends when the page is whole: by its
Content-Length, or else by the connection's end. An answer that is an error ends the trial with its first line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.model import Family
from tare.workloads.base import Completed, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.network import exchange

#: The name of the service that an instance without an agent may have.
SERVICE = "http"


class HttpGet(RunWorkload):
    """Parameters: ``time_s`` in seconds, ``warmup_s`` before it, and the ``size`` of the agent's page in bytes."""

    name = "http-get"
    title = "pages over HTTP, one at a time, a connection for each"
    family = Family.NETWORK
    metrics = exchange.METRICS
    work_unit = "page"
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"time_s": 0.5, "warmup_s": 0.1, "size": 1024},
        "full": {"time_s": 10.0, "warmup_s": 1.0, "size": 1024},
    }

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        return exchange.plan(self.name, params, around, "http", SERVICE, (around.http_path,))

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        return exchange.read(params, results)


WORKLOAD = HttpGet()
