"""The contract of workloads whose trials start instances of their own; as pure as all others.

Before such a trial the campaign ends the block's instances, so that none of its own runs beside those of the trial, and
it ends the trial's instances afterwards. The class of the workload, one of those here, decides what a trial does.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from tare.capacity_model import Fill
from tare.errors import ParseError
from tare.model import Direction, Family, Metric, Mode
from tare.workloads.base import (
    Command,
    MemoryUsage,
    Outcome,
    Params,
    RunPlan,
    RunWorkload,
    SliceWorkload,
    Surroundings,
    Workload,
)


class ApartWorkload(Workload):
    """A trial starts the instances that it needs, and has the campaign's CPUs to itself."""

    mode: ClassVar[Mode] = Mode.APART

    @property
    def all_metrics(self) -> tuple[Metric, ...]:
        """Own metrics: without measured work there is no CPU cost."""
        return self.metrics


class DensityWorkload(ApartWorkload):
    """A workload that runs in 1, 2, 4 ... instances of a platform at once (Anjali 2020, 4.2 and figures 5 and 8).

    All of them share the campaign's CPUs (``--cpus``; by default one), each with the campaign's memory limit: with
    more instances than CPUs, the figures also have the cost of sharing a CPU in them. Parameter ``most``: the last of
    `COUNTS` that is tried; metrics of more instances then have no figures.
    """

    family = Family.DENSITY
    COUNTS: ClassVar[tuple[int, ...]] = (1, 2, 4, 8, 10)

    def counts(self, params: Params) -> tuple[int, ...]:
        """Return the numbers of instances at once that a trial tries, in order."""
        return tuple(count for count in self.COUNTS if count <= int(params["most"]))

    def figures(self, count: int, each: Sequence[float], total: float | None = None) -> dict[str, float]:
        """Return the metrics of ``count`` instances at once: the mean of each one's figure, and ``total`` (their sum).

        Of one instance there is only ``each-1``, which is all. Raises `ParseError` when a figure is not positive.
        """
        if len(each) != count or any(figure <= 0 for figure in each):
            figures = ", ".join(f"{figure:g}" for figure in each) or "nothing"
            raise ParseError(f"{count} instances at once gave {figures}")
        by_metric = {f"each-{count}": sum(each) / count}
        if count > 1:
            by_metric[f"total-{count}"] = sum(each) if total is None else total
        return by_metric


def density_metrics(unit: str, direction: Direction, each: str, total: str) -> tuple[Metric, ...]:
    """Return the metrics that `DensityWorkload.figures` gives, ``total-4`` first.

    ``each`` and ``total`` say what they are.
    """
    pairs = []
    for count in DensityWorkload.COUNTS:
        many = f"{count} instances" if count > 1 else "one instance"
        pairs.append(Metric(f"each-{count}", unit, direction, f"{each} with {many} at once"))
        if count > 1:
            pairs.append(Metric(f"total-{count}", unit, direction, f"{total} with {many} at once"))
    return tuple(sorted(pairs, key=lambda metric: metric.name != "total-4"))


class _TimedDensity(DensityWorkload):
    """A density workload in which work is done, which has a CPU cost."""

    @property
    def all_metrics(self) -> tuple[Metric, ...]:
        """Own metrics, and the CPU cost of all instances of the largest number together, for a unit of their work."""
        cost = Metric("cpu-cost", f"ns/{self.work_unit}", Direction.LOWER, "CPU cost of the whole platform at its most")
        return (*self.metrics, cost)

    def inner_params(self, params: Params) -> Params:
        """Return the parameters of the workload that runs in each instance."""
        return {key: value for key, value in params.items() if key != "most"}


class ProbeDensity(_TimedDensity):
    """A sliced workload's probe in all instances: their slices begin at one instant.

    Parameters: ``most``, and those of the probe and of the schedule as the sliced workload has them.
    """

    inner: ClassVar[SliceWorkload]
    metric: ClassVar[str]  # of ``inner``: the rate that is reported


class RunDensity(_TimedDensity):
    """Another workload's measured commands in all instances (or at the client, towards them) at once.

    Parameters: ``most``, and the other workload's.
    """

    inner: ClassVar[RunWorkload]
    metric: ClassVar[str]  # of ``inner``: the rate that is reported


