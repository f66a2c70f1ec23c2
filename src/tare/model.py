"""The nouns as types; no logic. One meaning each, everywhere (docs/glossary.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

#: Told what is being done, in a few words, whenever something begins that takes a while.
Progress = Callable[[str], None]


class Direction(StrEnum):
    """Which way a metric is better."""

    HIGHER = "higher"
    LOWER = "lower"


class Family(StrEnum):
    """The part of a machine that a workload uses; it fixes the default margin."""

    CPU = "cpu"
    MEMORY = "memory"
    KERNEL = "kernel"  # what single system calls and kernel services cost
    STORAGE = "storage"
    NETWORK = "network"
    STARTUP = "startup"
    LIFE = "life"  # what is done with an instance beside its work: created, entered, paused, stopped, removed
    DENSITY = "density"  # several instances of a platform at once
    APPLICATION = "application"  # a server as it is deployed, under the load of its own tools


#: Relative difference below which a platform counts as equal to the baseline, stated before the data
#: (docs/method.md, Verdicts).
DEFAULT_MARGINS: Mapping[Family, float] = {
    Family.CPU: 0.01,
    Family.MEMORY: 0.02,
    Family.KERNEL: 0.02,
    Family.STORAGE: 0.05,
    Family.NETWORK: 0.05,
    Family.STARTUP: 0.05,
    Family.LIFE: 0.05,
    Family.DENSITY: 0.05,
    Family.APPLICATION: 0.05,
}


#: The metric that every timed workload has beside its own (docs/method.md).
CPU_COST = "cpu-cost"
#: The metric that storage and network workloads have beside it: what the host's kernel does for them is in it too.
HOST_COST = "host-cost"
#: Metrics that tables show beside the headlines.
SHOWN_COSTS = frozenset({CPU_COST, HOST_COST})
#: The name of the metric that has the client's CPU time for a unit of work: the other side of a network workload.
CLIENT_COST = "client-cost"
#: The name of the metric that has the memory of a platform's shared daemons.
DAEMONS_MEMORY = "daemons"
#: Metrics of PSS, and the metric of the same instances' own memory, without program pages that instances share.
OWN_MEMORY: Mapping[str, str] = {"idle-pss": "idle-own", "used-pss": "used-own", "further-pss": "further-own"}
#: The name of the metric that has the most memory of the whole platform in a run.
PEAK_MEMORY = "peak-memory"
#: The name of a trial's output that says why metrics have no figure: a line each, "METRIC: REASON".
NOT_SEEN = "not seen"
#: The name of a trial's output with the reason of each start, copy or pause that failed: a line each.
FAILURES = "failures"
#: native in a network namespace of its own: the second baseline of networks.
NATIVE_VETH = "native-veth"
#: In the fairness manifest, of a platform that has no shared daemon whose CPUs could be told.
NO_DAEMON = "it has none"
#: What a server listens on that any address of its network may reach.
EVERYWHERE = "0.0.0.0"  # noqa: S104 (of an instance's own network, in which the client is alone)
#: Where an instance has its copy of a user's folder, and where that stays as it was.
WORK, WORK_ORIGINAL = "/work", "/.tare-work"
#: The name of the metric that says how busy the client was: an application's load comes from there.
CLIENT_BUSY = "client-busy"


class Mode(StrEnum):
    """The schedule of a workload within a block."""

    SLICES = "slices"  # all running instances in turn, in short self-paced slices
    RUN = "run"  # one run an instance, instances in random order
    START = "start"  # the start of the block's instance is itself the trial
    APART = "apart"  # the trial starts its own instances, and no other instance of the campaign runs meanwhile


class Scale(StrEnum):
    """Length of a study's profile."""

    SCALED = "scaled"  # Shorter and fewer runs, as the study's file says.
    FULL = "full"  # The study's own durations, sizes and numbers of runs.


class Design(StrEnum):
    """In which order a campaign runs what it compares."""

    BLOCKS = "blocks"  # all arms afresh in every block, in random order; sliced work in turn, on the same CPUs
    SEQUENTIAL = "sequential"  # one arm after the other, each with all of its repetitions: what most studies did
    DUET = "duet"  # as blocks, but sliced work of an arm and of the baseline at once, each on a CPU, drawn anew


class Status(StrEnum):
    """The outcome of a trial."""

    OK = "ok"
    FAILED = "failed"  # it should have worked; the reason is recorded
    UNSUPPORTED = "unsupported"  # the platform cannot do this; the reason is recorded


