"""The JSON of `iperf3 -J`, as its client prints it (https://github.com/esnet/iperf, iperf_api.c)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tare.errors import ParseError
from tare.workloads.base import Completed
from tare.workloads.output import agree, decode, shown, text_of


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


class Start(_Strict):
    """The head of a report."""

    version: str
    test_start: TestStart


class Total(_Strict):
    """All streams together over some time."""

    seconds: float = Field(gt=0)
    bytes: int = Field(ge=0)
    bits_per_second: float = Field(ge=0)


class IntervalTotal(Total):
    """One second, or the rest of one; ``omitted`` belongs to the slow start that ``-O`` leaves out."""

    omitted: bool


class Interval(_Strict):
    """One of the client's periodic reports."""

    sum: IntervalTotal


class End(_Strict):
    """The totals without what was omitted, as the sender and as the receiver saw them."""

    sum_sent: Total
    sum_received: Total


class Report(_Strict):
    """A test that went well."""

    start: Start
    intervals: list[Interval] = Field(min_length=1)
    end: End

    @property
    def moved_bytes(self) -> int:
        """All bytes that the client moved, those of the omitted seconds too."""
        return sum(interval.sum.bytes for interval in self.intervals)


class _Failure(_Strict):
    """What iperf3 leaves instead of a report, or at the end of half a one."""

    error: str


def read(done: Completed, *, reverse: bool, duration_s: int, omit_s: int) -> Report:
    """Read one TCP test. Raises `ParseError` on an error that iperf3 reports, and on any other test than was asked."""
    _refuse_failure(done)
    text = text_of(done)
    try:
        report = Report.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"]) or "the whole"
        raise ParseError(
            f"iperf3 printed something else than a report ({where}: {first['msg']}): {shown(text)}"
        ) from error
    asked = TestStart(protocol="TCP", num_streams=1, omit=omit_s, duration=duration_s, reverse=1 if reverse else 0)
    if report.start.test_start != asked:
        raise ParseError(f"iperf3 ran another test than was asked: {report.start.test_start}")
    _check(report, reverse=reverse, duration_s=duration_s)
    return report


def _refuse_failure(done: Completed) -> None:
    """iperf3 puts its errors into the JSON and ends with 1: the reason is there, not in standard error."""
    try:
        failure = _Failure.model_validate_json(decode("iperf3", done.stdout))
    except ValidationError:
        return
    raise ParseError(f"iperf3 failed: {failure.error}")


def _check(report: Report, *, reverse: bool, duration_s: int) -> None:
    """The report must be whole, and its parts must tell the same."""
    own = report.end.sum_received if reverse else report.end.sum_sent
    counted = [interval.sum for interval in report.intervals if not interval.sum.omitted]
    agree("iperf3", "bytes", sum(one.bytes for one in counted), own.bytes)
    for total in (report.end.sum_sent, report.end.sum_received, *(interval.sum for interval in report.intervals)):
        agree("iperf3", "bits a second", total.bytes * 8 / total.seconds, total.bits_per_second)
    for total in (report.end.sum_sent, report.end.sum_received):
        if total.bytes == 0:
            raise ParseError("iperf3 moved nothing")
        if total.seconds < 0.9 * duration_s:
            raise ParseError(f"iperf3 ended after {total.seconds:.2f} s, {duration_s} s were asked for")
