"""A strict reader of the output of `fio --output-format=json+`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, ValidationError

from tare.errors import ParseError, first_invalid
from tare.records import Printed
from tare.workloads.output import shown


class Latency(Printed):
    """The latency of all requests, from submission to completion, in ns. ``bins``: how many took about so long."""

    mean: float = Field(ge=0)
    samples: int = Field(ge=0, alias="N")
    percentile: dict[str, int] = {}
    bins: dict[Annotated[str, Field(pattern=r"^[0-9]{1,20}$")], int] = {}


class Figures(Printed):
    """The figures of one direction; ``runtime`` is in ms, rounded up."""

    io_bytes: int = Field(ge=0)
    bw_bytes: int = Field(ge=0)
    iops: float = Field(ge=0)
    runtime: int = Field(ge=0)
    total_ios: int = Field(ge=0)
    short_ios: int
    drop_ios: int
    lat_ns: Latency

    @property
    def busy_s(self) -> float:
        """Time in requests, one after the other, in seconds."""
        return self.lat_ns.mean * self.lat_ns.samples / 1e9


class FioJob(Printed):
    error: int
    options: dict[str, str] = Field(alias="job options")
    read: Figures
    write: Figures


class FioReport(Printed):
    version: str = Field(alias="fio version")
    jobs: list[FioJob] = Field(min_length=1, max_length=1)


def job_of(text: str) -> FioJob:
    """Return the one job of a report. Raises `ParseError`."""
    try:
        return FioReport.model_validate_json(text).jobs[0]
    except ValidationError as error:
        why = first_invalid(error)
        raise ParseError(f"fio printed something else than a report ({why}): {shown(text)}") from error
