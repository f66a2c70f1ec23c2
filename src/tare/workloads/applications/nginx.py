"""A static file of nginx's, asked for by wrk on connections that are kept.

Plauth 2017 (6.2, Static HTTP Server): Nginx and a file of the size of a favicon, keep-alive, 0 to 1000 connections.
That study had weighttp, which is not in Debian; wrk is its like: one process, epoll, all connections busy all of the
time (a closed loop, so its latencies are those of a server that is always asked as much as it can do). nginx is as
Debian has it but for its log, which is off, and has one worker for each CPU. Each window is a run of wrk's, on new
connections. A run before them is not read.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from statistics import fmean, median
from typing import ClassVar

from tare.errors import ParseError
from tare.model import Direction, Family, Layer, Metric
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
from tare.workloads.output import agree, positive, read_lines, text_of

#: Of the file that is asked for: a favicon of 16 times 16 pixels in 32 bits has 1150 bytes.
FILE_BYTES = 1150
GRACE_S = 20.0
RATE = Metric("rate", "requests/s", Direction.HIGHER, "answers a second")
MEAN = Metric("mean", "ms", Direction.LOWER, "an answer, on average, in a closed loop")
WARM_UP = Metric("warm-up", "s", Direction.LOWER, "until the rate was steady; the whole run where it never was")
WEB = Layer("web", Path(__file__).with_name("web.toml").read_text())
#: $1: the folder, $2: address and port, $3: bytes of the file, $4: worker processes. The configuration goes to the
#: data volume, as the file does.
PREPARE = """
mkdir -p "$1/logs" && cd "$1"
head -c "$3" /dev/zero | tr '\\0' f >favicon.ico
cat >nginx.conf <<end
user root;
worker_processes $4;
worker_rlimit_nofile 4096;
pid $1/pid;
error_log stderr;
events { worker_connections 2048; }
http {
    access_log off;
    keepalive_requests 1000000000;
    sendfile on;
    client_body_temp_path $1/body; proxy_temp_path $1/proxy; fastcgi_temp_path $1/fastcgi;
    uwsgi_temp_path $1/uwsgi; scgi_temp_path $1/scgi;
    server { listen $2 backlog=4096; root $1; }
}
end
"""
FOLDER = "/data/tare-web"
_TIMES = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}
_SIZES = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30}
_NUMBER = r"\d+(?:\.\d+)?"
_TIME = rf"{_NUMBER}(?:us|ms|s|m)"
_GRAMMAR = (
    r"Running (?P<asked>\d+)s test @ \S+",
    r"(?P<threads>\d+) threads and (?P<connections>\d+) connections",
    r"Thread Stats +Avg +Stdev +Max +\+/- Stdev",
    rf"Latency +{_TIME} +{_TIME} +(?P<most>{_TIME}) +{_NUMBER}%",
    rf"Req/Sec +{_NUMBER}[kM]? +{_NUMBER}[kM]? +{_NUMBER}[kM]? +{_NUMBER}%",
    r"Latency Distribution",
    rf"50% +(?P<median>{_TIME})",
    rf"75% +{_TIME}",
    rf"90% +{_TIME}",
    rf"99% +(?P<p99>{_TIME})",
    rf"(?P<requests>\d+) requests in (?P<time>{_TIME}), (?P<size>{_NUMBER})(?P<unit>[KMG]?B) read",
    rf"Requests/sec: +(?P<rate>{_NUMBER})",
    rf"Transfer/sec: +{_NUMBER}[KMG]?B",
)


class NginxLoad(RunWorkload):
    """One tool that loads nginx. Parameters: ``connections``, and ``windows`` of ``window_s`` whole seconds.

    The figures but `RATE` and `WARM_UP` are medians over the windows that count.
    """

    family = Family.APPLICATION
    work_unit = "request"
    layer = WEB
    tool: ClassVar[str]
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"connections": 50, "windows": 4, "window_s": 1},
        "full": {"connections": 50, "windows": 10, "window_s": 3},
    }
    least: ClassVar[Mapping[str, float]] = {"windows": steady.MIN_WINDOWS}

    @abstractmethod
    def options(self, connections: int, window_s: int, cpus: int) -> Sequence[str]:
        """Return the tool's options for one window; the address comes after them. ``cpus``: of the client."""

    @abstractmethod
    def read(self, done: Completed, params: Params) -> dict[str, float]:
        """Return the figures of one window, with ``requests``. Raises `ParseError`."""

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        where = serving.place(self.name, around)
        window_s, windows = int(params["window_s"]), int(params["windows"])
        options = self.options(int(params["connections"]), window_s, around.client_cpus)
        argv = (self.tool, *options, f"http://{where.address}:{where.port}/favicon.ico")
        load = Command(argv, side=Side.CLIENT, time_limit_s=window_s + GRACE_S, cwd="/")
        return RunPlan(
            prepare=(prepare(where, around.cpu_count),),
            servers=(nginx(where, time_limit_s=(windows + 1) * load.time_limit_s),),
            measures=(windows + 1) * (load,),
            cleanup=(Command(("rm", "-rf", FOLDER)),),
        )

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        windows = int(params["windows"])
        if len(results) != windows + 1:
            raise ParseError(f"{windows + 1} runs of {self.tool} were planned, {len(results)} results came")
        runs = [self.read(done, params) for done in results]
        ends = [ns / 1e9 for ns in accumulate(done.wall_ns for done in results)]
        rates = [run["rate"] for run in runs[1:]]
        counted = runs[1 + steady.counted(rates) :]
        medians = [metric.name for metric in self.metrics if metric not in {RATE, WARM_UP}]
        figures = {name: median(run[name] for run in counted) for name in medians}
        figures |= {RATE.name: fmean(run["rate"] for run in counted), WARM_UP.name: steady.warm_up_s(rates, ends)}
        return Outcome(figures, work=sum(run["requests"] for run in runs))


