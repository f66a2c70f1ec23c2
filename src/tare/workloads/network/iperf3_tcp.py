"""iperf3 over TCP between the client's side and the instance, in both directions, one after the other.

Kärnä 2021, 5.1.5: the server on the platform, the client on the other machine. The figure is the receiver's: what has
arrived. One server serves both tests, since one port of the instance is open; it takes them one by one. In `full` TCP's
slow start is left out (``-O``). Congestion control is the default of each side's network stack, as it is
for the platform's users; the raw output names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.errors import HostError, ParseError
from tare.model import Direction, Family, Metric
from tare.workloads.base import Command, Completed, Outcome, Params, RunPlan, RunWorkload, Side, Surroundings
from tare.workloads.network import iperf3

#: What a test may take beyond its time: connecting, exchanging results.
GRACE_S = 15.0
CONNECT_MS = 5000


class Iperf3Tcp(RunWorkload):
    """Parameters: ``time_s`` and ``omit_s`` of each direction, in whole seconds."""

    name = "iperf3-tcp"
    title = "iperf3: one TCP stream to the instance, then one from it"
    family = Family.NETWORK
    by_default = True
    metrics = (
        Metric("to-instance", "Mbit/s", Direction.HIGHER, "TCP from the client to the instance"),
        Metric("from-instance", "Mbit/s", Direction.HIGHER, "TCP from the instance to the client"),
    )
    work_unit = "MiB"
    packages = ("iperf3",)
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"time_s": 1, "omit_s": 0},
        "full": {"time_s": 10, "omit_s": 2},
    }

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        if around.address is None or around.port is None or around.instance_port is None:
            raise HostError("iperf3 needs an instance with a network", fix=f"leave out {self.name} on this platform")
        each = float(params["time_s"]) + float(params["omit_s"]) + GRACE_S
        server = Command(
            ("iperf3", "-s", "--forceflush", "-p", str(around.instance_port)),
            time_limit_s=2 * each,
            ready=b"Server listening",
        )
        forth = _client(params, around.address, around.port)
        return RunPlan(
            servers=(server,),
            measures=tuple(
                Command(argv, side=Side.CLIENT, time_limit_s=each, cwd="/") for argv in (forth, (*forth, "-R"))
            ),
        )

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        if len(results) != 2:
            raise ParseError(f"two runs of iperf3 were planned, {len(results)} results came")
        to, back = (
            iperf3.read(done, reverse=reverse, duration_s=int(params["time_s"]), omit_s=int(params["omit_s"]))
            for done, reverse in zip(results, (False, True), strict=True)
        )
        return Outcome(
            {
                "to-instance": to.end.sum_received.bits_per_second / 1e6,
                "from-instance": back.end.sum_received.bits_per_second / 1e6,
            },
            # CPU was spent on the omitted seconds as well.
            work=(to.moved_bytes + back.moved_bytes) / 2**20,
        )


def _client(params: Params, address: str, port: int) -> tuple[str, ...]:
    return (
        "iperf3",
        "-c",
        address,
        "-p",
        str(port),
        "-J",
        "-t",
        str(params["time_s"]),
        "-O",
        str(params["omit_s"]),
        "--connect-timeout",
        str(CONNECT_MS),
    )


WORKLOAD = Iperf3Tcp()
