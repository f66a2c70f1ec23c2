"""ICMP echo requests from the client's side to the instance: the round trip of the packet without any program inside.

Anjali 2020, 5.3 and Table 3: `ping` for ten seconds, the average; Plauth 2017, 5.1 and Fig. 3(c): `ping` from another
machine. In `full` as `ping` does it by itself, a request a second, which also shows how long a CPU takes to wake up;
`quick` asks ten times a second.

The stack that has the instance's address answers: the host's for what shares its network, the host's in a namespace
for a container, else the guest's or the sandbox's own. A published port cannot be pinged: Docker's and Podman's
containers are pinged at their own address, by the same bridges, but without the NAT. Where nothing of the instance's
answers, the platform says why, and the trial is unsupported.
"""

from __future__ import annotations

import itertools
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.errors import HostError, ParseError
from tare.model import Direction, Family, Metric
from tare.workloads.base import Command, Completed, Outcome, Params, RunPlan, RunWorkload, Side, Surroundings
from tare.workloads.output import agree, positive, read_lines, text_of

#: Whole seconds that ping waits after its last request if no answer has come; otherwise it waits two round trips.
WAIT_S = 1
GRACE_S = 15.0
_SIZE = 56  # ping's own: 64 bytes with ICMP's header
_TIME = r"[0-9]+\.[0-9]{3}"
_HEAD = r"PING (?P<named>[0-9.]+) \((?P<address>[0-9.]+)\) (?P<size>[0-9]+)\([0-9]+\) bytes of data\."
_ANSWER = re.compile(
    r"(?P<size>[0-9]+) bytes from (?P<address>[0-9.]+): icmp_seq=(?P<number>[0-9]+) ttl=[0-9]+ time=(?P<ms>[0-9.]+) ms",
    re.ASCII,
)
_TAIL = (
    r"--- (?P<pinged>[0-9.]+) ping statistics ---",
    r"(?P<sent>[0-9]+) packets transmitted, (?P<received>[0-9]+) received, (?P<lost>[0-9.]+)% packet loss, "
    r"time [0-9]+ms",
    rf"rtt min/avg/max/mdev = (?P<min>{_TIME})/(?P<avg>{_TIME})/(?P<max>{_TIME})/(?P<mdev>{_TIME}) ms"
    r"(?:, pipe [0-9]+)?",  # more than one request was under way at once: answers took longer than the interval
)


class PingRtt(RunWorkload):
    """Parameters: ``time_s`` in seconds, and the ``interval_s`` between two requests."""

    name = "ping-rtt"
    title = "ping from the client's side to the instance"
    family = Family.NETWORK
    metrics = (
        Metric("average", "us", Direction.LOWER, "the mean round trip"),
        Metric("median", "us", Direction.LOWER, "half of the answers came within; no figure where that is below 1 us"),
        Metric("min", "us", Direction.LOWER, "the shortest round trip; no figure where that is below 1 us"),
        Metric("max", "us", Direction.LOWER, "the longest round trip"),
        Metric("mdev", "us", Direction.LOWER, "the round trips' standard deviation"),
        Metric("arrived", "%", Direction.HIGHER, "of the requests were answered"),
    )
    work_unit = "request"
    packages = ("iputils-ping",)
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"time_s": 2.0, "interval_s": 0.1},
        "full": {"time_s": 10.0, "interval_s": 1.0},
    }

    @property
    def all_metrics(self) -> tuple[Metric, ...]:
        """Own metrics, no CPU cost: where the host's kernel answers, its CPU time is accounted to no instance."""
        return self.metrics

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        if around.ping is None:
            why = around.no_ping or "it has no address of its own"
            raise HostError(f"it cannot be pinged: {why}", fix="leave out ping-rtt on this platform")
        limit_s = float(params["time_s"]) + WAIT_S + GRACE_S
        times = ("-c", f"{_count(params)}", "-i", f"{params['interval_s']}", "-W", f"{WAIT_S}")
        argv = ("ping", "-n", *times, "-s", f"{_SIZE}", around.ping)
        return RunPlan(measures=(Command(argv, side=Side.CLIENT, time_limit_s=limit_s, cwd="/"),))

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        if len(results) != 1:
            raise ParseError(f"one ping was planned, {len(results)} results came")
        text = text_of(results[0])
        lines = [line for line in text.splitlines() if line.strip()]
        summary = read_lines("ping", "\n".join([*lines[:1], *lines[1:][-len(_TAIL) :]]), (_HEAD, *_TAIL))
        sent, received = int(summary["sent"]), int(summary["received"])
        if sent != _count(params):
            raise ParseError(f"ping sent {sent} requests and not {_count(params)}")
        if not summary["named"] == summary["address"] == summary["pinged"] or summary["size"] != str(_SIZE):
            addresses = f"{summary['named']}, {summary['address']}, {summary['pinged']}"
            raise ParseError(f"ping asked {addresses} with {summary['size']} bytes")
        times = _times(lines[1 : -len(_TAIL)], summary["address"], sent)
        if len(times) != received:
            raise ParseError(f"ping counts {received} answers, and shows {len(times)}")
        agree("ping", "what was lost", 100 * (1 - received / sent), float(summary["lost"]), slack=0.01)
        return Outcome({**_figures(times, summary), "arrived": 100 * received / sent}, work=0)


def _count(params: Params) -> int:
    return max(1, round(float(params["time_s"]) / float(params["interval_s"])))


def _times(lines: Sequence[str], address: str, sent: int) -> list[float]:
    """Round trips in ms, of answers in order, each once: this path does not reorder packets. Raises `ParseError`."""
    times: list[float] = []
    numbers = [0]
    for line in lines:
        answer = _ANSWER.fullmatch(line)
        if answer is None or answer["address"] != address or answer["size"] != str(_SIZE + 8):
            raise ParseError(f"ping printed a strange line: {line[:200]!r}")
        numbers.append(int(answer["number"]))
        times.append(float(answer["ms"]))  # 0.000 is a time of less than ping shows
    if numbers[-1] > sent or any(earlier >= later for earlier, later in itertools.pairwise(numbers)):
        raise ParseError(f"ping shows answers to {', '.join(map(str, numbers[1:]))} of {sent} requests")
    return times


def _figures(times: Sequence[float], summary: Mapping[str, str]) -> dict[str, float]:
    """Return the figures of ping's summary in us, checked against its single answers, of which the median is."""
    mean = statistics.fmean(times)
    computed = {
        "min": min(times),
        "avg": mean,
        "max": max(times),
        # Its mdev is the standard deviation of all round trips (iputils, ping_common.c).
        "mdev": math.sqrt(max(0.0, statistics.fmean(time * time for time in times) - mean * mean)),
    }
    positive("ping", "an average time", summary["avg"])
    # ping prints a single time to 1 us, with three digits from 1 ms on, and in whole milliseconds from 100 ms on.
    slack = min(1.0, max(0.001, 10 ** (math.floor(math.log10(max(*times, 0.001))) - 2)))
    for name, value in computed.items():
        agree("ping", name, value, float(summary[name]), slack=slack)
    figures = {"average" if name == "avg" else name: 1e3 * float(summary[name]) for name in computed}
    figures |= {"median": 1e3 * statistics.median(times)}
    # Zero means below ping's resolution, which is no figure.
    return {name: figure for name, figure in figures.items() if figure > 0 or name == "mdev"}


WORKLOAD = PingRtt()
