"""The types of kernel footprints. A footprint is a set of things that ran, each with its number of hits.

A *thing* is what a level counts: a system call, a kernel function, a line of the kernel's source, or a stack.

What runs is counted by a `Counter`, of which there is one a level (system calls, kernel functions, kernel lines,
stacks); `tare.features.kernel.execution.walk` starts platforms and workloads meanwhile. Footprints and surfaces are in
a campaign's store (`tare.store`).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Protocol

from pydantic import Field

from tare.model import Level
from tare.records import Documented, Frozen, Line

#: The platform's name where nothing was started: what the host does by itself, to be set against the others.
IDLE = "idle"
#: The platform's name of an empty reading: counting begins from zero and is read at once, while no instance is alive.
#: Its hits are those of the reading itself, which are subtracted from every other reading of the same counter.
EMPTY = "empty reading"
#: How often stacks are looked at on every CPU. A prime, so as not to go in step with what the host does so often.
SAMPLES_A_SECOND = 997
#: What a stack ends in that was not in the kernel: in the process's own code, or in the guest of a virtual machine.
USER, GUEST = "[user]", "[guest]"
#: In front of a path through the kernel whose beginning is not known.
NO_PATH = "[no path]"

#: Of instructions: the counts of a part, in the order in which the emulator's plug-in has them (lab/icount/plugin.c).
PARTS = (
    "user", "kernel", "repeated", "loads", "stores", "calls", "switches", "faults", "interrupts",
    "fetched", "moved", "l1i", "l1d", "l2", "l3",
)  # fmt: skip
#: Of code that was counted: programs', by file, and the kernel's, by function.
SIDES = ("user", "kernel")
#: Of a piece of a probe's work, or of all that a run did, beside these: how many units it was.
UNITS = "units"


class Scope(StrEnum):
    """Whose work is counted."""

    HOST = "host"  # of all processes, and of the kernel itself
    INSTANCE = "instance"  # of processes in the instance's control groups, while these run in the kernel


class Phase(StrEnum):
    """The phase of a count. Phases rank platforms differently: a start runs more of the kernel than later work."""

    START = "start"  # from before the start command until the agent has run a first command
    STEADY = "steady"  # while a workload runs in an instance that is there


class Footprint(Frozen):
    """The things that ran in one phase of one repeat."""

    level: Level
    scope: Scope
    platform: Line  # or IDLE, or EMPTY
    phase: Phase
    workload: Line | None  # None in the start phase, on the idle host, and of an empty reading
    repeat: Annotated[int, Field(ge=0)]
    seconds: Annotated[float, Field(gt=0)]  # how long it was counted
    hits: Mapping[str, Annotated[int, Field(gt=0)]]
    lost: Annotated[int, Field(ge=0)] = 0  # events that are not in ``hits``: 0 where the source cannot lose any
    known: Annotated[int, Field(ge=0)] | None = None  # how many things of the level there are in this kernel


class HitCounts(Frozen):
    """The hits of a counter since its last reset, by scope."""

    hits: Mapping[Scope, Mapping[str, int]]
    lost: int = 0
    known: int | None = None


class Counter(Protocol):
    """A way to count what the kernel runs. Between `start` and `stop` it counts; nothing of it stays after `stop`."""

    level: Level
    reads_itself: bool  # whether the counts include the work of reading them

    def start(self, group: str) -> None:
        """Begin to count from zero; processes in the control group of this path, and below, are the instance's.

        ``group`` is the path that `tare.host.cgroup.Group.path` has: below the root of each hierarchy. It need not
        be there yet. Again, without a `stop`: for another group. Raises `HostError` where this host does not let one
        count, with the fix.
        """

    def read(self) -> HitCounts:
        """Return what was counted since `start` or the last `reset`."""

    def reset(self) -> None:
        """Begin to count from zero again."""

    def stop(self) -> None:
        """Stop counting, and leave nothing enabled. May be called twice."""


class Call(StrEnum):
    """The effect of seccomp filters on a thread's system call, over all arguments."""

    ALLOWED = "allowed"  # it runs
    CONDITIONAL = "conditional"  # whether it runs depends on its arguments (or on the address that it is called from)
    ERRNO = "errno"  # it does not run, and returns an error
    TRAP = "trap"  # a SIGSYS in its place
    KILL = "kill"  # the end of the thread or process
    NOTIFY = "notify"  # another process, which listens, is asked
    TRACE = "trace"  # a tracer is asked; without one it is an error


class WritableMount(Documented):
    """A mount that may be written to, as far as the mount's own flags go."""

    path: Line
    """As its process sees it."""
    host: Line | None
    """The same place in the host's tree; null: an interface to the kernel, such as proc."""
    kind: Line
    """Kind of filesystem."""


class Abi(Documented):
    """Another way into the same kernel, with numbers of its own."""

    reachable: int
    """Its calls that the filters allow, conditional ones too."""
    of: int
    """All of its calls."""
    in_kernel: bool | None
    """Whether this kernel has it at all; null: not known."""


class Tasks(Frozen):
    """Threads of one process on the host that have the same values in all of these fields."""

    pid: int
    program: Line
    role: Line
    counted: bool  # whether they are on the tenant's side
    threads: Mapping[Line, int]  # how many there are, by name
    seccomp: Line  # none, strict or filter
    filters: int  # how many are stacked
    calls: Mapping[Line, Call] | None  # by name; None: the filters could not be read, and ``unread`` says why
    outcomes: Mapping[Line, tuple[Line, ...]]  # of calls that do not just run: all that the filters may answer
    unread: Line | None
    abis: Mapping[Line, Abi]
    effective: tuple[Line, ...]  # capabilities, in the process's own user namespace
    bounding: tuple[Line, ...]
    namespaces: tuple[Line, ...]  # those that are not the host's
    no_new_privs: bool
    label: Line | None  # of a security module
    uid: int  # effective, as the host knows it
    gid: int
    writable: tuple[WritableMount, ...] = ()
    devices: tuple[Line, ...] = ()  # open ones
    held: tuple[Line, ...] = ()  # folders that are open, and files that are open for writing


class Surface(Frozen):
    """The calls that the tenant's side of a running instance may make to the host's kernel, and its rights."""

    platform: Line
    at: Annotated[float, Field(ge=0, le=1e11)]  # when it was read: UNIX time, seconds
    kernel: Line  # of which release and architecture
    of: int  # system calls of this kernel's architecture
    calls: Mapping[Line, Call] | None  # what the most permissive of all counted threads gets; None: nothing is known
    unread: tuple[Line, ...]  # reasons why ``calls`` may be too little
    tasks: tuple[Tasks, ...]
    abis: Mapping[Line, Abi]

    @property
    def counts(self) -> Mapping[Call, int]:
        """The number of calls of each kind."""
        outcomes = list((self.calls or {}).values())
        return {kind: outcomes.count(kind) for kind in Call}

    def answers(self, call: str) -> tuple[str, ...]:
        """All answers to a call by filters of counted threads, as far as these could be read."""
        readable = [tasks for tasks in self.tasks if tasks.counted and tasks.calls is not None]
        return tuple(sorted({word for tasks in readable for word in tasks.outcomes.get(call, ("allow",))}))
