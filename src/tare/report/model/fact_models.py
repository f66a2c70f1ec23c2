"""The facts of a campaign: platforms, host, failures, times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from tare.model import SettingOutcome, Status
from tare.records import Documented


def host_title(host: Mapping[str, Any]) -> str:
    """Return the title of a host: its name where the campaign recorded one, or its CPU."""
    cpu = host.get("cpu")
    model = cpu.get("model") if isinstance(cpu, dict) else None
    return str(host.get("name") or model or "this host")


class PlatformFacts(Documented):
    """A platform as it was on the day."""

    name: str
    """Its name."""
    title: str
    """The name in words."""
    version: str
    """What answered on the host."""
    details: dict[str, str]
    """Further facts by name."""
    image_bytes: int | None
    """Size of its image on disk, bytes; null where not known."""
    not_honoured: list[str]
    """What of the common settings it could not honour."""
    open_by_design: dict[str, str]
    """Doors to the host that it leaves open, `*` for all, each with the reason (docs/doors.md)."""
    network_path: str
    """How its packets go."""
    remarks: dict[str, str] = {}
    """What its figures of a family of workloads are to be read with, by the family, as its first instance showed."""
    daemon: str | None = None
    """The program on the host that its instances share, such as `dockerd`; "": there is none; null: the campaign does
    not say.
    """
    needs_root: bool | None = None
    """Whether only root, or a daemon of root's, can do what it does; null: the campaign does not say."""
    released: int | None = None
    """The year in which the line of its version first came out; null: not known."""
    daemons_share: float | None = None
    """CPU time of its shared daemons, such as dockerd, by its trials' time, as a share of a core; not in any figure.
    Null where there are none or it cannot be read.
    """
    daemons_mib: float | None = None
    """Memory of its shared daemons in MiB (PSS), once a host however many instances there are; not in any figure.
    Null where there are none or it was not measured.
    """


class ClientFacts(Documented):
    """Another machine that loaded the servers in instances."""

    client: str
    """As it was named: `ssh:[USER@]HOST[:PORT]`."""
    name: str
    """Its own name."""
    address: str
    """Its address, as the host saw it."""
    called: str
    """The host's address that it called."""
    kernel: str
    """Its kernel's release."""
    model: str
    """Its processor."""
    cpus: int
    """CPUs that its programs had: all of its own."""
    memory_bytes: int
    """Its memory, bytes."""
    clock_source: str
    """The clock source of its kernel; "": not known."""
    clock_ahead_s: float | None
    """How far its wall clock was ahead of the host's when the campaign began, seconds; null: not read."""


class DifferenceReport(Documented):
    """A fact in which a platform differs from the baseline."""

    platform: str
    """The platform."""
    fact: str
    """The fact of the fairness manifest."""
    value: str
    """What it is there."""
    baseline: str
    """What it is on the baseline."""
    unfair: str | None
    """What is compared then instead of the platform, such as "other bits"; null where the fact is a part of the
    platform.
    """


class LeftOutReport(Documented):
    """A platform that did not take part, and why."""

    platform: str
    """The platform."""
    reason: str
    """Why."""
    fix: str | None
    """How to have it."""
    asked: bool = False
    """Whether it was asked for by its name."""


class SettingReport(Documented):
    """A setting of the host's that `tare run --tune` looked at."""

    name: str
    """The setting."""
    path: str
    """Its file; empty where the host has none such."""
    outcome: SettingOutcome
    """What became of it."""
    former: str | None
    """The value before the campaign; null where there is none."""
    value: str | None
    """The value during it; null where there is none."""
    why: str
    """Why it is wanted so, or why it was not changed."""


class FailureReport(Documented):
    """Trials of one workload and platform that ended alike."""

    workload: str
    """The workload."""
    platform: str
    """The platform."""
    status: Literal[Status.FAILED, Status.UNSUPPORTED]
    """How they ended."""
    reason: str
    """Why."""
    n_trials: int
    """How many trials."""
    blocks: list[int]
    """The blocks that they were in."""


class Contamination(Documented):
    """Trials that the host or the machine below disturbed; they are marked, shown and kept."""

    steal_threshold: float
    """The limit of steal, a share of the pinned CPUs' time; also in `limits`."""
    n_trials: int
    """Trials that are marked."""
    n_all_trials: int
    """All trials."""
    reasons: dict[str, int] = {}
    """Trials by reason: `steal`, `foreign-cpu`, `sibling`, `throttled`, `swap`, `memory-pressure`; a trial may have
    several.
    """
    limits: dict[str, float] = {}
    """Above which a trial is marked, by reason: shares of time, periods or pages a second."""
    told: list[str] = []
    """The reasons that there are, in words."""
    n_ticks: int = 0
    """Readings of the telemetry; 0: only steal could be seen."""


class EventReport(Documented):
    """Something worth knowing that happened while the campaign ran."""

    at: float
    """When, UNIX seconds."""
    level: str
    """How grave: `info`, `warning` ..."""
    text: str
    """What happened."""


class SegmentReport(Documented):
    """A stretch in which the campaign was at work, in UNIX seconds."""

    began: float
    """When work began."""
    ended: float
    """When it ended."""
    boot: str | None
    """The kernel's id of that boot; null where not known."""
