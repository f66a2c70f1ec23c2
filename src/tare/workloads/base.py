"""The contract of a workload: what to run where, a strict parser, and metrics. It knows nothing of platforms.

A workload is one file below ``tare/workloads/FAMILY/`` that defines one subclass of `RunWorkload`, `SliceWorkload`,
`StartWorkload` or one of the kinds in `tare.workloads.apart`, and names it in ``WORKLOAD``; where several differ in
data only, ``WORKLOADS`` is a tuple of them. The registry finds them by that. Third parties register theirs under the
entry point group ``tare.workloads``.

The campaign calls, in this order and once a trial:

1. `RunWorkload.plan` with the parameters and the `Surroundings`: pure, starts nothing;
2. it runs the plan's commands, timing only ``measures`` (host cgroup CPU is read around them);
3. `RunWorkload.parse` with the results of ``measures``: pure; raises `ParseError` on anything it does
   not understand, with the text in question.

Every workload also has the metric ``cpu-cost`` (ns of CPU of the whole platform per ``work_unit``), which the
campaign computes from the host's cgroup and `Outcome.work`; no workload reports it itself, nor ``host-cost``, which
those of storage and network have beside it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from tare.errors import ParseError
from tare.model import (
    CLIENT_BUSY,
    CLIENT_COST,
    DEFAULT_MARGINS,
    EVERYWHERE,
    HOST_COST,
    PEAK_MEMORY,
    PIDS,
    Application,
    Direction,
    Family,
    ImageSource,
    Layer,
    Metric,
    Mode,
    Sample,
    UserProgram,
)

#: How a preparation ends when the platform cannot do it (EX_UNAVAILABLE of sysexits.h).
UNSUPPORTED_CODE = 69

#: What the campaign measures of each run of a workload that ``counts_peak``.
PEAK = Metric(
    PEAK_MEMORY,
    "MiB",
    Direction.LOWER,
    "most memory of the instance's control group on the host; of a VM, all that its guest has touched so far",
    headline=True,
)
#: Parameter values of a workload, JSON-able; recorded in the campaign.
Params = Mapping[str, int | float | str | bool]


class Side(StrEnum):
    """The side on which a command runs."""

    INSTANCE = "instance"  # in the sandbox, by the agent
    CLIENT = "client"  # in the client's network namespace on the host, out of tare's image
    CLIENT_OWN = "client-own"  # the same out of the application's own image, where it has one


@dataclass(frozen=True, slots=True)
class Command:
    """One process to run. With ``ready`` it is a server, in service once its stdout contains these bytes."""

    argv: tuple[str, ...]
    side: Side = Side.INSTANCE
    time_limit_s: float = 60.0
    stdin: bytes = b""
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str = "/data"
    ready: bytes | None = None
    ready_limit_s: float = 10.0  # the longest time until a server is
    ready_fix: str = ""  # what helps where it is not
    one_at_a_time: bool = False  # of a server: it serves one measured command, then prints ``ready`` for the next
    may_fail: bool = False  # of what is not measured: whether it counts as done however it ends


@dataclass(frozen=True, slots=True)
class Completed:
    """The result of a command: exit code (None when a signal or the time limit ended it), output, wall time."""

    argv: tuple[str, ...]
    exit_code: int | None
    stdout: bytes
    stderr: bytes
    wall_ns: int
    timed_out: bool = False
    signal: int | None = None
    truncated: bool = False  # whether the output was longer than what is stored
    #: of a command inside: how long the host waited for its end, by its own clock; ``wall_ns`` is by the clock inside
    outside_ns: int | None = None
    #: of the largest of its processes, as the kernel below them counts (a guest's own); None: of one at the client
    max_rss_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The facts that a plan may depend on."""

    memory_bytes: int  # the instance's memory limit
    cpu_count: int
    disk_free_bytes: int  # of the data volume
    address: str | None  # where the client reaches the instance; None when it has no network
    port: int | None  # the port that is open to the client at ``address``
    instance_port: int | None  # the same port as seen inside the instance
    listen: str = EVERYWHERE  # where a server inside listens, so that the client reaches it
    services: Mapping[str, int] = field(default_factory=dict)  # ports on which it answers by itself, by service
    ping: str | None = None  # the address at which it answers echo requests; None: it answers none
    no_ping: str = ""  # the reason, when ping is None
    #: services that it neither has nor could be given, and why
    lacks: Mapping[str, str] = field(default_factory=dict)
    http_path: str = "/"  # of the page that it serves by itself
    #: where other instances of its platform reach it, at ``instance_port``; None: nowhere
    among: str | None = None
    application: Application | None = None  # how the image says that it is started; None: it is tare's
    client_cpus: int = 1  # CPUs of the client, which its tool may have a thread each for


