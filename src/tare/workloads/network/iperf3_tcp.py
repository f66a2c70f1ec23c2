"""iperf3 over TCP between the client's side and the instance, in both directions, one after the other.

Kärnä 2021, 5.1.5: the server on the platform, the client on the other machine. The figure is the receiver's: what has
arrived. In `full` TCP's slow start is left out (``-O``). Congestion control is the default of each side's network
stack, as it is for the platform's users; the raw output names it. It takes part where it is asked for: a second of one
stream, whose two ends the scheduler places anew each time, differed from itself by some 30 % from block to block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.model import Direction, Family, Metric
from tare.workloads.base import Completed, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.network import iperf3


class Iperf3Tcp(RunWorkload):
    """Parameters: ``time_s`` and ``omit_s`` of each direction, in whole seconds.

    Two more, of some: ``streams`` at once, and ``rate_mbit``, the most that is sent in Mbit/s.
    """

    name = "iperf3-tcp"
    title = "iperf3: one TCP stream to the instance, then one from it"
    family = Family.NETWORK
    metrics = (
        Metric("to-instance", "Mbit/s", Direction.HIGHER, "TCP from the client to the instance"),
        Metric("from-instance", "Mbit/s", Direction.HIGHER, "TCP from the instance to the client"),
    )
    work_unit = "MiB"
    packages = ("iperf3",)
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"time_s": 3, "omit_s": 1},
        "full": {"time_s": 10, "omit_s": 2},
    }

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        streams = ("-P", str(params["streams"])) if "streams" in params else ()
        rate = ("-b", f"{params['rate_mbit']}M") if "rate_mbit" in params else ()
        return iperf3.plan(self.name, params, around, (*streams, *rate))

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        to, back = (
            iperf3.read(done, params, reverse=reverse, streams=int(params.get("streams", 1)))
            for done, reverse in iperf3.both(results)
        )
        return Outcome(
            {
                "to-instance": to.end.sum_received.bits_per_second / 1e6,
                "from-instance": back.end.sum_received.bits_per_second / 1e6,
            },
            # CPU was spent on the omitted seconds as well.
            work=(to.moved_bytes + back.moved_bytes) / 2**20,
        )


class Iperf3Streams(Iperf3Tcp):
    """Parameters: as of one stream, and how many ``streams`` at once; the figures are their sums.

    iperf3 3.12 moves all streams in one thread on each side: more streams are more connections, not more CPUs.
    """

    name = "iperf3-streams"
    title = "iperf3: several TCP streams at once to the instance, then from it"
    metrics = (
        Metric("to-instance", "Mbit/s", Direction.HIGHER, "all TCP streams from the client to the instance"),
        Metric("from-instance", "Mbit/s", Direction.HIGHER, "all TCP streams from the instance to the client"),
    )
    profiles: ClassVar[Mapping[str, Params]] = {
        name: {**params, "streams": 4} for name, params in Iperf3Tcp.profiles.items()
    }


class Iperf3TcpGigabit(Iperf3Tcp):
    """Parameters: as of one stream, and ``rate_mbit``.

    Giallorenzo 2021, Table 2: ``-b 1000000000``. Above the limit all platforms have the same rate: what is to be looked
    at is who falls below it, and the CPU cost of the same work.
    """

    name = "iperf3-tcp-1g"
    title = "iperf3: one TCP stream of at most 1 Gbit/s to the instance, then one from it"
    profiles: ClassVar[Mapping[str, Params]] = {
        name: {**params, "rate_mbit": 1000} for name, params in Iperf3Tcp.profiles.items()
    }


WORKLOADS = (Iperf3Tcp(), Iperf3Streams(), Iperf3TcpGigabit())
