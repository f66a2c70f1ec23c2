"""The report's part on footprints as data (docs/report-schema.md). Sets are counts here; an export has the things."""

from __future__ import annotations

from typing import Literal

from tare.features.kernel.analysis.footprint_sets import View
from tare.footprint_model import Phase, Scope
from tare.model import Level
from tare.records import Documented

#: A phase, or the union of both.
Phases = Phase | Literal["both"]


class SetReport(Documented):
    """The number of different things that a platform ran."""

    platform: str
    """The platform."""
    view: View
    """Whose events."""
    phase: Phases
    """Of which phase."""
    workload: str | None
    """Of which workload; null: the union over all. With a workload the start is in it."""
    n_repeats: int
    """Repeats in which all that makes up the union was counted."""
    things: int
    """How many different ones ran."""
    share_percent: float | None
    """Of `known`; null where that is not known."""
    lost: int
    """Events that were not counted."""
    jaccard_mean: float | None
    """What two repeats share of what either has, 0 to 1: the mean over pairs."""
    jaccard_least: float | None
    """The least of them."""
    estimate: float | None
    """How many there are at least, those that no repeat saw included (Chao 2)."""
    estimate_low: float | None
    """Lower end of its interval."""
    estimate_high: float | None
    """Upper end of its interval."""
    why_no_estimate: str | None
    """Why there is none."""
    lacking: list[str] = []
    """Workloads that others were counted in."""


class RegionReport(Documented):
    """The number of things that exactly these platforms ran."""

    platforms: list[str]
    """The platforms."""
    things: int
    """How many things exactly these ran, and no other."""


class OverlapReport(Documented):
    """All regions of some sets."""

    view: View
    """Whose events."""
    phase: Phases
    """Of which phase."""
    workload: str | None
    """Of which workload; null: the union over all."""
    platforms: list[str]
    """The platforms that are compared."""
    regions: list[RegionReport]
    """All regions of their sets."""


class DirectoryReport(Documented):
    """The sets of the best view cut by a directory of the source."""

    directory: str
    """The directory; `unknown`: of things whose file is not known."""
    things: dict[str, int]
    """How many ran, by platform."""
    union: int
    """How many ran on any platform."""
    in_all: int
    """How many ran on all of them."""
    regions: list[RegionReport]
    """All regions of the sets."""


class RatioReport(Documented):
    """A platform's rate by the baseline's, with its 95 % interval where there are repeats for one."""

    point: float
    """The ratio."""
    low: float | None
    """Lower end of its interval; null without repeats."""
    high: float | None
    """Upper end of its interval."""
    sure: bool
    """Whether the interval is there and does not hold 1."""


class FrequencyReport(Documented):
    """A thing whose rate differs from the baseline's."""

    workload: str
    """The workload, in the steady phase."""
    thing: str
    """The thing."""
    rates: dict[str, float]
    """Hits a second, by platform."""
    ratios: dict[str, RatioReport]
    """To the baseline's, by platform."""
    everywhere: bool
    """Whether every platform ran it."""


class AttackProfileReport(Documented):
    """The horizontal attack profile of a platform: densities of bugs over what it ran."""

    platform: str
    """The platform."""
    phase: Phases
    """Of which phase."""
    score: float
    """Densities added up."""
    things: int
    """Things that ran."""
    by_default: int
    """Of these, things that only the default density fits."""
    share_percent: float | None
    """Of the known things; with uniform densities only."""
    of_baseline: float | None
    """The score by the baseline's, a factor."""


class FileReport(Documented):
    """A source file that platforms run differently."""

    file: str
    """The file."""
    things: dict[str, int]
    """Lines that ran, by platform."""
    exclusive: dict[str, int]
    """Lines that this platform alone ran, by platform."""
    union: int
    """Lines that ran on any platform."""
    in_all: int
    """Lines that ran on all of them."""


class BesideLinesReport(Documented):
    """A count of lines that a study prints, and ours of the platforms that stand for its own."""

    where: str
    """Where the study has it."""
    what: str
    """The study's figure in words."""
    study_lines: int
    """Its lines."""
    study_share_percent: float | None
    """Its share of the kernel's lines; null where not printed."""
    platforms: list[str]
    """Ours that stand for theirs; empty where one was not counted."""
    lines: int | None
    """Our lines; null where not counted."""
    share_percent: float | None
    """Our share of the kernel's lines."""


class LevelReport(Documented):
    """One level."""

    level: Level
    """The level."""
    platforms: list[str]
    """Platforms that were counted."""
    baseline: str
    """The platform that rates are compared with."""
    workloads: list[str]
    """Workloads that were counted."""
    phases: list[Phases]
    """Phases that were counted, and `both` where there are both."""
    views: list[View]
    """Views that there are."""
    view: View | None
    """The one that is used where there is only one; null where only the idle host was counted."""
    known: int | None
    """How many things of the level this kernel has; null where that is not known."""
    idle_seconds: float | None
    """How long the idle host was counted; null where it was not."""
    idle_things: int | None
    """How many things ran on it; null where it was not counted."""
    reading_things: int | None
    """Lines only: how many a reading leaves by itself, which is taken off all others in hits; null where no empty one
    was counted.
    """
    sets: list[SetReport]
    """One entry a platform, view, phase and workload."""
    overlaps: list[OverlapReport]
    """One entry a view, phase and workload."""
    directories: list[DirectoryReport]
    """Of the level's view, all phases and workloads."""
    frequencies: list[FrequencyReport]
    """Things whose rates differ from the baseline's."""
    attack_profiles: list[AttackProfileReport]
    """One entry a platform and phase."""
    files: list[FileReport]
    """Lines only: files with most lines that one platform alone runs."""
    n_files: int
    """In how many files platforms differ."""

    def set_of(self, platform: str, view: str, phase: str, workload: str | None = None) -> SetReport | None:
        """One set; None where it was not counted."""
        key = (platform, view, phase, workload)
        return next((row for row in self.sets if (row.platform, row.view, row.phase, row.workload) == key), None)