class Nginx(NginxLoad):
    """Parameters: ``connections``, and ``windows`` of ``window_s`` whole seconds."""

    name = "nginx"
    title = "nginx: a file of 1150 bytes, keep-alive, wrk on 50 connections"
    metrics = (
        RATE,
        Metric("median", "ms", Direction.LOWER, "half of the answers came within, in a closed loop"),
        Metric("p99", "ms", Direction.LOWER, "99 of 100 answers came within, in a closed loop"),
        WARM_UP,
    )
    packages = ("bash", "coreutils", "nginx-light", "wrk")
    tool = "wrk"

    def options(self, connections: int, window_s: int, cpus: int) -> Sequence[str]:
        return (
            "-t",
            str(min(cpus, connections)),
            "-c",
            str(connections),
            "-d",
            f"{window_s}s",
            "--latency",
            "--timeout",
            "10s",
        )

    def read(self, done: Completed, params: Params) -> dict[str, float]:
        """Return the figures of one run of wrk: times in ms. Raises `ParseError`, also for errors that wrk counted."""
        text = text_of(done)
        for wrong in re.findall(r"Socket errors: [^\n]*|Non-2xx or 3xx responses: \d+", text):
            raise ParseError(f"wrk reports {wrong}")
        if re.search(r"^ *0 requests in ", text, re.MULTILINE):  # its shares of nothing are no numbers
            raise ParseError(f"wrk was not answered once in {params['window_s']} s")
        fields = read_lines("wrk", text, _GRAMMAR)
        if int(fields["asked"]) != int(params["window_s"]) or int(fields["connections"]) != int(params["connections"]):
            raise ParseError(f"wrk ran {fields['asked']} s on {fields['connections']} connections, which was not asked")
        requests, seconds = positive("wrk", "requests", fields["requests"]), _ms(fields["time"]) / 1000
        rate = positive("wrk", "a rate", fields["rate"])
        agree("wrk", "requests a second", requests / positive("wrk", "a time", seconds), rate)
        if seconds < 0.9 * int(params["window_s"]):
            raise ParseError(f"wrk ended after {seconds:g} s")
        if float(fields["size"]) * _SIZES[fields["unit"]] < requests * FILE_BYTES * 0.98:
            raise ParseError(
                f"wrk read {fields['size']} {fields['unit']} in {requests:g} answers of {FILE_BYTES} bytes"
            )
        half, p99, most = (_ms(fields[name]) for name in ("median", "p99", "most"))
        if not 0 < half <= p99 <= most * 1.01:
            raise ParseError(f"wrk contradicts itself: median {half}, p99 {p99}, most {most} ms")
        return {"rate": rate, "median": half, "p99": p99, "requests": requests}


def prepare(where: serving.ServerAddress, workers: int) -> Command:
    """Write nginx's configuration and the file. ``workers``: one for each CPU of the instance."""
    words = (FOLDER, f"{where.listen}:{where.inside}", str(FILE_BYTES), str(workers))
    return Command(("bash", "-eu", "-c", PREPARE, "prepare", *words))


def nginx(where: serving.ServerAddress, *, time_limit_s: float) -> Command:
    """Return the command that runs nginx as a server at a place."""
    argv = ("nginx", "-p", FOLDER, "-c", f"{FOLDER}/nginx.conf", "-g", "daemon off;")
    return serving.server(argv, where, time_limit_s=time_limit_s)


def _ms(text: str) -> float:
    number, unit = re.fullmatch(rf"({_NUMBER})([a-z]+)", text, re.ASCII).groups()  # type: ignore[union-attr]
    return float(number) * _TIMES[unit]


#: "0 to 1000 connections" by hundreds, and one that is not shared.
CONNECTIONS = (1, 50, *range(100, 1001, 100))
_TITLE = "nginx: a file of 1150 bytes, keep-alive, wrk on {} connections"
_CURVE = CurveLevel("nginx-connections", 0, "connections", "rate", "p99", 10.0)
WORKLOADS = (Nginx(), *load_levels.levels(Nginx, _TITLE, "connections", CONNECTIONS, _CURVE))
