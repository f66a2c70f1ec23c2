"""What the workloads of iperf3 share: the commands, and the JSON of `iperf3 -J`, as its client prints it.

The server is in the instance, the client at the other side (Kärnä 2021, 5.1.5). One server serves both tests, to the
instance and from it, since one port of the instance is open; it takes them one by one. Of the JSON see
https://github.com/esnet/iperf, iperf_api.c, iperf_print_results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tare.errors import HostError, ParseError
from tare.workloads.base import Command, Completed, Params, RunPlan, Side, Surroundings
from tare.workloads.output import agree, decode, shown, text_of

#: What a test may take beyond its time: connecting, exchanging results.
GRACE_S = 15.0
CONNECT_MS = 5000


class _Strict(BaseModel):
    """Numbers are numbers, and finite; keys that are not named here are not looked at."""

    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)


class TestStart(_Strict):
    """What the client asked the server for."""

    protocol: Literal["TCP", "UDP"]
    num_streams: int
    omit: int
    duration: int
    reverse: Literal[0, 1]


class UdpTestStart(TestStart):
    """What only matters over UDP: the bytes of a datagram, and bits a second to be sent, 0 for as many as go."""

    blksize: int
    target_bitrate: int


class Start(_Strict):
    """The head of a report."""

    version: str
    test_start: TestStart


class UdpStart(Start):
    """The head of a report over UDP."""

    test_start: UdpTestStart


class Total(_Strict):
    """Some streams over some time."""

    seconds: float = Field(gt=0)
    bytes: int = Field(ge=0)
    bits_per_second: float = Field(ge=0)


class IntervalTotal(Total):
    """One second, or the rest of one; ``omitted`` belongs to the slow start that ``-O`` leaves out."""

    omitted: bool


class Interval(_Strict):
    """One of the client's periodic reports: each stream, and all together."""

    streams: list[Total] = Field(min_length=1)
    sum: IntervalTotal


class Arrived(Total):
    """What arrived over UDP. Jitter: RFC 3550's, the mean change of the time under way, smoothed over 16 datagrams."""

    jitter_ms: float = Field(ge=0)
    lost_packets: int = Field(ge=0)
    packets: int = Field(ge=0)


class End(_Strict):
    """The totals without what was omitted, as the sender and as the receiver saw them."""

    sum_sent: Total
    sum_received: Total


class StreamEnd(_Strict):
    """One TCP stream without what was omitted."""

    sender: Total
    receiver: Total


class TcpEnd(End):
    """The totals over TCP, and what they are made of."""

    streams: list[StreamEnd] = Field(min_length=1)


class UdpEnd(End):
    """The totals over UDP; ``sum`` has the sender's bytes and the receiver's rest."""

    sum_received: Arrived
    sum: Arrived


class Report(_Strict):
    """A test that went well."""

    start: Start
    intervals: list[Interval] = Field(min_length=1)
    end: End

    @property
    def moved_bytes(self) -> int:
        """All bytes that the client moved, those of the omitted seconds too."""
        return sum(interval.sum.bytes for interval in self.intervals)


class TcpReport(Report):
    """A test over TCP that went well."""

    end: TcpEnd


class UdpReport(Report):
    """A test over UDP that went well."""

    start: UdpStart
    end: UdpEnd


class _Failure(_Strict):
    """What iperf3 leaves instead of a report, or at the end of half a one."""

    error: str


_Any = TypeVar("_Any", bound=Report)


def plan(name: str, params: Params, around: Surroundings, options: Sequence[str] = ()) -> RunPlan:
    """One server, and the test to the instance and from it. Parameters: ``time_s`` and ``omit_s`` of each.

    Raises `HostError` where the instance has no network.
    """
    if around.address is None or around.port is None or around.instance_port is None:
        raise HostError("iperf3 needs an instance with a network", fix=f"leave out {name} on this platform")
    each = float(params["time_s"]) + float(params["omit_s"]) + GRACE_S
    server = Command(
        ("iperf3", "-s", "--forceflush", "-p", str(around.instance_port)),
        time_limit_s=2 * each,
        ready=b"Server listening",
    )
    times = ("-t", str(params["time_s"]), "-O", str(params["omit_s"]))
    where = ("-c", around.address, "-p", str(around.port))
    forth = ("iperf3", *where, "-J", *times, "--connect-timeout", str(CONNECT_MS), *options)
    return RunPlan(
        servers=(server,),
        measures=tuple(Command(argv, side=Side.CLIENT, time_limit_s=each, cwd="/") for argv in (forth, (*forth, "-R"))),
    )