class BesideWorkload(ApartWorkload):
    """Another workload's run alone, and beside a noisy neighbour in a second instance of the same platform.

    Both instances live all the time, share the campaign's CPUs and have its memory limit each; the neighbour is idle
    while the other is alone. Parameters: ``pairs`` of a run alone and one beside, the order of the two turned from pair
    to pair, since a machine's speed drifts; and the other workload's.
    """

    family = Family.DENSITY
    inner: ClassVar[RunWorkload]
    rate: ClassVar[str]  # of ``inner``: the metric that is reported, and the one of its latency
    latency: ClassVar[str]

    def inner_params(self, params: Params) -> Params:
        """Return the parameters of the workload that runs alone and beside."""
        return {key: value for key, value in params.items() if key != "pairs"}

    @abstractmethod
    def noise(self, around: Surroundings) -> tuple[Command, ...]:
        """Return what makes the noise, started in this order: servers, and what the client does to them.

        ``around``: the second instance's surroundings. One at the client's side has no ``ready``. All must go on for
        as long as they are let.
        """

    def figures(self, alone: Outcome, beside: Outcome) -> dict[str, float]:
        """Return the metrics of one pair. Raises `ParseError` when a figure is not positive."""
        rates = [outcome.samples[self.rate] for outcome in (alone, beside)]
        latencies = [outcome.samples[self.latency] for outcome in (alone, beside)]
        if min(*rates, *latencies) <= 0:
            raise ParseError(f"alone and beside a neighbour there were {rates} and {latencies}")
        return {
            "kept": 100 * rates[1] / rates[0],
            "alone": rates[0],
            "beside": rates[1],
            "latency": 100 * latencies[1] / latencies[0],
        }


def beside_metrics(unit: str, rate: str, latency: str) -> tuple[Metric, ...]:
    """Return the metrics that `BesideWorkload.figures` gives; ``rate`` and ``latency`` say of what."""
    return (
        Metric("kept", "%", Direction.HIGHER, f"{rate}: of the figure alone, beside the neighbour"),
        Metric("alone", unit, Direction.HIGHER, f"{rate}, the neighbour idle"),
        Metric("beside", unit, Direction.HIGHER, f"{rate}, beside the neighbour"),
        Metric("latency", "%", Direction.LOWER, f"{latency}: of the figure alone, beside the neighbour"),
    )


class SplitWorkload(ApartWorkload):
    """An application of several servers, each in an instance of its own, which talk over the platform's network.

    All instances are of one platform, share the campaign's CPUs and have its memory limit each. While they live they
    reach each other and the client, and nobody else. The parameters are those of ``inner``.
    """

    inner: ClassVar[RunWorkload]  # the same in one instance: what is measured, and how it is read
    parts: ClassVar[tuple[str, ...]]  # what each instance is, in the order in which they come into service

    @property
    def all_metrics(self) -> tuple[Metric, ...]:
        """The metrics of ``inner``; the CPU cost is that of all instances together."""
        return self.inner.all_metrics

    @abstractmethod
    def plans(self, params: Params, around: Sequence[Surroundings]) -> Sequence[RunPlan]:
        """Return what runs in each instance, in the order of ``parts``; only the last one's plan has measured commands.

        Raises `HostError` when the surroundings do not suffice.
        """


class StartDensity(DensityWorkload):
    """All start commands are given at one instant."""


@dataclass(frozen=True, slots=True)
class MemoryReading:
    """The host's memory that a number of idle instances takes, in bytes."""

    usages: tuple[MemoryUsage, ...]  # one for each instance
    available: int  # on the host for new programs (MemAvailable)


class MemoryDensity(DensityWorkload):
    """The memory of idle instances is measured, of all of them after each step."""

    @abstractmethod
    def measure_memory(self, before: int, readings: Sequence[MemoryReading]) -> dict[str, float]:
        """Return the figures of one trial. ``before``: available without any instance, in bytes; ``readings``: by step.

        Raises `ParseError` for readings that no instances have.
        """


@dataclass(frozen=True, slots=True)
class ImageSizes:
    """The sizes of an image, in bytes."""

    disk: int  # disk space really used by the platform's form, with what a guest needs to boot
    unpacked: int | None  # lengths of all files in it; None: what runs is not the image


