"""Redis without persistence: GET and SET from the client's side, by redis-benchmark.

Plauth 2017 (6.2, Key-Value Store): redis-benchmark on 50 % GET and 50 % SET, 0 to 1000 connections, with pipelining.
Here each window is a run of SET and one of GET of the same number of requests, on keys drawn at random out of so
many. All are there before the first window, by a run of SET that is not read. redis-benchmark has one thread, as has
the server; what it prints in CSV is the rate and the latencies of each test. It has no duration, so a window is a
number of requests, and it takes as long as the platform does.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from itertools import accumulate
from statistics import harmonic_mean, median
from typing import ClassVar

from tare.errors import ParseError
from tare.model import Direction, Family, Metric
from tare.workloads.applications import load_levels, serving, steady
from tare.workloads.base import (
    Command,
    Completed,
    CurveLevel,
    Outcome,
    Params,
    RunPlan,
    RunWorkload,
    Side,
    Surroundings,
)
from tare.workloads.output import positive, text_of

#: Requests a second of the slowest platform that is waited for.
SLOWEST = 300.0
#: SETs on random keys, for each key, before the first window: some 95 of 100 keys are there then.
FILLS = 3
GRACE_S = 20.0
VALUE_BYTES = 64
_HEADER = [
    "test", "rps", "avg_latency_ms", "min_latency_ms", "p50_latency_ms", "p95_latency_ms", "p99_latency_ms",
    "max_latency_ms",
]  # fmt: skip
_TESTS = ("SET", "GET")
#: Upper end of redis-benchmark's latency histogram in ms (CONFIG_LATENCY_HISTOGRAM_MAX_VALUE), printed as 3000.319.
CEILING_MS = 3000.0


class Redis(RunWorkload):
    """Parameters: ``requests`` of each test in a window, ``windows``, ``connections``, ``size`` of a value in bytes.

    ``pipeline``: requests that are sent before an answer is waited for. ``keys``: how many there are.
    """

    name = "redis"
    revision = 2  # before, fast windows of equal requests counted for more than the time that they took
    title = "Redis: GET and SET without persistence, redis-benchmark on 50 connections"
    family = Family.APPLICATION
    metrics = (
        Metric("get", "requests/s", Direction.HIGHER, "GETs a second"),
        Metric("set", "requests/s", Direction.HIGHER, "SETs a second"),
        Metric("get-median", "ms", Direction.LOWER, "half of the GETs were answered within, in a closed loop"),
        Metric("get-p99", "ms", Direction.LOWER, "99 of 100 GETs were answered within, in a closed loop"),
        Metric("set-p99", "ms", Direction.LOWER, "99 of 100 SETs were answered within, in a closed loop"),
        Metric("warm-up", "s", Direction.LOWER, "until the rate was steady; the whole run where it never was"),
    )
    work_unit = "request"
    packages = ("redis-server", "redis-tools")
    by_default = True
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {
            "requests": 3_000,
            "windows": 6,
            "connections": 50,
            "pipeline": 1,
            "size": VALUE_BYTES,
            "keys": 3_000,
        },
        "full": {
            "requests": 200_000,
            "windows": 10,
            "connections": 50,
            "pipeline": 1,
            "size": VALUE_BYTES,
            "keys": 100_000,
        },
    }
    least: ClassVar[Mapping[str, float]] = {"windows": steady.MIN_WINDOWS}

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        where = serving.place(self.name, around)
        requests, windows, keys = (int(params[name]) for name in ("requests", "windows", "keys"))
        limit_s = 2 * requests / SLOWEST + GRACE_S
        fill = _bench(where, params, "set", FILLS * keys, limit_s=FILLS * keys / SLOWEST + GRACE_S)
        window = _bench(where, params, "set,get", requests, limit_s=limit_s)
        all_limit_s = fill.time_limit_s + windows * limit_s + serving.READY_LIMIT_S
        return RunPlan(
            servers=(serving.server(server(where), where, time_limit_s=all_limit_s),),
            measures=(fill, *windows * (window,)),
        )

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        windows = int(params["windows"])
        if len(results) != windows + 1:
            raise ParseError(f"{windows + 1} runs of redis-benchmark were planned, {len(results)} results came")
        _read(results[0], ("SET",))
        runs = [_read(done, _TESTS) for done in results[1:]]
        ends = [ns / 1e9 for ns in accumulate(done.wall_ns for done in results)]
        rates = [2 / (1 / run["SET"]["rps"] + 1 / run["GET"]["rps"]) for run in runs]
        counts = runs[steady.counted(rates) :]
        figures = {
            # Runs of as many requests each, not of as much time: all requests over all of their time.
            "get": harmonic_mean([run["GET"]["rps"] for run in counts]),
            "set": harmonic_mean([run["SET"]["rps"] for run in counts]),
            "get-median": median(run["GET"]["p50_latency_ms"] for run in counts),
            "get-p99": median(run["GET"]["p99_latency_ms"] for run in counts),
            "set-p99": median(run["SET"]["p99_latency_ms"] for run in counts),
            "warm-up": steady.warm_up_s(rates, ends),
        }
        return Outcome(figures, work=FILLS * int(params["keys"]) + 2 * windows * int(params["requests"]))


def server(where: serving.ServerAddress) -> tuple[str, ...]:
    """Return the server without persistence: an option without a value has an empty one."""
    return (
        "redis-server", "--port", str(where.inside), "--bind", where.listen, "--protected-mode", "no",
        "--save", "--appendonly", "no", "--dir", "/data", "--maxclients", "4064",
    )  # fmt: skip


def _bench(where: serving.ServerAddress, params: Params, tests: str, requests: int, *, limit_s: float) -> Command:
    argv = (
        "redis-benchmark", "-h", where.address, "-p", str(where.port), "-t", tests, "-n", str(requests),
        "-c", str(params["connections"]), "-P", str(params["pipeline"]), "-d", str(params["size"]),
        "-r", str(params["keys"]), "--csv",
    )  # fmt: skip
    return Command(argv, side=Side.CLIENT, time_limit_s=limit_s, cwd="/")


def _read(done: Completed, tests: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the figures of each test by the name of its column. Raises `ParseError`."""
    if errors := text_of(done, "stderr").strip():
        raise ParseError(f"redis-benchmark reports: {errors.splitlines()[0][:200]}")
    header, *rows = list(csv.reader(text_of(done).splitlines())) or [[]]
    if (
        header != _HEADER
        or [row[0] for row in rows if row] != list(tests)
        or any(len(row) != len(header) for row in rows)
    ):
        raise ParseError(f"redis-benchmark printed another table than was asked: {text_of(done)[:200]!r}")
    figures = {row[0]: _figures(row[0], dict(zip(header[1:], row[1:], strict=True))) for row in rows}
    for test in figures.values():
        least, half, most = test["min_latency_ms"], test["p50_latency_ms"], test["max_latency_ms"]
        if not least <= half <= test["p95_latency_ms"] <= test["p99_latency_ms"] <= most:
            raise ParseError(f"redis-benchmark contradicts itself on latencies: {test}")
    return figures


def _figures(test: str, columns: Mapping[str, str]) -> dict[str, float]:
    """Return the figures of a row. Raises `ParseError` if a percentile is at redis-benchmark's ceiling."""
    # The shortest latency may round to zero: it is no metric.
    figures = {
        name: 0.0 if text == "0.000" and name == "min_latency_ms" else positive("redis-benchmark", "a figure", text)
        for name, text in columns.items()
    }
    for name, share in (("p50_latency_ms", "half"), ("p99_latency_ms", "a hundredth")):
        if figures[name] >= CEILING_MS:
            raise ParseError(
                f"redis-benchmark tells no latency above {CEILING_MS / 1000:g} s, and {share} of its {test}s took more"
            )
    return figures


#: "0 to 1000 connections" by hundreds, and one that is not shared.
CONNECTIONS = (1, 50, *range(100, 1001, 100))
_TITLE = "Redis: GET and SET on {} connections"
_CURVE = CurveLevel("redis-connections", 0, "connections", "get", "get-p99", 10.0)
WORKLOADS = (Redis(), *load_levels.levels(Redis, _TITLE, "connections", CONNECTIONS, _CURVE, {"windows": 4}))
