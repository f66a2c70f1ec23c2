"""nginx and Redis at a constant rate, in an open loop: how long a request takes from the instant at which it is due.

`nginx` and `redis` are asked as much as they can do, in a closed loop: a connection asks again once it was answered, so
that a server which stands still is asked nothing meanwhile, and its pause is in few latencies (coordinated omission).
Here the rate is given, and latency is what answers: requests have instants that were drawn beforehand, and their time
counts from then on (`users`). The servers, the file and the values are those of `nginx` and `redis`; the client is the
agent's, as for `site`: wrk2, which has this for HTTP alone, is not maintained, and none of the load tools of Redis
corrects for it.

The rate is one that every platform should keep up with, so that all have the same load; the curve says where one does
not. Its percentiles are then near the time limit.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.errors import ParseError
from tare.model import Direction, Family, Metric
from tare.workloads.applications import load_levels, nginx, redis, serving, steady, users
from tare.workloads.base import Command, Completed, CurveLevel, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.output import text_of

#: Of a user, who never comes anew: connections are kept.
_FOR_GOOD = 1_000_000_000
_QUICK: Params = {"rate": 1000, "users": 50, "time_s": 8, "limit_ms": 2000, "words": 3_000, "seed": 1}


class ConstantRate(RunWorkload):
    """Parameters: ``rate`` of requests a second on ``users`` connections for ``time_s`` whole seconds.

    ``limit_ms``: a request is given up so long after it was due. ``words``: how many keys there are. ``seed``: of all
    that is drawn.
    """

    family = Family.APPLICATION
    work_unit = "request"
    metrics = (
        users.P99,
        users.MEDIAN,
        Metric("answered", "requests/s", Direction.HIGHER, "requests answered well, a second"),
        Metric("transport-errors", "requests/s", Direction.LOWER, "requests refused, broken off or given up, a second"),
        users.LATE,
        users.WARM_UP,
    )
    protocol: ClassVar[str]
    profiles: ClassVar[Mapping[str, Params]] = {"quick": _QUICK, "full": {**_QUICK, "time_s": 60}}
    least: ClassVar[Mapping[str, float]] = {"time_s": steady.MIN_WINDOWS, "rate": 1}

    @abstractmethod
    def serve(self, where: serving.ServerAddress, around: Surroundings, *, limit_s: float) -> RunPlan:
        """Return the server, and what it needs before and leaves behind; without measures."""

    @abstractmethod
    def requests(self) -> Sequence[str]:
        """Return the requests of a user, which are made again and again in this order."""

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        where = serving.place(self.name, around)
        served = self.serve(where, around, limit_s=users.limit_s(params) + serving.READY_LIMIT_S)
        requests = self.requests()
        think_us = round(1e6 * int(params["users"]) * len(requests) / float(params["rate"]))
        pace_us = think_us // (2 * len(requests)) if len(requests) > 1 else 0
        asked = users.load(
            self.protocol, where, params, requests, think_us=think_us, pace_us=pace_us, searches=_FOR_GOOD
        )
        return RunPlan(prepare=served.prepare, servers=served.servers, measures=(asked,), cleanup=served.cleanup)

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        if len(results) != 1:
            raise ParseError(f"one run of users was planned, {len(results)} results came")
        run = users.read(text_of(results[0]), params)
        sums, figures, seconds = run.sums(), run.figures(), len(run.counted())
        if not sums["successes"] or sums["server-errors"]:
            raise ParseError(f"of {sums['due']} requests {sums['successes']} were answered well")
        rates = {"answered": sums["successes"] / seconds, "transport-errors": sums["transport-errors"] / seconds}
        return Outcome({**rates, **figures}, work=run.answered())


class NginxOpen(ConstantRate):
    """The file of `nginx`."""

    name = "nginx-open"
    title = "nginx: a file of 1150 bytes, 1000 requests a second in an open loop"
    packages = ("bash", "coreutils", "nginx-light")
    layer = nginx.WEB
    protocol = "http"

    def serve(self, where: serving.ServerAddress, around: Surroundings, *, limit_s: float) -> RunPlan:
        return RunPlan(
            measures=(),
            prepare=(nginx.prepare(where, around.cpu_count),),
            servers=(nginx.nginx(where, time_limit_s=limit_s),),
            cleanup=(Command(("rm", "-rf", nginx.FOLDER)),),
        )

    def requests(self) -> Sequence[str]:
        return ("/favicon.ico",)


class RedisOpen(ConstantRate):
    """A SET and a GET of the same key in turn; some keys are asked for far more often than others (Zipf)."""

    name = "redis-open"
    title = "Redis: SET and GET without persistence, 1000 requests a second in an open loop"
    packages = ("redis-server",)
    protocol = "redis"

    def serve(self, where: serving.ServerAddress, around: Surroundings, *, limit_s: float) -> RunPlan:
        return RunPlan(measures=(), servers=(serving.server(redis.server(where), where, time_limit_s=limit_s),))

    def requests(self) -> Sequence[str]:
        return ("SET {7} " + redis.VALUE_BYTES * "x", "GET {7}")


#: Doublings, up to more than one thread of a client makes on common processors.
RATES = (500, 1000, 2000, 4000, 8000, 16_000)


def _levels(of: type[ConstantRate], title: str) -> tuple[RunWorkload, ...]:
    curve = CurveLevel(f"{of.name}-rate", 0, "requests/s", "answered", "p99", 10.0)
    return load_levels.levels(of, f"{title}, {{}} requests a second in an open loop", "rate", RATES, curve)


WORKLOADS = (
    *(NginxOpen(), RedisOpen()),
    *_levels(NginxOpen, "nginx: a file of 1150 bytes"),
    *_levels(RedisOpen, "Redis: SET and GET"),
)
