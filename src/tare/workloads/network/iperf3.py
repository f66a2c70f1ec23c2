"""Code of the workloads of iperf3: the commands, and the JSON of `iperf3 -J`, as its client prints it.

The server is in the instance, the client at the other side (Kärnä 2021, 5.1.5). One server serves both tests, to the
instance and from it, since one port of the instance is open; it takes them one by one. Of the JSON see
https://github.com/esnet/iperf, iperf_api.c, iperf_print_results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tare import lazily
from tare.errors import HostError, ParseError
from tare.workloads.base import Command, Completed, Params, RunPlan, Side, Surroundings
from tare.workloads.output import agree

if TYPE_CHECKING:
    from tare.workloads import iperf3_report as reports
    from tare.workloads.iperf3_report import Iperf3Report, TcpReport, TestStart, Total, UdpReport
else:
    reports = lazily.LazyModule("tare.workloads.iperf3_report")

#: What a test may take beyond its time: connecting, exchanging results.
GRACE_S = 15.0
CONNECT_MS = 5000


def plan(name: str, params: Params, around: Surroundings, options: Sequence[str] = ()) -> RunPlan:
    """One server, and the test to the instance and from it. Parameters: ``time_s`` and ``omit_s`` of each.

    Raises `HostError` where the instance has no network.
    """
    if around.address is None or around.port is None or around.instance_port is None:
        raise HostError("iperf3 needs an instance with a network", fix=f"leave out {name} on this platform")
    limit_s = float(params["time_s"]) + float(params["omit_s"]) + GRACE_S
    times = ("-t", str(params["time_s"]), "-O", str(params["omit_s"]))
    where = ("-c", around.address, "-p", str(around.port))
    forth = ("iperf3", *where, "-J", *times, "--connect-timeout", str(CONNECT_MS), *options)
    return RunPlan(
        servers=(server(around, time_limit_s=2 * limit_s),),
        measures=tuple(
            Command(argv, side=Side.CLIENT, time_limit_s=limit_s, cwd="/") for argv in (forth, (*forth, "-R"))
        ),
    )


def server(around: Surroundings, *, time_limit_s: float) -> Command:
    """Return the server, on the one address that the client calls. It does not listen between two tests."""
    argv = ("iperf3", "-s", "--forceflush", "-B", around.listen, "-p", str(around.instance_port))
    return Command(argv, time_limit_s=time_limit_s, ready=b"Server listening", one_at_a_time=True)


def both(results: Sequence[Completed]) -> tuple[tuple[Completed, bool], ...]:
    """Return the results of the test to the instance and from it, with whether it was reversed. Raises `ParseError`."""
    if len(results) != 2:
        raise ParseError(f"two runs of iperf3 were planned, {len(results)} results came")
    return (results[0], False), (results[1], True)


def read(done: Completed, params: Params, *, reverse: bool, streams: int = 1) -> TcpReport:
    """Read one TCP test. Raises `ParseError` on an error that iperf3 reports, and on any other test than was asked."""
    report = reports.load(reports.TcpReport, done)
    _check_asked(
        report,
        reports.TestStart(
            protocol="TCP",
            num_streams=streams,
            omit=int(params["omit_s"]),
            duration=int(params["time_s"]),
            reverse=1 if reverse else 0,
            target_bitrate=int(params.get("rate_mbit", 0)) * 1_000_000,
        ),
    )
    _check(report, params, reverse=reverse)
    for total, parts in (
        (report.end.sum_sent, [stream.sender for stream in report.end.streams]),
        (report.end.sum_received, [stream.receiver for stream in report.end.streams]),
    ):
        _check_parts(parts, total, streams)
    return report


def read_udp(done: Completed, params: Params, *, reverse: bool) -> UdpReport:
    """Read one UDP test of one stream; ``params`` has ``size`` in bytes and ``rate_mbit`` too. Raises `ParseError`."""
    report = reports.load(reports.UdpReport, done)
    request = reports.UdpTestStart(
        protocol="UDP",
        num_streams=1,
        blksize=int(params["size"]),
        target_bitrate=int(params["rate_mbit"]) * 1_000_000,
        omit=int(params["omit_s"]),
        duration=int(params["time_s"]),
        reverse=1 if reverse else 0,
    )
    _check_asked(report, request)
    _check(report, params, reverse=reverse)
    received, sent = report.end.sum_received, report.end.sum_sent
    agree("iperf3", "jitter", received.jitter_ms, report.end.sum.jitter_ms)
    if received.bytes > 1.02 * sent.bytes + 2 * request.blksize:
        raise ParseError(f"iperf3 received {received.bytes} bytes, and sent {sent.bytes}")
    if request.omit == 0:  # else what was lost in the omitted seconds is among the lost, and their datagrams are not
        agree(
            "iperf3", "datagrams", received.bytes / request.blksize + received.lost_packets, received.packets, slack=2
        )
    return report


#: The least share of the time asked for that either side must have measured. The client ends the test so long after its
#: start as both the time and the omitted seconds are; bytes and clock begin anew once its timer for these is handled,
#: which on a busy CPU is a second or more late (iperf_client_api.c): the figure is of what is left. The other side
#: starts its clock on a message, which it may handle as late.
LEAST_TIME = 0.5


def _check_asked(report: Iperf3Report, request: TestStart) -> None:
    if report.start.test_start != request:
        raise ParseError(f"iperf3 ran another test than was asked: {report.start.test_start}")


def _check(report: Iperf3Report, params: Params, *, reverse: bool) -> None:
    """Check that the report is complete, and that its parts agree. Raises `ParseError`."""
    own_total = report.end.sum_received if reverse else report.end.sum_sent
    counted = [interval.sum for interval in report.intervals if not interval.sum.omitted]
    agree("iperf3", "bytes", sum(total.bytes for total in counted), own_total.bytes)
    for total in (report.end.sum_sent, report.end.sum_received, *(interval.sum for interval in report.intervals)):
        agree("iperf3", "bits a second", total.bytes * 8 / total.seconds, total.bits_per_second)
    for interval in report.intervals:
        _check_parts(interval.streams, interval.sum, report.start.test_start.num_streams)
    duration_s = int(params["time_s"])
    for total in (report.end.sum_sent, report.end.sum_received):
        if total.bytes == 0:
            raise ParseError("iperf3 moved nothing")
        if total.seconds < LEAST_TIME * duration_s:
            raise ParseError(f"iperf3 ended after {total.seconds:.2f} s, {duration_s} s were asked for")


def _check_parts(parts: Sequence[Total], whole: Total, streams: int) -> None:
    if len(parts) != streams:
        raise ParseError(f"iperf3 reports {len(parts)} streams and not {streams}")
    agree("iperf3", "the sum of its streams", sum(part.bytes for part in parts), whole.bytes)
