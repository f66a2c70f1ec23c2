"""What a campaign file says of itself: written once, before the first trial, and never changed."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tare.model import Arm, Design, Direction, Family, Mode


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PlatformRecord(_Frozen):
    """A platform as it was on the day: what the report names, and what it could not honour."""

    name: str
    title: str
    version: str
    details: dict[str, str] = {}
    image_bytes: int | None = None  # its form of the image, on disk
    not_honoured: list[str] = []
    open_by_design: dict[str, str] = {}  # doors to the host that it leaves open: name (`*`: all), and why
    network_path: str = ""


class MetricRecord(_Frozen):
    """A metric's facts; the first of a workload is its headline."""

    name: str
    unit: str
    direction: Direction
    title: str
    resolution: float | None = Field(default=None, gt=0)  # the steps that its figures move in, where that is known


class WorkloadRecord(_Frozen):
    """A workload with the parameters that it ran with; ``margin`` is a fraction, stated before the data."""

    name: str
    title: str
    family: Family
    mode: Mode
    margin: float = Field(gt=0, lt=1)
    work_unit: str
    params: dict[str, int | float | str | bool]
    metrics: list[MetricRecord] = Field(min_length=1)


class ResourceRecord(_Frozen):
    """What every instance got alike: host CPU numbers, the limits of memory and of a filesystem of its own in bytes."""

    cpus: list[int]
    memory_bytes: int
    data_bytes: int | None = None  # None: a folder of the host's


class LeftOut(_Frozen):
    """A platform that was asked for, or known, and did not take part."""

    platform: str
    reason: str
    fix: str | None = None


class SettingRecord(_Frozen):
    """A setting of the host's that `--tune` looked at; ``former`` and ``value`` as the kernel writes them."""

    name: str
    path: str  # below /; empty where this host has no such setting
    outcome: Literal["changed", "as wanted", "not changed"]
    former: str | None
    value: str | None  # during the campaign
    why: str  # why it is wanted so, or why it was not changed


class CampaignRecord(_Frozen):
    """One planned set of measurements on one host."""

    id: str  # uuid4
    created: float  # UNIX time, seconds
    tare_version: str
    seed: int
    profile: str
    baseline: str  # name of the platform that the others are compared with
    arms: list[tuple[str, int]]  # platform, replica
    platforms: list[PlatformRecord]
    workloads: list[WorkloadRecord]
    resources: ResourceRecord
    host: dict[str, Any]
    image: dict[str, Any]
    agent_hash: str
    fairness: dict[str, Any] = {}
    blocks: int | None = None
    time_budget_s: float | None = None
    left_out: list[LeftOut] = []
    asked: list[str] = []  # platforms that the user named: what is unfair of them is compared all the same
    design: Design = Design.BLOCKS
    in_order: bool = False  # a block's workloads ran as they are listed, and not in random order
    scale: str | None = None  # of a study's profile: "scaled" or "full"
    targets: dict[str, float] = {}  # half-width at which a workload has blocks enough, as a fraction
    tuning: list[SettingRecord] | None = None  # None: the campaign ran without --tune
    slowed: list[float] = []  # shares of more sliced work: every platform has a copy for each (`tare.campaign.slowed`)

    def all_arms(self) -> list[Arm]:
        """The treatments of a block, in the recorded order."""
        return [Arm(platform, replica) for platform, replica in self.arms]
