"""The report's part on surfaces as data (docs/report-schema.md): what tenants may ask of the host's kernel."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from tare.footprint.model import Abi, Call, Place

#: What of a platform stands beside a study's figure: all of its tenant's side, or gVisor's kernel alone.
Part = Literal["whole", "sentry"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ProcessesReport(_Frozen):
    """Processes of one kind that are alike in what they may ask for, and with which rights."""

    role: str
    program: str  # of the first of them
    n: int
    counted: bool  # whether they are on the tenant's side
    counts: dict[Call, int] | None  # None: their filters could not be read
    seccomp: str
    filters: int
    effective: list[str]
    uid: int
    namespaces: list[str]
    no_new_privs: bool
    label: str | None


class SurfaceReport(_Frozen):
    """What the tenant's side of a platform may ask of the host's kernel."""

    platform: str
    at: float  # UNIX time, seconds
    kernel: str
    n_read: int  # how often it was read; this is the last time
    of: int  # system calls of that kernel
    counts: dict[Call, int] | None  # None: nothing is known
    calls: dict[str, Call] | None
    unread: list[str]  # why the counts may be too low
    processes: list[ProcessesReport]
    abis: dict[str, Abi]
    writable: list[Place]
    devices: list[str]


class RegionReport(_Frozen):
    """The calls that exactly these platforms let through, and no other; of no platform: those that none does."""

    platforms: list[str]
    calls: list[str]


class OursReport(_Frozen):
    """Our figure of a platform that stands for a study's, or of a part of it; None: not known."""

    platform: str
    part: Part
    allowed: int | None
    conditional: int | None
    of: int
    sure: bool  # every filter was read


class BesideCallsReport(_Frozen):
    """A study's number of calls, allowed or all but those that are blocked, and ours."""

    platform: str  # the study's
    allowed: int | None
    blocked: int | None
    ours: list[OursReport]


class StudyReport(_Frozen):
    """A study's table."""

    study: str
    authors: str
    year: int
    where: str
    unit: str
    rows: list[BesideCallsReport]


class SurfacesReport(_Frozen):
    """What tenants may ask of the host's kernel, by platform."""

    surfaces: list[SurfaceReport]
    regions: list[RegionReport]
    beside: StudyReport | None  # None: no platform of the study's was looked at