class SharesReport(Documented):
    """Samples of the work, by what their stacks have."""

    name: str
    """What their stacks have."""
    percent: float
    """Of all samples."""


class StacksReport(Documented):
    """Samples of the CPUs while a platform started or worked. Percentages are of the samples."""

    platform: str
    """The platform; `idle`: the idle host."""
    scope: Scope
    """Everybody's, or of the instance's processes."""
    phase: Phase
    """Of which phase."""
    workload: str | None
    """The workload; null in the start and on the idle host."""
    n_repeats: int
    """Repeats."""
    seconds: float
    """Of all repeats."""
    samples: int
    """Samples."""
    lost: int
    """Samples that are missing, of everybody's."""
    cpus: float
    """CPUs that were busy, on average."""
    kernel_percent: float | None
    """Of the samples, those in the kernel; null where there is no sample."""
    user_percent: float | None
    """Those in user mode."""
    guest_percent: float | None
    """Those in the guest of a virtual machine."""
    entries: list[SharesReport]
    """What the kernel was entered for, the greatest first."""
    own_time: list[SharesReport]
    """Functions of the kernel, without what they call, the greatest first."""


class AmountReport(Documented):
    """A number over repeats, each of which is a machine of its own."""

    median: float
    """The median."""
    least: float
    """The least of any repeat."""
    most: float
    """The most of any repeat."""


class CommandReport(Documented):
    """The work of all tasks of one name."""

    command: str
    """What the kernel calls them."""
    instance: bool
    """Whether they are in the instance's control groups."""
    instructions: AmountReport
    """Of programs and of the kernel together."""


class CodeReport(Documented):
    """The work of one piece of code, whoever ran it."""

    side: str
    """`user` or `kernel`: of programs, or of the host's kernel."""
    place: str
    """The file that a program's code was mapped from, or the kernel's function; in brackets what has no name."""
    instructions: AmountReport
    """How many."""


class CacheReport(Documented):
    """One cache of the model that the processor's way to memory went through, tare's own commands left out."""

    name: str
    """Which one."""
    asked: AmountReport
    """Lines of 64 bytes that it was asked for."""
    missed: AmountReport
    """Of these, those that it had not."""


class InstructionsReport(Documented):
    """Instructions of a whole machine while a platform started or worked: work, and not time.

    Where it says so, without what tare's own commands did meanwhile.
    """

    platform: str
    """The platform."""
    phase: Phase
    """Of which phase."""
    workload: str | None
    """The workload; null in the start."""
    n_repeats: int
    """Repeats, each of which is a machine of its own whose kernel had other random numbers."""
    total: AmountReport | None
    """Instructions of programs and of the kernel, tare's own left out; null where there are none, as below."""
    user: AmountReport | None
    """Of these, those of programs."""
    kernel: AmountReport | None
    """Of these, those of the host's kernel."""
    instance_user: AmountReport | None
    """Of `user`, those of tasks in the instance's control groups."""
    instance_kernel: AmountReport | None
    """Of `kernel`, those for tasks in the instance's control groups."""
    outside_guest: AmountReport | None
    """Of `total`, those that the host executed and no guest of its /dev/kvm; null where it ran none."""
    until_ready: AmountReport | None
    """Instructions in a start until the agent had its first word, of everybody, tare included."""
    repeated: AmountReport | None
    """Iterations of repeated string instructions, which are not in `user` and `kernel`."""
    loads: AmountReport | None
    """Instructions that read memory."""
    stores: AmountReport | None
    """Instructions that wrote memory."""
    calls: AmountReport | None
    """System calls."""
    switches: AmountReport | None
    """Switches between tasks, tare's too."""
    faults: AmountReport | None
    """Page faults."""
    interrupts: AmountReport | None
    """Interrupts of devices and timers, whoever ran meanwhile."""
    unit: AmountReport | None
    """Instructions for one unit of a workload's work; null for a workload that has no units, as are the two below."""
    in_pieces: bool
    """Whether units were counted piece by piece; else `unit` is all of a run, its programs' start too, by its units."""
    unit_user: AmountReport | None
    """Of these, those of programs."""
    unit_kernel: AmountReport | None
    """Of these, those of the host's kernel."""
    commands: list[CommandReport]
    """Who executed them, the most first."""
    code: list[CodeReport]
    """Which code it was, the most first, tare's own commands left out; empty in files of an older tare."""
    caches: list[CacheReport]
    """What a model of caches had and had not; empty where it was not asked for."""


class FootprintsReport(Documented):
    """Parts of the host's kernel that platforms ran, by level; stacks, which are no sets, are apart."""

    levels: list[LevelReport]
    """One entry a level."""
    weights: str
    """The title of the attack profile's densities."""
    uniform: bool
    """Whether these are all alike."""
    beside: list[BesideLinesReport] = []
    """Our lines beside a study's."""
    study: str | None = None
    """The study that they are set beside, or null."""
    stacks: list[StacksReport] = []
    """Where CPUs were found: samples, which are no sets."""
    instructions: list[InstructionsReport] = []
    """What a whole machine executed, counted by its emulator."""
