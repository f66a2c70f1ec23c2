"""iperf3 over UDP between the client's side and the instance, in both directions: what arrives, how evenly.

Two tests, since one rate cannot answer both questions. `iperf3-udp` sends as fast as it can (Giallorenzo 2021, Table 2:
``-u -b 0``, the first seconds omitted) and asks what arrives. `iperf3-jitter` sends slowly and asks how evenly that
comes (Kärnä 2021, 5.1.5; his scripts, github.com/ppeerttu/virtualization-benchmarks, give iperf3 ``-u`` and no rate,
and so its default of 1 Mbit/s: 91 datagrams of 1,448 bytes a second, to the platform, for 10 s).

The figures are the receiver's. What arrived is its bytes over the sender's, and not iperf3's own loss: that misses what
was lost at the end, and with ``-O`` has the loss of the omitted seconds (3.12). Loss is the rest to 100 %; the
metric is what arrived, since no ratio to a baseline that loses nothing can be given. Datagrams in transit when the time
is over have not arrived: of the 90 datagrams of `iperf3-jitter` in `quick` one is more than a per cent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.model import Direction, Family, Metric
from tare.workloads.base import Completed, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.network import iperf3

_BANDWIDTH = (
    Metric("to-instance", "Mbit/s", Direction.HIGHER, "UDP that arrived at the instance"),
    Metric("from-instance", "Mbit/s", Direction.HIGHER, "UDP that arrived from the instance"),
)
_JITTER = (
    Metric("jitter-to-instance", "us", Direction.LOWER, "change of the time under way to the instance"),
    Metric("jitter-from-instance", "us", Direction.LOWER, "change of the time under way from the instance"),
)
_ARRIVED = (
    Metric("arrived-to-instance", "%", Direction.HIGHER, "of what was sent to the instance arrived"),
    Metric("arrived-from-instance", "%", Direction.HIGHER, "of what was sent from the instance arrived"),
)


class Iperf3Udp(RunWorkload):
    """Parameters: ``time_s`` and ``omit_s`` of each direction, ``rate_mbit``, ``size``.

    ``time_s`` and ``omit_s`` in whole seconds; ``rate_mbit`` is what is sent, in whole Mbit/s, 0 for as much as goes;
    ``size`` of a datagram in bytes, which by itself would follow each path's MTU.
    """

    name = "iperf3-udp"
    title = "iperf3: UDP as fast as it goes to the instance, then from it"
    family = Family.NETWORK
    metrics: ClassVar[tuple[Metric, ...]] = (*_BANDWIDTH, *_ARRIVED, *_JITTER)
    work_unit = "MiB"
    packages = ("iperf3",)
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"time_s": 1, "omit_s": 0, "rate_mbit": 0, "size": 1448},
        "full": {"time_s": 10, "omit_s": 2, "rate_mbit": 0, "size": 1448},
    }

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        return iperf3.plan(
            self.name, params, around, ("-u", "-b", f"{params['rate_mbit']}M", "-l", str(params["size"]))
        )

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        samples: dict[str, float] = {}
        work = 0.0
        for done, reverse in iperf3.both(results):
            way = "from-instance" if reverse else "to-instance"
            end = iperf3.read_udp(done, params, reverse=reverse).end
            received = end.sum_received
            samples[way] = received.bits_per_second / 1e6
            samples[f"jitter-{way}"] = received.jitter_ms * 1e3
            # Both sides leave out the omitted seconds, each by its own clock: a datagram more may be in than was sent.
            samples[f"arrived-{way}"] = min(100.0, 100.0 * received.bytes / end.sum_sent.bytes)
            # CPU was spent on the omitted seconds as well, in which as much arrived.
            work += received.bytes * (1 + float(params["omit_s"]) / float(params["time_s"])) / 2**20
        declared = {metric.name for metric in self.metrics}
        return Outcome({name: value for name, value in samples.items() if name in declared}, work)


class Iperf3Jitter(Iperf3Udp):
    """Parameters: those of `Iperf3Udp`. The bandwidth is no figure: it is what was asked for."""

    name = "iperf3-jitter"
    title = "iperf3: jitter of a slow UDP stream to the instance, then from it"
    metrics: ClassVar[tuple[Metric, ...]] = (*_JITTER, *_ARRIVED)
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"time_s": 1, "omit_s": 0, "rate_mbit": 1, "size": 1448},
        "full": {"time_s": 10, "omit_s": 0, "rate_mbit": 1, "size": 1448},
    }


class Iperf3UdpGigabit(Iperf3Udp):
    """Parameters: those of `Iperf3Udp`. Giallorenzo 2021, Table 2: ``-u -b 1000000000``."""

    name = "iperf3-udp-1g"
    title = "iperf3: UDP of 1 Gbit/s to the instance, then from it"
    profiles: ClassVar[Mapping[str, Params]] = {
        name: {**params, "rate_mbit": 1000} for name, params in Iperf3Udp.profiles.items()
    }


WORKLOADS = (Iperf3Udp(), Iperf3Jitter(), Iperf3UdpGigabit())
