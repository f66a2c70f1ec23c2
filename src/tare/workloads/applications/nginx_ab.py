"""The file of `nginx`, asked for by ApacheBench: a connection for each request, as another study had it.

Kärnä 2021 (5.1.7): ab at 10, 30, 60, 90, 120, 150, 180 and 200 requests at once, of a page of GitLab there. His script
(github.com/ppeerttu/virtualization-benchmarks) has ``ab -r -n 5000 -c N``: no connection is kept. ab has one thread,
and each of its windows is a run. A run before them is not read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tare.errors import ParseError
from tare.workloads.applications import load_levels, nginx
from tare.workloads.base import Completed, CurveLevel, Params
from tare.workloads.output import agree, only, positive, text_of

#: More requests than any server answers in a window, which ends by time.
ENDLESS = 100_000_000
_NUMBER = r"\d+(?:\.\d+)?"
_FIELDS = {
    "concurrency": r"^Concurrency Level: +(\d+)$",
    "length": r"^Document Length: +(\d+) bytes$",
    "seconds": rf"^Time taken for tests: +({_NUMBER}) seconds$",
    "requests": r"^Complete requests: +(\d+)$",
    "failed": r"^Failed requests: +(\d+)$",
    "rate": rf"^Requests per second: +({_NUMBER}) \[#/sec\] \(mean\)$",
    "median": r"^ +50% +(\d+)$",
    "p99": r"^ +99% +(\d+)$",
    "mean": rf"^Time per request: +({_NUMBER}) \[ms\] \(mean\)$",
}


class NginxAb(nginx.NginxLoad):
    """Parameters: ``connections``, and ``windows`` of ``window_s`` whole seconds."""

    name = "nginx-ab"
    revision = 2  # before, connections were kept
    title = "nginx: a file of 1150 bytes, a connection each, ApacheBench with 50 at once"
    #: ab prints percentiles in whole milliseconds, of which half an answer's may be none: the mean is what is read.
    metrics = (nginx.RATE, nginx.MEAN, nginx.WARM_UP)
    packages = ("apache2-utils", "bash", "coreutils", "nginx-light")
    tool = "ab"

    def options(self, connections: int, window_s: int, cpus: int) -> Sequence[str]:
        return ("-q", "-t", str(window_s), "-n", str(ENDLESS), "-c", str(connections))

    def read(self, done: Completed, params: Params) -> dict[str, float]:
        """Return the figures of one run of ab: times in ms. Raises `ParseError`, also for answers that are errors."""
        text = text_of(done)
        if wrong := re.search(r"^(?:Non-2xx responses|Write errors): +\d+$", text, re.MULTILINE):
            raise ParseError(f"ab reports {wrong[0]}")
        figures = {name: only("ab", name, pattern, text) for name, pattern in _FIELDS.items()}
        if figures["failed"]:
            raise ParseError(f"ab reports {figures['failed']:g} failed requests")
        if figures["concurrency"] != int(params["connections"]) or figures["length"] != nginx.FILE_BYTES:
            raise ParseError(f"ab asked on {figures['concurrency']:g} connections for {figures['length']:g} bytes")
        seconds = positive("ab", "a time", figures["seconds"])
        if seconds < 0.9 * int(params["window_s"]):
            raise ParseError(f"ab ended after {seconds:g} s")
        agree("ab", "requests a second", figures["requests"] / seconds, positive("ab", "a rate", figures["rate"]))
        positive("ab", "a mean time", figures["mean"])
        if figures["median"] > figures["p99"]:
            raise ParseError(f"ab contradicts itself: median {figures['median']:g}, p99 {figures['p99']:g} ms")
        return figures


#: The study's eight.
CONNECTIONS = (10, 30, 60, 90, 120, 150, 180, 200)
_TITLE = "nginx: a file of 1150 bytes, a connection each, ApacheBench with {} at once"
_CURVE = CurveLevel("nginx-ab-connections", 0, "connections", "rate", "mean", 10.0)
WORKLOADS = (NginxAb(), *load_levels.levels(NginxAb, _TITLE, "connections", CONNECTIONS, _CURVE))
