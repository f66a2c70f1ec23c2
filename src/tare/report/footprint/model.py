"""The report's part on footprints as data (docs/report-schema.md). Sets are counts here; an export has the things."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from tare.analysis.exposure.footprints import View
from tare.footprint.model import Level, Phase, Scope

#: A phase, or the union of both.
Phases = Phase | Literal["both"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SetReport(_Frozen):
    """How many different things a platform ran; ``workload`` None: the union over all."""

    platform: str
    view: View
    phase: Phases
    workload: str | None
    n_repeats: int  # in which all that makes up the union was counted
    things: int
    share_percent: float | None  # of all that are known; None where that is not known
    lost: int  # events that were not counted
    jaccard_mean: float | None  # of every two repeats
    jaccard_least: float | None
    estimate: float | None  # how many there are at least, those that no repeat saw included (Chao 2)
    estimate_low: float | None
    estimate_high: float | None
    why_no_estimate: str | None
    lacking: list[str] = []  # workloads that others were counted in


class RegionReport(_Frozen):
    """How many things exactly these platforms ran, and no other."""

    platforms: list[str]
    things: int


class OverlapReport(_Frozen):
    """All regions of some sets."""

    view: View
    phase: Phases
    workload: str | None
    platforms: list[str]
    regions: list[RegionReport]


class DirectoryReport(_Frozen):
    """The sets of the best view cut by a directory of the source."""

    directory: str  # "unknown": of things whose file is not known
    things: dict[str, int]  # by platform
    union: int
    in_all: int
    regions: list[RegionReport]


class RatioReport(_Frozen):
    """A platform's rate by the baseline's, with its 95 % interval where there are repeats for one."""

    point: float
    low: float | None
    high: float | None
    sure: bool  # the interval is there and does not hold 1


class FrequencyReport(_Frozen):
    """A thing whose rate differs from the baseline's."""

    workload: str
    thing: str
    rates: dict[str, float]  # hits a second, by platform
    ratios: dict[str, RatioReport]
    everywhere: bool  # every platform ran it


class AttackProfileReport(_Frozen):
    """The horizontal attack profile of a platform: densities of bugs over what it ran."""

    platform: str
    phase: Phases
    score: float
    things: int
    by_default: int  # of these, things that only the default density fits
    share_percent: float | None  # of the known things; with uniform weights only
    of_baseline: float | None


class FileReport(_Frozen):
    """A source file that platforms run differently."""

    file: str
    things: dict[str, int]  # by platform
    exclusive: dict[str, int]  # run by this platform alone
    union: int
    in_all: int


class BesideLinesReport(_Frozen):
    """A count of lines that a study prints, and ours of the platforms that stand for its own."""

    where: str
    what: str
    study_lines: int
    study_share_percent: float | None
    platforms: list[str]  # ours; empty where one was not counted
    lines: int | None
    share_percent: float | None


class LevelReport(_Frozen):
    """One level."""

    level: Level
    platforms: list[str]
    baseline: str
    workloads: list[str]
    phases: list[Phases]
    views: list[View]
    view: View | None  # the one that is shown where only one is; None: only the idle host was counted
    known: int | None
    idle_seconds: float | None  # None: the idle host was not counted
    idle_things: int | None
    reading_things: int | None  # what a reading leaves by itself, taken off everywhere; None: no empty one was counted
    sets: list[SetReport]
    overlaps: list[OverlapReport]
    directories: list[DirectoryReport]
    frequencies: list[FrequencyReport]
    attack_profiles: list[AttackProfileReport]
    files: list[FileReport]  # those with most lines that one platform alone runs
    n_files: int  # in which platforms differ

    def set_of(self, platform: str, view: str, phase: str, workload: str | None = None) -> SetReport | None:
        """One set; None where it was not counted."""
        key = (platform, view, phase, workload)
        return next((row for row in self.sets if (row.platform, row.view, row.phase, row.workload) == key), None)


class SharesReport(_Frozen):
    """Samples of the work, by what their stacks have."""

    name: str
    percent: float  # of all samples


class StacksReport(_Frozen):
    """Where CPUs were found while a platform started or worked. Percentages are of the samples."""

    platform: str  # or "idle"
    scope: Scope  # everybody's, or of the instance's processes
    phase: Phase
    workload: str | None  # None in the start and on the idle host
    n_repeats: int
    seconds: float  # of all repeats
    samples: int
    lost: int  # samples that are missing, of everybody's
    cpus: float  # that were busy, on average
    kernel_percent: float | None  # None where there is no sample
    user_percent: float | None
    guest_percent: float | None
    entries: list[SharesReport]  # what the kernel was entered for, the greatest first
    own_time: list[SharesReport]  # functions of the kernel, without what they call


class FootprintsReport(_Frozen):
    """What platforms ran of the host's kernel, by level; stacks, which are no sets, are apart."""

    levels: list[LevelReport]
    weights: str  # what the densities of the attack profile are
    uniform: bool
    beside: list[BesideLinesReport] = []
    study: str | None = None  # that the lines are set beside
    stacks: list[StacksReport] = []