class CampaignStatus(StrEnum):
    """The status of a campaign, as its runner left it."""

    PLANNED = "planned"  # no run of it has begun
    RUNNING = "running"  # also where the run was killed
    COMPLETE = "complete"
    INTERRUPTED = "interrupted"
    UNKNOWN = "unknown"  # its file does not say, or says what this tare does not know


class Level(StrEnum):
    """The level of a count: the kernel's system calls, functions, lines or stacks; or a machine's instructions."""

    SYSCALLS = "syscalls"  # names of system calls that the host's kernel was asked for
    FUNCTIONS = "functions"  # kernel functions, by symbol; those of a module as "symbol [module]"
    LINES = "lines"  # lines of the kernel's source that have code, as "mm/mmap.c:1405"
    # samples by process and path through the kernel, outermost first: "dd;entry_SYSCALL_64_after_hwframe;...;vfs_read"
    STACKS = "stacks"
    # all that a whole machine executes, by part: "kernel", "of;instance;runc;user" (`tare.features.kernel.counters`)
    INSTRUCTIONS = "instructions"


#: What became of a setting of the host's that a campaign wanted.
SettingOutcome = Literal["changed", "as wanted", "not changed"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A named figure with a unit and a direction."""

    name: str
    unit: str
    direction: Direction
    title: str
    resolution: float | None = None  # the steps that its figures move in, in ``unit``; None: the figures show it
    headline: bool = False  # whether tables show it beside the workload's first


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer of the image for workloads that declare it, as data (docs/add-a-workload.md).

    ``text``: TOML with any of ``[pinned]`` (Debian packages and their versions), ``[recorded]`` (``packages``, a list,
    in the suite's present versions) and ``commands`` (a list, run by a shell at the end of the build; the root's path
    is its ``$1``).
    """

    name: str  # lower case, with dashes
    text: str


@dataclass(frozen=True, slots=True)
class ImageSource:
    """The source of an image other than tare's: a user's container image, or a folder with a root filesystem.

    ``place``: the path of an OCI layout, an archive of one, or a folder; or ``docker://HOST/NAME:TAG``; "": tare's
    image, with ``work`` in it.
    """

    place: str = ""
    folder: bool = False  # whether it is a root filesystem as it is
    tag: str | None = None  # of a layout with several images
    work: str | None = None  # a folder of the host's, of which each instance has a copy of its own at `WORK`


@dataclass(frozen=True, slots=True)
class UserProgram:
    """A command that a user measures (`tare run -- COMMAND`), in the words that are run."""

    argv: tuple[str, ...]
    prepare: tuple[str, ...] = ()  # before each run, not timed; (): nothing
    cleanup: tuple[str, ...] = ()  # after an instance's last run, not timed
    env: Mapping[str, str] = field(default_factory=dict)
    warmup: int = 0  # runs in each instance before the first one that is measured
    time_limit_s: float = 600.0  # of each run, and of ``prepare`` and ``cleanup``
    ignore_failure: bool = False  # whether a run counts that does not end with 0
    folder: str = ""  # a folder of the host's, which each run finds at `WORK` as it was at the beginning; "": none
    image: str = ""  # place of the image that has the command, as in `ImageSource`; "": tare's own
    packages: tuple[str, ...] = ()  # Debian packages on top of tare's image


@dataclass(frozen=True, slots=True)
class Application:
    """A container image's own start: command, environment, user and folder."""

    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    directory: str = "/"
    user: str = ""  # as USER[:GROUP], names or numbers of the image's own; "": root


@dataclass(frozen=True, slots=True, order=True)
class Arm:
    """One treatment of a block: a platform, and which of its replicas (the baseline has two: 0 and 1)."""

    platform: str
    replica: int = 0

    def __str__(self) -> str:
        return self.platform if self.replica == 0 else f"{self.platform}#{self.replica + 1}"


#: Processes and threads that an instance may have at once, unless a workload needs more (`Workload.pids`). It is
#: several times what any of tare's workloads starts, and an eighth of the 32,768 ids that many hosts have for all.
PIDS = 4096


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources of every instance of a campaign."""

    cpus: tuple[int, ...]  # host CPU numbers, pinned
    memory_bytes: int
    data_bytes: int | None = None  # a filesystem of its own of this size; None: the host's, watched
    cpu_quota: float | None = None  # CPUs' worth of time that it may use; None: all of its CPUs'
    pids: int | None = PIDS  # processes and threads at once; None: no limit

    @property
    def probe_cpu(self) -> int:
        """The host CPU that probes work on in their slices, the last; tare's own threads and the client keep off it."""
        return max(self.cpus)


@dataclass(frozen=True, slots=True)
class SliceFacts:
    """The host's view of one slice of one instance; times in ns of the host's monotonic clock."""

    round: int
    position: int  # turn of this instance within the round
    start_ns: int
    wall_ns: int
    cpu_ns: int | None  # CPU time of the whole platform (its host cgroup) over the slice
    daemon_cpu_ns: int | None  # CPU time of the platform's shared daemons over the slice
    late_ns: int  # how much later than planned the slice began


@dataclass(frozen=True, slots=True)
class ClockFacts:
    """The rate of the clock inside an instance against the host's over a trial, as fractions; positive is too fast.

    All that is known is bounds, since a reading takes a round trip.
    """

    offset_ns: int  # how far the clock inside was ahead when it was first read
    offset_error_ns: int  # either way
    rate_low: float
    rate_high: float


@dataclass(frozen=True, slots=True)
class Sample:
    """One figure of one metric from one trial; ``round`` is 0 where the workload is not sliced."""

    metric: str
    value: float
    round: int = 0


@dataclass(frozen=True, slots=True)
class TrialKey:
    """The key of a trial: exactly one row a key, whatever happens."""

    block: int
    workload: str
    arm: Arm


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of a workload on an instance in a block."""

    key: TrialKey
    status: Status
    reason: str | None  # None exactly when status is OK
    seq: int  # place in the campaign's schedule
    started: float  # UNIX time, seconds
    wall_ns: int  # the whole trial, on the host's monotonic clock
    cpu_ns: int | None  # CPU time of the whole platform over the trial
    daemon_cpu_ns: int | None
    steal: float | None  # share of the pinned CPUs' time stolen by the hypervisor below, 0 to 1
    pressure: float | None  # share of the trial in which some task waited for a CPU (PSI some), 0 to 1
    load: float  # 1-minute load average at the start
    samples: tuple[Sample, ...] = ()
    slices: tuple[SliceFacts, ...] = ()
    outputs: Mapping[str, bytes] = field(default_factory=dict)  # raw tool outputs by name
    clock: ClockFacts | None = None  # None: nothing was timed by a clock inside


@dataclass(frozen=True, slots=True)
class CpuTick:
    """One host CPU's counters at a tick of the telemetry: since boot, in ms by kind as ``/proc/stat`` has them."""

    cpu: int
    user_ms: int
    nice_ms: int
    system_ms: int
    idle_ms: int
    iowait_ms: int
    irq_ms: int
    softirq_ms: int
    steal_ms: int
    run_ns: int  # time in which any task ran on it
    tare_ns: int | None  # of that, in tare's own control groups; None where the host does not count it by CPU


@dataclass(frozen=True, slots=True)
class InstanceTick:
    """A running instance's counters at a tick, since it was made; None where its control group does not tell."""

    arm: Arm
    cpu_ns: int
    memory_bytes: int
    throttled: int | None  # periods in which its quota was used up
    throttled_ns: int | None


@dataclass(frozen=True, slots=True)
class Tick:
    """One reading of the telemetry: counters since boot unless said otherwise; None where the host has none."""

    at: float  # UNIX time, seconds
    at_ns: int  # the host's monotonic clock
    first: bool  # no window ends here: nothing was read before it, or that was another run of the campaign
    own_ns: int  # CPU time of the harness and of its processes that ended
    tare_ns: int  # CPU time in tare's control groups: instances and client
    client_ns: int  # of that, the client's
    daemons_ns: int  # CPU time of the platforms' shared daemons, since the telemetry began
    kernel_ns: int  # CPU time of the kernel's threads that may run on the measured CPUs, since the telemetry began
    cpu_pressure_us: int | None  # PSI: time in which some task waited for a CPU
    memory_pressure_us: int | None
    io_pressure_us: int | None
    memory_available: int  # bytes, now
    swapped_in: int  # pages
    swapped_out: int  # pages
    disk_read_bytes: int | None  # of the device below TARE_HOME
    disk_written_bytes: int | None
    disk_busy_ms: int | None
    net_received_bytes: int  # of the campaign's bridge; of all links but loopback where there is none
    net_sent_bytes: int
    cpus: tuple[CpuTick, ...] = ()
    instances: tuple[InstanceTick, ...] = ()
