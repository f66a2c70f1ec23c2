"""The record of a campaign in its file: written once, before the first trial, and never changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Self

from pydantic import Field, model_validator

from tare.model import CPU_COST, Arm, Design, Direction, Family, Mode, SettingOutcome
from tare.records import Facts, Frozen, Line
from tare.store.limits import LAST_MOMENT, MAX, MAX_CELLS

#: Limits, because a file may come from a stranger: names are short, and numbers are those of a real machine.
Name = Annotated[Line, Field(min_length=1, max_length=200)]
Text = Annotated[Line, Field(max_length=10_000)]
#: A word of a command, which may contain line breaks; a path; or the name of an image.
Word = Annotated[str, Field(max_length=131_072, pattern="^[^\0]*$")]
Path = Annotated[str, Field(max_length=4_096, pattern="^[^\0]*$")]
EnvName = Annotated[str, Field(max_length=1_000, pattern="^[A-Za-z_][A-Za-z0-9_]*$")]
#: The name of a Debian package, which an image is built with.
Package = Annotated[str, Field(max_length=200, pattern="^[a-z0-9][a-z0-9+.-]+$")]
Bytes = Annotated[int, Field(ge=0, le=MAX)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
#: A CPU of the host, by its number.
Cpu = Annotated[int, Field(ge=0, lt=2**16)]
Year = Annotated[int, Field(ge=1970, le=9999)]
#: The value of a workload's parameter.
Value = Annotated[int, Field(strict=True, ge=-MAX, le=MAX)] | Finite | Name | bool


class PlatformRecord(Frozen):
    """A platform at the time of the campaign: facts for the report, and requests that it could not honour."""

    name: Name
    title: Text
    version: Text
    details: dict[Name, Text] = {}
    image_bytes: Bytes | None = None  # Of its form of the image, on disk.
    not_honoured: list[Text] = []
    open_by_design: dict[Name, Text] = {}  # Doors to the host that it leaves open by design: name (`*`: all), and why.
    network_path: Text = ""
    remarks: dict[Name, Text] = {}  # Cautions for its figures, by family of workloads.
    daemon: Text | None = None  # The program that its instances share; "": there is none; None: not recorded.
    needs_root: bool | None = None  # True if only root, or a daemon of root's, can run it; None: not recorded.
    package: Text = ""  # The plug-in that provides it, with its version; "": tare itself.
    released: Year | None = None  # Of the first release in the line of its version; None: unknown.


class MetricRecord(Frozen):
    """A metric's facts. The first metric of a workload is its headline, whatever this says."""

    name: Name
    unit: Text
    direction: Direction
    title: Text
    resolution: Finite | None = Field(default=None, gt=0)  # The steps of its figures, if known.
    headline: bool = False  # Tables show it beside the first.


class LevelRecord(Frozen):
    """The place of a workload on a curve: ``at`` is its load in ``unit``; ``rate`` and ``latency`` are its metrics."""

    curve: Name
    at: Finite
    unit: Text
    rate: Name
    latency: Name
    limit: Finite  # Of the latency, in its unit: the best rate below it is a result of the curve.


class ProgramRecord(Frozen):
    """A user's own command, as in `tare.model.UserProgram`, for a resume."""

    argv: Annotated[list[Word], Field(min_length=1, max_length=250)]
    prepare: Annotated[list[Word], Field(max_length=250)] = []
    cleanup: Annotated[list[Word], Field(max_length=250)] = []
    env: Annotated[dict[EnvName, Word], Field(max_length=250)] = {}
    warmup: int = Field(default=0, ge=0, le=1_000)
    time_limit_s: Finite = Field(default=600.0, gt=0, le=86_400)
    ignore_failure: bool = False
    folder: Path = ""
    image: Path = ""
    packages: Annotated[list[Package], Field(max_length=1_000)] = []


class WorkloadRecord(Frozen):
    """A workload with its parameters; ``margin`` is a fraction, stated before the data."""

    name: Name
    title: Text
    family: Family
    mode: Mode
    margin: float = Field(gt=0, lt=1)
    work_unit: Text
    params: dict[Name, Value]
    metrics: list[MetricRecord] = Field(min_length=1)
    package: Text = ""  # As in `PlatformRecord`.
    #: Raised when its figures are computed otherwise: figures of two revisions are not compared. Revision 1 is not
    #: written, because a tare that does not know the field would refuse to resume the campaign.
    revision: int = Field(default=1, ge=1, le=MAX, exclude_if=lambda revision: revision == 1)
    level: LevelRecord | None = None  # None: not part of a curve.
    #: The user's command. Not written for other workloads, so that a tare without this field can resume.
    program: ProgramRecord | None = Field(default=None, exclude_if=lambda program: program is None)
    #: The option that selects it, if not its name: ``app:FILE``
    origin: Text = Field(default="", exclude_if=lambda origin: not origin)

    @property
    def main_metrics(self) -> list[MetricRecord]:
        """The headline and the CPU cost, which are compared over campaigns, and watched in a running campaign."""
        return [metric for at, metric in enumerate(self.metrics) if at == 0 or metric.name == CPU_COST]


