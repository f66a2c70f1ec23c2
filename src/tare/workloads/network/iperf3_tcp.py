"""iperf3 over TCP, one stream, from a client in a namespace of its own, in both directions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tare.errors import HostError, ParseError
from tare.model import Direction, Family, Metric
from tare.workloads.base import Command, Completed, Outcome, Params, RunPlan, RunWorkload, Side, Surroundings
from tare.workloads.output import number, text_of

_MIB = 1 << 20
GRACE_S = 15.0


class Iperf3Tcp(RunWorkload):
    """What the receiver got, in Mbit/s, by the platform's default network path."""

    name: ClassVar[str] = "iperf3-tcp"
    title: ClassVar[str] = "iperf3: TCP from and to a client namespace, one stream"
    family: ClassVar[Family] = Family.NETWORK
    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("to-instance", "Mbit/s", Direction.HIGHER, "TCP to the instance"),
        Metric("from-instance", "Mbit/s", Direction.HIGHER, "TCP from the instance"),
    )
    work_unit: ClassVar[str] = "MiB"
    packages: ClassVar[tuple[str, ...]] = ("iperf3",)
    needs_network: ClassVar[bool] = True
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"time_s": 1, "omit_s": 0},
        "full": {"time_s": 10, "omit_s": 2},
    }

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        """One server in the instance, two runs of the client against it."""
        if around.address is None or around.port is None or around.instance_port is None:
            raise HostError("the instance has no network that a client could reach")
        limit = float(params["time_s"]) + float(params["omit_s"]) + GRACE_S
        server = Command(
            ("iperf3", "-s", "--forceflush", "-p", str(around.instance_port)),
            time_limit_s=3 * limit,
            ready=b"Server listening",
        )
        base: tuple[str, ...] = (
            "iperf3",
            "-J",
            "-c",
            around.address,
            "-p",
            str(around.port),
            "-t",
            str(params["time_s"]),
        )
        base += ("-O", str(params["omit_s"]), "--connect-timeout", "5000")
        measures = (Command(base, Side.CLIENT, limit), Command((*base, "-R"), Side.CLIENT, limit))
        return RunPlan(measures, servers=(server,))

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        """Read both directions."""
        if len(results) != 2:
            raise ParseError(f"two runs of iperf3 were planned, there are {len(results)}")
        to_bits, to_bytes = _received(results[0], params, reverse=False)
        from_bits, from_bytes = _received(results[1], params, reverse=True)
        figures = {"to-instance": to_bits / 1e6, "from-instance": from_bits / 1e6}
        return Outcome(figures, work=(to_bytes + from_bytes) / _MIB)


def _received(result: Completed, params: Params, *, reverse: bool) -> tuple[float, float]:
    """Bits a second and bytes at the receiver."""
    data = _object(result)
    if "error" in data:
        raise ParseError(f"iperf3 failed: {data['error']}")
    text_of(result)  # it must have ended well, too
    try:
        asked, received = data["start"]["test_start"], data["end"]["sum_received"]
        kind, reversed_, streams = asked["protocol"], asked["reverse"], asked["num_streams"]
        seconds, amount, rate = received["seconds"], received["bytes"], received["bits_per_second"]
    except (KeyError, TypeError) as error:
        raise ParseError(f"iperf3's report lacks {error}") from None
    if (kind, bool(reversed_), streams) != ("TCP", reverse, 1):
        raise ParseError(f"iperf3 ran another test: {kind}, reverse {reversed_}, {streams} streams")
    bits, total = number(str(rate), "bits a second"), number(str(amount), "bytes received")
    span = number(str(seconds), "seconds")
    if span < 0.5 * float(params["time_s"]):
        raise ParseError(f"iperf3 ran {span:g} s of {params['time_s']} s")
    if abs(bits - total * 8 / span) > 0.05 * bits:
        raise ParseError(f"iperf3 shows {bits:g} bit/s, its bytes and seconds make {total * 8 / span:g}")
    return bits, total


def _object(result: Completed) -> dict[str, Any]:
    if result.timed_out:
        raise ParseError("iperf3 was ended at its time limit")
    try:
        data = json.loads(result.stdout)
    except ValueError:
        shown = (result.stdout or result.stderr).decode(errors="replace").strip()[:200]
        raise ParseError(f"iperf3's report is not JSON: {shown or 'no output'}") from None
    if not isinstance(data, dict):
        raise ParseError(f"iperf3's report is not an object but {type(data).__name__}")
    return data


WORKLOAD = Iperf3Tcp()