class Operation(StrEnum):
    """An operation on an instance by its platform's own commands, and the end of its time."""

    CREATE = "create"  # root, network and bundle are made, and the platform's record of it
    START = "start"  # the platform says that it runs; one whose start stays: its program has printed something
    EXECUTE = "execute"  # a command run inside has returned
    PAUSE = "pause"  # the command has returned, and the instance uses no CPU time
    RESUME = "resume"  # the instance uses CPU time again
    STOP = "stop"  # the program was told to end, and no process of the instance is left
    KILL = "kill"  # no process of the instance is left
    REMOVE = "remove"  # nothing of it is left on the host
    SNAPSHOT = "snapshot"  # the command has returned: the instance's state is on the disk, and it continues
    RESTORE = "restore"  # the command has returned: the instance runs from there


@dataclass(frozen=True, slots=True)
class OperationStep:
    """One operation, in ns."""

    wall_ns: int
    cpu_ns: int  # of the whole platform: its commands, the instance, its daemons
    first_ns: int | None = None  # until the first byte of what a command run inside has printed


#: The operations of one round, and its ``None``: all of them and what lies between, as the clock has it.
Round = Mapping[Operation | None, OperationStep]


class LifeWorkload(ApartWorkload):
    """Operations on instances by the platform's own commands, as its users type them, again and again.

    Parameter ``time_s``: for how long rounds are begun; the first is always. Each round is of a new instance, unless
    operations come ``before``: then all are of one.
    """

    family = Family.LIFE
    payload: ClassVar[tuple[str, ...]]  # the program that is the instance; it prints a line once it runs
    before: ClassVar[tuple[Operation, ...]] = ()
    each: ClassVar[tuple[Operation, ...]]  # of a round
    #: operations after whose refusal the instance is as before: a round ends with it, and the trial does not
    may_fail: ClassVar[frozenset[Operation]] = frozenset()

    @abstractmethod
    def read(self, rounds: Sequence[Round]) -> Outcome:
        """Return the figures of one trial, of which one round at least is whole. Raises `ParseError`.

        A round that ended with a refusal does not have that operation.
        """


@dataclass(frozen=True, slots=True)
class Restored:
    """An instance that was restored, in ns from the restore's command on, but for ``read_ns``."""

    done_ns: int  # the platform says that it runs
    command_ns: int  # a first command has run inside
    read_ns: int  # how long the instance took to read its former memory again


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot of an instance that had touched memory, and restores from it. Times in ns."""

    wall_ns: int  # until the command had returned
    silent_ns: int  # the longest that the instance did not answer meanwhile
    cpu_ns: int
    disk_bytes: int
    read_ns: int  # how long the instance took to read its memory before
    warm: Restored  # its files in the page cache
    dropped: Restored  # and not


class SnapshotWorkload(ApartWorkload):
    """Snapshots of an instance with much memory, by the platform's own commands, and restores from them.

    The instance says that it is there a thousand times a second, and reads its memory when it is asked; the host checks
    that it is the same. Parameters: ``time_s``, for how long rounds are begun; ``memory_mib``: the instance's limit.
    """

    family = Family.LIFE
    touched_mib: ClassVar[int]
    read_mib: ClassVar[int]  # of them, so much is read again
    payload: ClassVar[tuple[str, ...]]

    @abstractmethod
    def read(self, snapshots: Sequence[Snapshot]) -> Outcome:
        """Return the figures of one trial. Raises `ParseError`."""


@dataclass(frozen=True, slots=True)
class BurstStart:
    """One start of a burst: until its first command had returned, in ns, or why it failed."""

    wall_ns: int | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Burst:
    """Starts that were issued together; ``total_ns``: from the first one's issue to the last one's end."""

    starts: tuple[BurstStart, ...]
    total_ns: int
    cpu_ns: int  # of all of them, with the daemons'


class BurstWorkload(ApartWorkload):
    """1, 2, 4 ... starts by the platform's own commands, issued together, each up to its first command.

    What users make by hand before is made before. A start that fails is a figure. Parameters: ``most``, the last of
    `COUNTS` that is tried; ``starts``: so many are tried of each number at least, in several bursts one after the other
    where that is smaller; ``memory_mib``: the limit of each instance; ``time_s``: once bursts have taken so long, no
    larger number is tried.
    """

    family = Family.LIFE
    COUNTS: ClassVar[tuple[int, ...]] = (1, 2, 4, 8, 16, 32, 64)
    payload: ClassVar[tuple[str, ...]]  # as of `LifeWorkload`

    def sizes(self, params: Params) -> tuple[int, ...]:
        """Return the number of starts of each burst, in order."""
        counts = (count for count in self.COUNTS if count <= int(params["most"]))
        return tuple(count for count in counts for _ in range(max(1, int(params["starts"]) // count)))

    @abstractmethod
    def gap_s(self, params: Params) -> float:
        """Time between two starts of a burst, in seconds; 0: all are issued at one instant."""

    @abstractmethod
    def read(self, bursts: Sequence[Burst]) -> Outcome:
        """Return the figures of one trial. Raises `ParseError`."""


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies of one instance that were started at one instant from its snapshot."""

    started: Burst
    #: the host's memory that they take once all have read their memory again, in bytes, shared pages split
    pss_bytes: int


