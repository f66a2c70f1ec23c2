"""A strict reader of `iperf3 -J`; see https://github.com/esnet/iperf, iperf_api.c, iperf_print_results."""

from __future__ import annotations

from typing import Literal, TypeVar

from pydantic import Field, ValidationError

from tare.errors import ParseError, first_invalid
from tare.records import Printed
from tare.workloads.base import Completed
from tare.workloads.output import decode, shown, text_of


class TestStart(Printed):
    """The client's request to the server; ``target_bitrate``: bits a second to send, 0 for as many as possible."""

    protocol: Literal["TCP", "UDP"]
    num_streams: int
    omit: int
    duration: int
    reverse: Literal[0, 1]
    target_bitrate: int


class UdpTestStart(TestStart):
    """The field of UDP tests: the bytes of a datagram."""

    blksize: int


class Start(Printed):
    """The head of a report."""

    version: str
    test_start: TestStart


class UdpStart(Start):
    """The head of a report over UDP."""

    test_start: UdpTestStart


class Total(Printed):
    """The bytes that streams moved over a time."""

    seconds: float = Field(gt=0)
    bytes: int = Field(ge=0)
    bits_per_second: float = Field(ge=0)


class IntervalTotal(Total):
    """One second, or the rest of one; ``omitted`` belongs to the slow start that ``-O`` leaves out."""

    omitted: bool


class Iperf3Interval(Printed):
    """One of the client's periodic reports: each stream, and all together."""

    streams: list[Total] = Field(min_length=1)
    sum: IntervalTotal


class Arrived(Total):
    """Datagrams that arrived over UDP. Jitter: RFC 3550's, the mean change of transit time, smoothed over 16."""

    jitter_ms: float = Field(ge=0)
    lost_packets: int = Field(ge=0)
    packets: int = Field(ge=0)


class End(Printed):
    """The totals without what was omitted, as the sender and as the receiver saw them."""

    sum_sent: Total
    sum_received: Total


class StreamEnd(Printed):
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


class Iperf3Report(Printed):
    """A test that went well."""

    start: Start
    intervals: list[Iperf3Interval] = Field(min_length=1)
    end: End

    @property
    def moved_bytes(self) -> int:
        """All bytes that the client moved, those of the omitted seconds too."""
        return sum(interval.sum.bytes for interval in self.intervals)


class TcpReport(Iperf3Report):
    """A test over TCP that went well."""

    end: TcpEnd


class UdpReport(Iperf3Report):
    """A test over UDP that went well."""

    start: UdpStart
    end: UdpEnd


class _Failure(Printed):
    """iperf3's output instead of a report, or at the end of an incomplete one."""

    error: str


_Any = TypeVar("_Any", bound=Iperf3Report)


def load(model: type[_Any], done: Completed) -> _Any:
    """Return the report of a test that went well. Raises `ParseError`."""
    _refuse_failure(done)
    text = text_of(done)
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        why = first_invalid(error)
        raise ParseError(f"iperf3 printed something else than a report ({why}): {shown(text)}") from error


def _refuse_failure(done: Completed) -> None:
    """iperf3 puts its errors into the JSON and ends with 1: the reason is there, not in standard error."""
    try:
        failure = _Failure.model_validate_json(decode("iperf3", done.stdout))
    except ValidationError:
        return
    raise ParseError(f"iperf3 failed: {failure.error}")
