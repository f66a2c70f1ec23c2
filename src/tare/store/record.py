"""The record of a campaign in its file: written once, before the first trial, and never changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Self

from pydantic import Field, model_validator

from tare.model import CPU_COST, Arm, Design, Direction, Family, Mode, SettingOutcome
from tare.records import Facts, Frozen, Line
from tare.store.limits import LAST_MOMENT, MAX, MAX_CELLS

#: A file may come from a stranger: what is a name is no book, and what is a number is one that a machine can have.
Name = Annotated[Line, Field(min_length=1, max_length=200)]
Text = Annotated[Line, Field(max_length=10_000)]
#: A word of a command, which may have lines of its own; and a path, or the name of an image.
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
    """A platform as it was on the day: what the report names, and what it could not honour."""

    name: Name
    title: Text
    version: Text
    details: dict[Name, Text] = {}
    image_bytes: Bytes | None = None  # its form of the image, on disk
    not_honoured: list[Text] = []
    open_by_design: dict[Name, Text] = {}  # doors to the host that it leaves open: name (`*`: all), and why
    network_path: Text = ""
    remarks: dict[Name, Text] = {}  # what its figures of a family are to be read with, by the family
    daemon: Text | None = None  # the program that its instances share; "": there is none; None: an older tare asked not
    needs_root: bool | None = None  # whether only root, or a daemon of root's, can run it; None: likewise
    package: Text = ""  # of the plug-in that it comes from, with its version; "": it is tare's own
    released: Year | None = None  # in which the line of its version first came out; None: not known


class MetricRecord(Frozen):
    """A metric's facts; the first of a workload is a headline, whatever it says of itself."""

    name: Name
    unit: Text
    direction: Direction
    title: Text
    resolution: Finite | None = Field(default=None, gt=0)  # the steps that its figures move in, where that is known
    headline: bool = False  # whether tables show it beside the first


class LevelRecord(Frozen):
    """The place of a workload on a curve: ``at`` so much load in ``unit``; ``rate`` and ``latency`` are its metrics."""

    curve: Name
    at: Finite
    unit: Text
    rate: Name
    latency: Name
    limit: Finite  # of the latency, in its unit: the best rate below is a result of the curve


class ProgramRecord(Frozen):
    """A user's own command, as `tare.model.Program` has it: what a resume runs."""

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
    """A workload with the parameters that it ran with; ``margin`` is a fraction, stated before the data."""

    name: Name
    title: Text
    family: Family
    mode: Mode
    margin: float = Field(gt=0, lt=1)
    work_unit: Text
    params: dict[Name, Value]
    metrics: list[MetricRecord] = Field(min_length=1)
    package: Text = ""  # as in `PlatformRecord`
    #: raised when its figures are computed otherwise: those of two revisions are not compared. The first is not
    #: written: a tare that does not know the field would not resume the campaign.
    revision: int = Field(default=1, ge=1, le=MAX, exclude_if=lambda revision: revision == 1)
    level: LevelRecord | None = None  # None: it is not one of a curve's
    #: the user's command that it is; not written of others, for the tares that do not know the field
    program: ProgramRecord | None = Field(default=None, exclude_if=lambda program: program is None)
    #: by what it is chosen where that is not its name: ``app:FILE``
    origin: Text = Field(default="", exclude_if=lambda origin: not origin)

    @property
    def main_metrics(self) -> list[MetricRecord]:
        """The headline and the CPU cost: what is compared over campaigns, and what a campaign under way looks at."""
        return [metric for at, metric in enumerate(self.metrics) if at == 0 or metric.name == CPU_COST]


class ResourceRecord(Frozen):
    """What every instance got alike: host CPU numbers, the limits of memory and of a filesystem of its own in bytes."""

    cpus: list[Cpu]
    memory_bytes: Bytes
    data_bytes: Bytes | None = None  # None: a folder of the host's
    cpu_quota: Finite | None = Field(default=None, gt=0)  # CPUs' worth of time; None: all of their CPUs'
    #: the one of ``cpus`` on which probes worked in their slices; None: on any (as in files of before it was so)
    probe_cpu: Cpu | None = None
    harness_cpus: list[Cpu] = []  # where tare and the client ran; instances had some of them too where none was left


class LeftOut(Frozen):
    """A platform that was asked for, or known, and did not take part."""

    platform: Name
    reason: Text
    fix: Text | None = None


class SettingRecord(Frozen):
    """A setting of the host's that `--tune` looked at; ``former`` and ``value`` as the kernel writes them."""

    name: Line
    path: Line  # below /; empty where this host has no such setting
    outcome: SettingOutcome
    former: Line | None
    value: Line | None  # during the campaign
    why: Line  # why it is wanted so, or why it was not changed


class CampaignRecord(Frozen):
    """One planned set of measurements on one host."""

    id: Name  # uuid4
    created: float = Field(ge=0, le=LAST_MOMENT)  # UNIX time, seconds
    tare_version: Name
    seed: int = Field(ge=-MAX, le=MAX)
    profile: Name
    baseline: Name  # name of the platform that the others are compared with
    arms: list[tuple[Name, Annotated[int, Field(ge=0, le=127)]]]  # platform, replica
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
    asked: list[Name] = []  # platforms that the user named: what is unfair of them is compared all the same
    design: Design = Design.BLOCKS
    in_order: bool = False  # a block's workloads ran as they are listed, and not in random order
    scale: Annotated[str, Field(pattern="^(scaled|full)$")] | None = None  # of a study's profile: "scaled" or "full"
    targets: dict[Name, Finite] = {}  # half-width at which a workload has blocks enough, as a fraction
    tuning: list[SettingRecord] | None = None  # None: the campaign ran without --tune
    slowed: list[
        Finite
    ] = []  # shares of more sliced work: every platform has a copy for each (`tare.campaign.execution.slowed`)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        """Raise `ValueError` where names are not unique, or so many that no report could hold them."""
        _unique("arm", self.arms)
        _unique("platform", (platform.name for platform in self.platforms))
        _unique("workload", (workload.name for workload in self.workloads))
        for workload in self.workloads:
            _unique(f"metric of {workload.name}", (metric.name for metric in workload.metrics))
        if self.arms and self.baseline not in {platform for platform, _ in self.arms}:
            raise ValueError(f"its baseline {self.baseline} is none of its arms")
        cells = len(self.arms) * sum(len(workload.metrics) for workload in self.workloads)
        if cells > MAX_CELLS:
            raise ValueError(f"it has {cells:,} cells of arms and metrics, and {MAX_CELLS:,} is the most")
        return self

    def all_arms(self) -> list[Arm]:
        """The treatments of a block, in the recorded order."""
        return [Arm(platform, replica) for platform, replica in self.arms]


def _unique(kind: str, names: Iterable[object]) -> None:
    for name, times in Counter(names).items():
        if times > 1:
            raise ValueError(f"the {kind} {name} is there {times} times")