class ResourceRecord(Frozen):
    """Resources of every instance: host CPU numbers, and limits of memory and of its own filesystem in bytes."""

    cpus: list[Cpu]
    memory_bytes: Bytes
    data_bytes: Bytes | None = None  # None: a folder of the host's.
    cpu_quota: Finite | None = Field(default=None, gt=0)  # CPUs' worth of time; None: all of their CPUs' time.
    #: The CPU of ``cpus`` on which probes worked in their slices; None: any.
    probe_cpu: Cpu | None = None
    harness_cpus: list[Cpu] = []  # CPUs of tare and the client; some are the instances' too if none was left.
    #: CPUs of the client where it had others than tare. Not written elsewhere, so that an older tare can resume.
    client_cpus: list[Cpu] = Field(default=[], exclude_if=lambda cpus: not cpus)


class LeftOut(Frozen):
    """A platform that was requested, or is known, but did not take part."""

    platform: Name
    reason: Text
    fix: Text | None = None


class SettingRecord(Frozen):
    """A setting of the host's for `--tune`; ``former`` and ``value`` as the kernel writes them."""

    name: Line
    path: Line  # Below /; empty if this host has no such setting.
    outcome: SettingOutcome
    former: Line | None
    value: Line | None  # During the campaign.
    why: Line  # The reason for the value, or for not changing it.


class ClientRecord(Frozen):
    """Another machine that loaded the instances' servers, with its facts when the campaign began."""

    client: Line  # As the user named it: ssh:[USER@]HOST[:PORT].
    name: Line
    address: Line  # Its own, as the host saw it.
    called: Line  # The host's address that it called.
    kernel: Line
    model: Text  # Of its processor.
    cpus: int = Field(ge=1, lt=2**16)
    memory_bytes: Bytes
    clock_source: Line = ""
    clock_ahead_s: Finite | None = None  # Of its wall clock against the host's; None: not read.


class CampaignRecord(Frozen):
    """One planned set of measurements on one host."""

    id: Name  # uuid4
    created: float = Field(ge=0, le=LAST_MOMENT)  # UNIX time, seconds.
    tare_version: Name
    seed: int = Field(ge=-MAX, le=MAX)
    profile: Name
    baseline: Name  # Name of the platform that the others are compared with.
    arms: list[tuple[Name, Annotated[int, Field(ge=0, le=127)]]]  # Platform, replica.
    platforms: list[PlatformRecord]
    workloads: list[WorkloadRecord]
    resources: ResourceRecord
    host: Facts
    image: Facts
    agent_hash: Line
    fairness: Facts = {}
    blocks: int | None = Field(default=None, ge=0, le=MAX)
    time_budget_s: Finite | None = None
    left_out: list[LeftOut] = []
    asked: list[Name] = []  # Platforms that the user named, which are compared even if something about them is unfair.
    design: Design = Design.BLOCKS
    in_order: bool = False  # A block's workloads ran as listed, and not in random order.
    scale: Annotated[str, Field(pattern="^(scaled|full)$")] | None = None  # Of a study's profile.
    targets: dict[Name, Finite] = {}  # Half-width, as a fraction, at which a workload has enough blocks.
    tuning: list[SettingRecord] | None = None  # None: the campaign ran without --tune.
    slowed: list[
        Finite
    ] = []  # Shares of added sliced work: every platform has a copy for each (`tare.campaign.execution.slowed`).

    #: The machine that the load came from. Not written for this host's own client, so that an older tare can resume.
    client: ClientRecord | None = Field(default=None, exclude_if=lambda client: client is None)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """Raise `ValueError` if names are not unique, or too many for a report."""
        _unique("arm", self.arms)
        _unique("platform", (platform.name for platform in self.platforms))
        _unique("workload", (workload.name for workload in self.workloads))
        for workload in self.workloads:
            _unique(f"metric of {workload.name}", (metric.name for metric in workload.metrics))
        if self.arms and self.baseline not in {platform for platform, _ in self.arms}:
            raise ValueError(f"its baseline {self.baseline} is not among its arms")
        cells = len(self.arms) * sum(len(workload.metrics) for workload in self.workloads)
        if cells > MAX_CELLS:
            raise ValueError(f"it has {cells:,} cells of arms and metrics, and {MAX_CELLS:,} is the most")
        return self

    def all_arms(self) -> list[Arm]:
        """Return the treatments of a block, in the recorded order."""
        return [Arm(platform, replica) for platform, replica in self.arms]


def _unique(kind: str, names: Iterable[object]) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise ValueError(f"the {kind} {name} is there {times} times")
