"""The report's part on surfaces as data (docs/report-schema.md): what tenants may ask of the host's kernel."""

from __future__ import annotations

from typing import Literal

from tare.footprint_model import Abi, Call, WritableMount
from tare.records import Documented

#: What of a platform stands beside a study's figure: all of its tenant's side, or gVisor's kernel alone.
Part = Literal["whole", "sentry"]


class ProcessesReport(Documented):
    """Processes of one kind that are alike in what they may ask for, and with which rights."""

    role: str
    """What they are to the instance."""
    program: str
    """The program, of the first of them."""
    n: int
    """How many processes."""
    counted: bool
    """Whether they are on the tenant's side."""
    counts: dict[Call, int] | None
    """Calls by what becomes of them; null: their filters could not be read."""
    seccomp: str
    """The mode of seccomp."""
    filters: int
    """How many filters."""
    effective: list[str]
    """Effective capabilities."""
    uid: int
    """The user, as the host knows it."""
    namespaces: list[str]
    """Namespaces that are not the host's."""
    no_new_privs: bool
    """Whether they can gain no privileges."""
    label: str | None
    """The label of the security module; null where there is none."""


class SurfaceReport(Documented):
    """The calls that the tenant's side of a platform may make to the host's kernel."""

    platform: str
    """The platform."""
    at: float
    """When it was read, UNIX seconds."""
    kernel: str
    """Release and architecture."""
    n_read: int
    """How often the file's surfaces of it were read; this is the last."""
    of: int
    """How many system calls that kernel has."""
    counts: dict[Call, int] | None
    """Calls by what becomes of them; null where nothing could be read."""
    calls: dict[str, Call] | None
    """The same by call; null where nothing could be read."""
    unread: list[str]
    """Why `counts` may be too low."""
    processes: list[ProcessesReport]
    """Processes that are alike."""
    abis: dict[str, Abi]
    """Other ways into the kernel: `i386` and `x32` (on arm64 `arm`)."""
    writable: list[WritableMount]
    """Places that may be written to."""
    devices: list[str]
    """Open devices."""


class CallRegionReport(Documented):
    """The calls that exactly these platforms let through, and no other; of no platform: those that none does."""

    platforms: list[str]
    """The platforms."""
    calls: list[str]
    """Calls that exactly these let through, conditional ones too; of no platform: those that none does."""


class OursReport(Documented):
    """Our figure of a platform that stands for a study's, or of a part of it; None: not known."""

    platform: str
    """Our platform."""
    part: Part
    """All of its tenant's side, or gVisor's `sentry` alone."""
    allowed: int | None
    """Calls that are allowed; null: not known."""
    conditional: int | None
    """Calls that are allowed for certain arguments; null: not known."""
    of: int
    """How many calls the kernel has."""
    sure: bool
    """Whether every filter was read."""


class BesideCallsReport(Documented):
    """A study's number of calls, allowed or all but those that are blocked, and ours."""

    platform: str
    """The study's platform."""
    allowed: int | None
    """Its number of allowed calls, where it prints that."""
    blocked: int | None
    """Its number of blocked calls, where it prints that."""
    ours: list[OursReport]
    """Our platforms that stand for it."""


class StudyReport(Documented):
    """A study's table."""

    study: str
    """The study."""
    authors: str
    """Its authors."""
    year: int
    """When it appeared."""
    where: str
    """Its table."""
    unit: str
    """What it counts."""
    rows: list[BesideCallsReport]
    """One entry a platform of the study's."""


class SurfacesReport(Documented):
    """The calls that tenants may make to the host's kernel, by platform."""

    surfaces: list[SurfaceReport]
    """One entry a platform."""
    regions: list[CallRegionReport]
    """Which calls which platforms let through."""
    beside: StudyReport | None
    """A study's table; null: no platform of the study's was looked at."""