class Drop(StrEnum):
    """Which page cache is written back and dropped: pages of the data volume's files."""

    NONE = "none"
    HOST = "host"  # the host's, of that volume alone
    GUEST = "guest"  # a guest's own; a platform that shares the host's kernel has its pages in the host's page cache
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Commands of one trial: ``prepare`` and ``cleanup`` are not timed, ``servers`` run beside ``measures``.

    A preparation in the instance that ends with `UNSUPPORTED_CODE` means that the platform cannot run the workload; the
    last line of its standard error is the reason.
    """

    measures: tuple[Command, ...]
    prepare: tuple[Command, ...] = ()
    each: tuple[Command, ...] = ()  # before each run of ``measures``, where ``prepare`` is run once; not timed
    cleanup: tuple[Command, ...] = ()
    servers: tuple[Command, ...] = ()
    #: the programs of ``measures`` with next to nothing to do: their CPU time, that of starting them, is subtracted
    #: from that of ``measures`` in the CPU cost of a unit of work
    starts: tuple[Command, ...] = ()
    drop: Drop = Drop.NONE  # what is dropped before each of ``measures``
    #: files of the data volume that ``measures`` go to past all caches, with a request or more for each unit of work:
    #: where the host finds one in its page cache afterwards, the trial is unsupported
    uncached: tuple[str, ...] = ()
    #: files of the data volume that each of ``measures`` reads: where a guest's cache cannot be dropped beside the
    #: host's, the host must find them in its own afterwards, which it does when they have not come out of the guest's
    fetched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The figures of one trial by metric name, and the work done in ``work_unit`` (for ``cpu-cost``).

    A metric is in ``samples`` (one figure a trial) or in ``series`` (a figure a round), never in both.
    """

    samples: Mapping[str, float]
    work: float
    #: metric name -> a figure for each round of a trial; None where a round has none
    series: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    unseen: Mapping[str, str] = field(default_factory=dict)  # metric name -> why it has no figure

    def as_samples(self) -> list[Sample]:
        """Return the figures as samples: those of the trial have round 0, those of a series their own round."""
        samples = [Sample(name, value) for name, value in self.samples.items()]
        for name, values in self.series.items():
            samples += [Sample(name, value, at) for at, value in enumerate(values) if value is not None]
        return samples


@dataclass(frozen=True, slots=True)
class CurveLevel:
    """The place of a workload on a curve: the same work under one load of several, each a workload and a trial."""

    curve: str  # of all its levels; they are chosen by it, too
    at: float  # how much load, in ``unit``
    unit: str
    rate: str  # the metric that is drawn over the load
    latency: str  # the metric that must stay below ``limit``
    limit: float  # in the unit of ``latency``: the best rate below is a result of the curve


class Workload(ABC):
    """The declarations of all workloads."""

    name: ClassVar[str]  # lower case, with dashes; unique
    title: ClassVar[str]  # one line for `tare list workloads`
    family: ClassVar[Family]
    mode: ClassVar[Mode]
    metrics: ClassVar[tuple[Metric, ...]]  # the first is the headline
    work_unit: ClassVar[str]
    packages: ClassVar[tuple[str, ...]] = ()  # Debian packages of all programs in the plan; they must be in the image
    layer: ClassVar[Layer | None] = None  # the layer that the image needs
    no_headline: ClassVar[str] = ""  # why its tool may leave the headline out, and what helps
    source: ClassVar[ImageSource | None] = (
        None  # what instances run in place of the image, and of all else of the campaign
    )
    origin: ClassVar[str] = ""  # by what it is chosen where that is not its name
    program: ClassVar[UserProgram | None] = None  # the user's command that it is; it is in the campaign's record
    profiles: ClassVar[Mapping[str, Params]]  # "quick" and "full"
    least: ClassVar[Mapping[str, float]] = {}  # the smallest value of a parameter with which it gives its figures
    pids: ClassVar[int] = PIDS  # processes and threads that an instance must be able to have at once; more than usual
    revision: ClassVar[int] = 1  # raised when its figures are computed otherwise: those of before do not compare
    by_default: ClassVar[bool] = False  # whether a campaign runs it when no workload was asked for
    level: ClassVar[CurveLevel | None] = None  # None: it is not one of a curve's

    @property
    def margin(self) -> float:
        """Relative difference below which a platform counts as equal, stated before the data."""
        return DEFAULT_MARGINS[self.family]

    @property
    def all_metrics(self) -> tuple[Metric, ...]:
        """Own metrics, and the whole platform's CPU cost that every timed workload has."""
        if self.mode is Mode.START:
            return self.metrics
        cost = Metric("cpu-cost", f"ns/{self.work_unit}", Direction.LOWER, "CPU cost of the whole platform")
        return (*self.metrics, cost)


