"""A workload beside a noisy neighbour, a second instance of the same platform: how much of its rate it keeps.

Matthews et al. 2007 ("Quantifying the performance isolation properties of virtualization systems", ExpCS) stress one
guest by CPU, memory, disk, network and processes, and say how much the others lose. Here the neighbour is stress-ng,
and for the network a stream of iperf3 from the client, which then does two things at once. Both instances share the
campaign's CPUs, so that a fair half is the best that one can keep of a rate that the CPU limits: the platforms differ
in what they lose beyond that, and at what latency.

These workloads differ in data only: what is measured, and what the neighbour does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from tare.workloads.apart import BesideWorkload, beside_metrics
from tare.workloads.applications import redis, serving
from tare.workloads.base import Command, Params, RunWorkload, Side, Surroundings
from tare.workloads.network import iperf3
from tare.workloads.network.exchange import AGENT
from tare.workloads.storage import fio_random

#: Longer than any run: the neighbour is ended, and does not end.
ENDLESS_S = 3600
#: How many of a kind of stressor there are for each CPU.
PER_CPU = 2
#: Of the last-level cache as stress-ng is told it: its three arrays are four times as large, and fit any instance.
CACHE = "8m"


def _stressed(*words: str) -> Callable[[Surroundings], tuple[Command, ...]]:
    """stress-ng with so many of a stressor for each CPU: {} stands for their number."""

    def noise(around: Surroundings) -> tuple[Command, ...]:
        count = str(PER_CPU * around.cpu_count)
        argv = ("stress-ng", "--timeout", str(ENDLESS_S), *(word.replace("{}", count) for word in words))
        # Its word that it has begun is on the standard error.
        return (
            Command(
                (AGENT, "run", "--ready", "output", "--", *argv), time_limit_s=ENDLESS_S, ready=b"dispatching hogs"
            ),
        )

    return noise


def _streaming(around: Surroundings) -> tuple[Command, ...]:
    where = serving.place("a neighbour that receives a stream", around)
    send = ("iperf3", "-c", where.address, "-p", str(where.port), "-t", str(ENDLESS_S), "-i", "0")
    return (
        iperf3.server(around, time_limit_s=ENDLESS_S),
        Command(send, side=Side.CLIENT, time_limit_s=ENDLESS_S),
    )


#: What a neighbour does: its name, in words, and its commands.
NOISES: Mapping[str, tuple[str, Callable[[Surroundings], tuple[Command, ...]]]] = {
    "cpu": ("that computes", _stressed("--cpu", "{}", "--cpu-method", "matrixprod")),
    "memory": ("that streams through memory", _stressed("--stream", "{}", "--stream-l3-size", CACHE)),
    "disk": (
        "that writes and syncs files",
        _stressed("--hdd", "{}", "--hdd-bytes", "32m", "--hdd-opts", "wr-rnd,fsync"),
    ),
    "network": ("that receives a TCP stream", _streaming),
    "fork": ("that forks", _stressed("--fork", "{}")),
}


def _title(workload: RunWorkload, name: str) -> str:
    return next(metric.title for metric in workload.metrics if metric.name == name)


def _workload(kept: RunWorkload, noisy: str, rate: str, latency: str, unit: str, params: Params) -> BesideWorkload:
    words, commands = NOISES[noisy]

    class _Beside(BesideWorkload):
        name = f"{kept.name}-beside-{noisy}"
        title = f"{kept.name} alone, and beside an instance {words}"
        metrics = beside_metrics(unit, *(_title(kept, metric) for metric in (rate, latency)))
        work_unit = kept.work_unit
        packages = tuple(sorted({*kept.packages, "iperf3" if noisy == "network" else "stress-ng"}))
        inner = kept
        revision = kept.revision
        profiles: ClassVar[Mapping[str, Params]] = {
            "quick": {**kept.profiles["quick"], **params, "pairs": 2},
            "full": {**kept.profiles["full"], "pairs": 4},
        }

        def noise(self, around: Surroundings) -> tuple[Command, ...]:
            return commands(around)

    _Beside.rate, _Beside.latency = rate, latency
    return _Beside()


_REDIS: Params = {"requests": 1_500, "windows": 4, "keys": 1_500}
WORKLOADS = (
    *(_workload(redis.Redis(), noisy, "get", "get-p99", "requests/s", _REDIS) for noisy in NOISES),
    _workload(fio_random.FioRandread(), "disk", "iops", "p99", "IO/s", {"time_s": 1}),
)