def both(results: Sequence[Completed]) -> tuple[tuple[Completed, bool], ...]:
    """The results of the test to the instance and from it, with whether it was reversed. Raises `ParseError`."""
    if len(results) != 2:
        raise ParseError(f"two runs of iperf3 were planned, {len(results)} results came")
    return (results[0], False), (results[1], True)


def read(done: Completed, params: Params, *, reverse: bool, streams: int = 1) -> TcpReport:
    """Read one TCP test. Raises `ParseError` on an error that iperf3 reports, and on any other test than was asked."""
    report = _load(TcpReport, done)
    _check_asked(
        report,
        TestStart(
            protocol="TCP",
            num_streams=streams,
            omit=int(params["omit_s"]),
            duration=int(params["time_s"]),
            reverse=1 if reverse else 0,
        ),
    )
    _check(report, params, reverse=reverse)
    for total, parts in (
        (report.end.sum_sent, [one.sender for one in report.end.streams]),
        (report.end.sum_received, [one.receiver for one in report.end.streams]),
    ):
        _check_parts(parts, total, streams)
    return report


def read_udp(done: Completed, params: Params, *, reverse: bool) -> UdpReport:
    """Read one UDP test of one stream; ``params`` has ``size`` in bytes and ``rate_mbit`` too. Raises `ParseError`."""
    report = _load(UdpReport, done)
    asked = UdpTestStart(
        protocol="UDP",
        num_streams=1,
        blksize=int(params["size"]),
        target_bitrate=int(params["rate_mbit"]) * 1_000_000,
        omit=int(params["omit_s"]),
        duration=int(params["time_s"]),
        reverse=1 if reverse else 0,
    )
    _check_asked(report, asked)
    _check(report, params, reverse=reverse)
    got, sent = report.end.sum_received, report.end.sum_sent
    agree("iperf3", "jitter", got.jitter_ms, report.end.sum.jitter_ms)
    if got.bytes > 1.02 * sent.bytes + 2 * asked.blksize:
        raise ParseError(f"iperf3 received {got.bytes} bytes, and sent {sent.bytes}")
    if asked.omit == 0:  # else what was lost in the omitted seconds is among the lost, and their datagrams are not
        agree("iperf3", "datagrams", got.bytes / asked.blksize + got.lost_packets, got.packets, slack=2)
    return report


#: The least share of the time asked for that each side must have measured. The client's own timer ends the test; the
#: other side starts its clock when it is told to, and on a busy CPU gets to it a scheduler's turn or more later.
OWN_TIME, OTHERS_TIME = 0.9, 0.5


def _load(model: type[_Any], done: Completed) -> _Any:
    _refuse_failure(done)
    text = text_of(done)
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"]) or "the whole"
        raise ParseError(
            f"iperf3 printed something else than a report ({where}: {first['msg']}): {shown(text)}"
        ) from error


def _refuse_failure(done: Completed) -> None:
    """iperf3 puts its errors into the JSON and ends with 1: the reason is there, not in standard error."""
    try:
        failure = _Failure.model_validate_json(decode("iperf3", done.stdout))
    except ValidationError:
        return
    raise ParseError(f"iperf3 failed: {failure.error}")


def _check_asked(report: Report, asked: TestStart) -> None:
    if report.start.test_start != asked:
        raise ParseError(f"iperf3 ran another test than was asked: {report.start.test_start}")


def _check(report: Report, params: Params, *, reverse: bool) -> None:
    """The report must be whole, and its parts must tell the same."""
    own = report.end.sum_received if reverse else report.end.sum_sent
    counted = [interval.sum for interval in report.intervals if not interval.sum.omitted]
    agree("iperf3", "bytes", sum(one.bytes for one in counted), own.bytes)
    for total in (report.end.sum_sent, report.end.sum_received, *(interval.sum for interval in report.intervals)):
        agree("iperf3", "bits a second", total.bytes * 8 / total.seconds, total.bits_per_second)
    for interval in report.intervals:
        _check_parts(interval.streams, interval.sum, report.start.test_start.num_streams)
    duration_s = int(params["time_s"])
    for total in (report.end.sum_sent, report.end.sum_received):
        if total.bytes == 0:
            raise ParseError("iperf3 moved nothing")
        if total.seconds < (OWN_TIME if total is own else OTHERS_TIME) * duration_s:
            raise ParseError(f"iperf3 ended after {total.seconds:.2f} s, {duration_s} s were asked for")


def _check_parts(parts: Sequence[Total], whole: Total, streams: int) -> None:
    if len(parts) != streams:
        raise ParseError(f"iperf3 reports {len(parts)} streams and not {streams}")
    agree("iperf3", "the sum of its streams", sum(part.bytes for part in parts), whole.bytes)