class RunWorkload(Workload):
    """Runs of commands in an instance: one in each block, or as many as the parameter ``rounds``, all arms in turn.

    In rounds, since a machine's speed changes by some percent from one second to the next: short runs of all arms in
    turn share that change, and long runs one after the other do not.
    """

    mode: ClassVar[Mode] = Mode.RUN
    fresh: ClassVar[bool] = False  # whether it gets an instance of its own, in which nothing has run before
    loaded: ClassVar[bool] = True  # of an application: whether a client makes its load
    #: whether the peak of the instance's memory in each run, of one measured command, is a metric
    counts_peak: ClassVar[bool] = False
    #: bytes of the end of each output that the file keeps of a run that went well; None: all that the store takes
    kept_output: ClassVar[int | None] = None

    @property
    def all_metrics(self) -> tuple[Metric, ...]:
        """Own metrics and the CPU cost; over a network the client's too: part of a packet's way is charged to either.

        Of storage and network also the host's: its kernel's threads write back and move packets for containers, which a
        guest's own kernel does within the guest. Of an application also how busy the client was, which makes the load:
        where it had no more to give, its rate is the client's and not the platform's.
        """
        metrics, unit = super().all_metrics, f"ns/{self.work_unit}"
        if self.family in {Family.STORAGE, Family.NETWORK}:
            description = (
                "CPU cost of the whole host: the platform's, its daemons', and its kernel's threads' meanwhile"
            )
            metrics = (*metrics, Metric(HOST_COST, unit, Direction.LOWER, description))
        if self.family not in {Family.NETWORK, Family.APPLICATION} or not self.loaded:
            return (*metrics, *((PEAK,) if self.counts_peak else ()))
        description = "CPU cost of the client, which is not in cpu-cost"
        metrics = (*metrics, Metric(CLIENT_COST, unit, Direction.LOWER, description))
        if self.family is Family.NETWORK:
            return metrics
        return (*metrics, Metric(CLIENT_BUSY, "%", Direction.LOWER, "CPU time of the client, of one CPU's"))

    @abstractmethod
    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        """Return the commands of a trial. Raises `HostError` when the surroundings do not suffice (say, disk space)."""

    @abstractmethod
    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        """Read the results of the plan's ``measures``, in their order.

        Raises `ParseError`, and `UnsupportedError` where a tool reports that it cannot do this in the instance.
        """


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """The host's memory that an instance takes at one moment, in bytes, without a client that waits for tare alone."""

    #: what nobody else has and no file gives back: anonymous pages, files in memory alone, the kernel's own for it
    own: int
    group: int  # charged to its control group: pages in use, page cache and the kernel's own for it
    pss: int  # proportional set size, summed over its host processes: a shared page counts in part
    host: int  # all memory that the host has
    guest: int | None = None  # part of ``pss``: a machine's own memory; None: it is none, or does not show
    client: int | None = None  # PSS of the client that waits; None: there is none
    daemons: int | None = None  # PSS of the daemons that all instances of the platform share; None: there are none


class MemoryWorkload(RunWorkload):
    """A run before and after which the memory of the instance is measured. It is fresh: nothing else has run in it."""

    fresh: ClassVar[bool] = True

    @property
    def all_metrics(self) -> tuple[Metric, ...]:
        """Own metrics: the CPU cost of the run is not measured."""
        return self.metrics

    @abstractmethod
    def measure_memory(self, before: MemoryUsage, after: MemoryUsage) -> dict[str, float]:
        """Return the figures of one trial by metric name. Raises `ParseError` for what no instance takes."""