class ForkWorkload(ApartWorkload):
    """Copies of one prepared instance, 1, 4, 16 at one instant, from its snapshot. Each answers and reads its memory.

    Parameters: ``most``, the last of `COUNTS` that is tried; ``memory_mib``: the limit of each.
    """

    family = Family.LIFE
    COUNTS: ClassVar[tuple[int, ...]] = (1, 4, 16)
    read_mib: ClassVar[int]
    payload: ClassVar[tuple[str, ...]]

    def counts(self, params: Params) -> tuple[int, ...]:
        """Return the numbers of copies, in order."""
        return tuple(count for count in self.COUNTS if count <= int(params["most"]))

    @abstractmethod
    def read(self, copies: Sequence[Copies]) -> Outcome:
        """Return the figures of one trial. Raises `ParseError`."""


@dataclass(frozen=True, slots=True)
class Restart:
    """A restart of an engine beside running instances."""

    wall_ns: int  # from the restart's beginning until a new instance had run a first command
    answers_ns: int  # of it, until the engine said that it is there
    running: int
    survivors: int  # of them, those that ran a command afterwards


class RestartWorkload(ApartWorkload):
    """The engine that instances share is restarted, where it is one of tare's own. Parameter ``running``: instances."""

    family = Family.LIFE
    payload: ClassVar[tuple[str, ...]]

    @abstractmethod
    def read(self, restart: Restart) -> Outcome:
        """Return the figures of one trial. Raises `ParseError`."""


class ImageWorkload(ApartWorkload):
    """No instance is started: the files of the platform's form of the image are measured."""

    @abstractmethod
    def read(self, sizes: ImageSizes) -> dict[str, float]:
        """Return the figures of one trial. Raises `ParseError` for sizes that no image has."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try with a memory limit: the best rate that was seen, or why there is none."""

    limit_bytes: int
    rate: float | None
    reason: str = ""


class LeastWorkload(ApartWorkload):
    """The least memory limit with which the work runs as fast as with the campaign's: found by bisection.

    An instance is started anew with each limit. One that does not start, or is lost at work, shows that a limit is too
    small: that is no failure of the trial.
    """

    step_bytes: ClassVar[int]
    inner: ClassVar[SliceWorkload]
    metric: ClassVar[str]

    @abstractmethod
    def suffices(self, params: Params, whole: Attempt, tried: Attempt) -> bool:
        """Return True if a limit is enough: ``tried`` with it, compared with ``whole``, with the campaign's limit."""

    @abstractmethod
    def inner_params(self, params: Params) -> Params:
        """Return the sliced workload's own parameters."""

    @abstractmethod
    def read(self, least_bytes: int) -> dict[str, float]:
        """Return the figures of one trial by metric name. ``least_bytes``: the least limit that was enough."""


class FillWorkload(ApartWorkload):
    """Ever more idle instances of one platform, measured at every level: how many fit is predicted from it.

    Parameters: ``most`` instances at once; ``time_s`` of adding them, unless ``fill``: then instances are added until
    a limit breaks or the host is full. ``reserve``: the share of the host's memory, threads and other ceilings that
    stays free. ``budget_bytes``: the memory that the instances may take, as if the host had no more for them; 0: all
    but the reserve. Limits, each 0 where there is none: ``start_p99_s``, ``failures`` (a share of the starts), ``keep``
    (a share of a working instance's work alone), ``memory_stall`` and ``cpu_stall`` (shares of the time, PSI).
    ``active``: the share of the instances that are put to work at once, on `primes`, after each level was measured.
    """

    family = Family.DENSITY
    application: RunWorkload | None = None  # of the user's: its servers run in each instance; None: the agent alone

    @abstractmethod
    def read(self, fill: Fill) -> dict[str, float]:
        """Return the figures of one trial by metric name. Raises `ParseError` for a fill without an instance."""