class IdleWorkload(RunWorkload):
    """A run in which a fresh instance is left alone, and the CPU time of its platform meanwhile is the figure."""

    fresh: ClassVar[bool] = True

    @property
    def all_metrics(self) -> tuple[Metric, ...]:
        """Own metrics: there is no work that CPU time is for."""
        return self.metrics

    @abstractmethod
    def measure_idle(self, cpu_ns: int, wall_ns: int) -> dict[str, float]:
        """Return the figures of one trial by metric name. Raises `ParseError` where no time has passed."""


#: Many short slices, in whose rounds the host's weather is the same for all, and some long ones, of which the CPU cost
#: is: waking up and going to sleep costs a platform something of its own in each slice (docs/benchmarks.md).
QUICK_SLICES: Params = {"slice_ms": 20, "rounds": 16, "long_ms": 100, "long_rounds": 4}
FULL_SLICES: Params = {"slice_ms": 20, "rounds": 80, "long_ms": 100, "long_rounds": 24}


class SliceWorkload(Workload):
    """A probe of the agent that runs in all running instances in turn, a slice at a time."""

    mode: ClassVar[Mode] = Mode.SLICES
    probe: ClassVar[str]  # the agent's name of it
    #: metric name -> the probe's part whose rate (work per second of its own wall time) it is
    parts: ClassVar[Mapping[str, str]]
    #: parameters that are the schedule's and not the probe's; any other workload may lack those of longer slices
    schedule_keys: ClassVar[frozenset[str]] = frozenset({"slice_ms", "rounds", "warmup_ms"})
    long_keys: ClassVar[frozenset[str]] = frozenset({"long_ms", "long_rounds"})

    #: idle time after a slice in ms, where a round of the probe takes long on slow platforms and so ends late; at least
    #: the campaign's usual gap
    gap_ms: ClassVar[float] = 0.0
    #: how much of the probe's work makes one ``work_unit`` (say, 2**20 bytes a MiB)
    work_scale: ClassVar[float] = 1.0

    def read_slice(self, parts: Mapping[str, tuple[float, int]], cpu_ns: int | None) -> dict[str, float]:
        """Figures of one slice: a rate for each part, and the CPU cost of all its work.

        ``parts``: work and wall time in ns by part. Raises `ParseError` on a part that is missing or did nothing.
        """
        figures: dict[str, float] = {}
        for metric, part in self.parts.items():
            work, wall_ns = parts.get(part, (0.0, 0))
            if work <= 0 or wall_ns <= 0:
                raise ParseError(f"the probe {self.probe} did no {part!r} in a slice")
            figures[metric] = work / self.work_scale / (wall_ns / 1e9)
        if cpu_ns is not None:
            total = sum(work for work, _ in parts.values())
            figures["cpu-cost"] = cpu_ns / (total / self.work_scale)
        return figures

    def fitted(self, params: Params, memory_bytes: int) -> Params:
        """Return the parameters for an instance with this memory limit.

        Raises `HostError` when it is too small for them.
        """
        return params

    def probe_params(self, params: Params) -> dict[str, int | float | str | bool]:
        """Return the parameters that go to the agent."""
        return {key: value for key, value in params.items() if key not in self.schedule_keys | self.long_keys}


@dataclass(frozen=True, slots=True)
class StartMarks:
    """Nanoseconds from the start instant (just before the platform's own start command) to each event.

    None where the event cannot be seen on that platform; ``reasons`` then says why, by field name.
    """

    first_byte_ns: int | None
    command_ns: int | None
    datagram_ns: int | None
    ping_ns: int | None
    reasons: Mapping[str, str] = field(default_factory=dict)
    #: the parts of the time to the first byte in ns: runtime, kernel, userspace, agent; those that are known
    parts: Mapping[str, int] = field(default_factory=dict)
    answer_ns: int | None = None
    #: what making took, in ns, of all that the start instant finds made: root, network, a container's record
    made_ns: int | None = None


class StartWorkload(Workload):
    """The start of the block's instance is itself the trial; a cold one has an instance of its own."""

    mode: ClassVar[Mode] = Mode.START
    #: whether the files that the start reads (the image's form, the platform's programs) are dropped from the page
    #: cache before it
    cold: ClassVar[bool] = False

    @abstractmethod
    def read(self, marks: StartMarks) -> dict[str, float]:
        """Return the figures of one trial by metric name, from its marks; metrics that cannot be seen are left out.

        Raises `ParseError` for a mark that came before the start.
        """
