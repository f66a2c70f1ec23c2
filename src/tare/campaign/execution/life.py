"""Instances that live by their platform's own commands: each operation is timed from outside (`LifeWorkload`).

A command waits inside its control groups until its time begins (`processes.start_held`), as starts do; that waiting is
in no figure.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

from tare.campaign.execution.density import ApartResult
from tare.campaign.instances.launcher import InstanceLauncher
from tare.campaign.instances.pool import InstancePool
from tare.errors import HostError, PlatformError, UnsupportedError
from tare.host import cgroup, console, processes
from tare.host.kernel import parentage
from tare.host.resources.journal import CleanupStack
from tare.platforms.base import STARTED, LaunchSpec, Life, Platform
from tare.platforms.parts.common.pipes import TOOL
from tare.timeouts import stretched, until
from tare.workloads.apart import LifeWorkload, Operation, Round, Step
from tare.workloads.base import Params

#: The longest that an operation may take.
LIMIT_S = 60.0
#: How often the host looks whether something has come about: a look takes 0.1 to 0.3 ms.
LOOK_S = 0.0005
#: CPU time that shows that an instance works; of one that is paused, what still looks after it uses less in `STANDS_S`.
MOVES_NS = 1_000_000
STANDS_S = 0.02
#: Kinds of resources that tare makes and removes in place of a user of a runtime that does not.
BY_HAND = ("mount", "netns", "link")
#: What is run inside, and prints; the shell is there in every image.
INSIDE, SAYS = ("echo", "here"), b"here"


def live(workload: LifeWorkload, params: Params, pool: InstancePool) -> ApartResult:
    """Run one trial. Raises `UnsupportedError`, `HostError`, `PlatformError`, and what the workload's ``read`` does."""
    with parentage.adopting():
        return ApartResult(tuple(workload.read(_rounds(workload, params, pool)).as_samples()))


def _rounds(workload: LifeWorkload, params: Params, pool: InstancePool) -> list[Round]:
    rounds: list[Round] = []
    began, time_s = time.monotonic(), float(params["time_s"])
    if workload.before:
        with _living(pool, workload.payload) as living:
            for operation in workload.before:
                living.do(operation)
            while not rounds or time.monotonic() - began < time_s:
                rounds.append(_round(living, workload.each))
    else:
        while not rounds or time.monotonic() - began < time_s:
            with _living(pool, workload.payload) as living:
                rounds.append(_round(living, workload.each))
    return rounds


def _round(living: Living, operations: Sequence[Operation]) -> Round:
    """Operations in turn; the whole begins with the instance where it begins with that."""
    if operations[0] is not Operation.CREATE:
        living.begin_anew()
    steps: dict[Operation | None, Step] = {operation: living.do(operation) for operation in operations}
    return {**steps, None: Step(living.lived_ns(), sum(step.cpu_ns for step in steps.values()))}


@contextlib.contextmanager
def _living(pool: InstancePool, argv: Sequence[str]) -> Iterator[Living]:
    """An instance to be, of which nothing is left at the end, however that comes."""
    living = Living.placed(pool.platform, pool.launcher, argv)
    try:
        yield living
    except BaseException as error:
        if isinstance(error, PlatformError):
            error.console = error.console or console.read(living.spec.space.log)
        with contextlib.suppress(HostError):  # what stays is noted (`host.unremoved`)
            living.end()
        raise
    living.end()


@dataclass(slots=True)
class Living:
    """One instance, and the commands of its life."""

    spec: LaunchSpec
    cleanup: CleanupStack
    life: Life
    tool: cgroup.Group  # the part of its control group that the platform's commands run in
    platform: str
    began_ns: int
    waiting_ns: int = 0  # that is in no figure: commands that wait for their time, and tare's own looks
    started: subprocess.Popen[bytes] | None = None  # of a start that stays
    orphans: set[int] = field(default_factory=set)  # processes that were seen of it, which tare is to wait for
    _went_ns: int = 0  # when the last command began

    @classmethod
    def placed(cls, platform: Platform, launcher: InstanceLauncher, argv: Sequence[str]) -> Self:
        """Make what a user has before an instance is created. Raises what `Platform.life` does, and `HostError`."""
        spec, cleanup = launcher.place(platform)
        try:
            if not spec.group.accounts:
                raise HostError("the processes of an instance cannot be seen on a host without control groups")
            life = platform.life(spec, cleanup, argv)
            spec.group.leaf(TOOL)
        except BaseException:
            with contextlib.suppress(HostError):
                cleanup.release()
            raise
        tool = cgroup.Group(f"{spec.group.path}/{TOOL}")
        return cls(spec, cleanup, life, tool, platform.name, time.monotonic_ns() - (life.made_ns or 0))

    def lived_ns(self) -> int:
        """The time since it began, without what is in no figure."""
        return time.monotonic_ns() - self.began_ns - self.waiting_ns

    def begin_anew(self) -> None:
        """Let its time begin now."""
        self.began_ns, self.waiting_ns = time.monotonic_ns(), 0

    def do(self, operation: Operation) -> Step:
        """Carry out an operation. Raises `UnsupportedError` where the platform has none such, and `PlatformError`."""
        argv = tuple(getattr(self.life, operation.value))
        optional = operation in {Operation.CREATE, Operation.REMOVE}
        if operation.value in self.life.lacks or not (argv or optional):
            why = self.life.lacks.get(operation.value, "its own commands have no such one")
            raise UnsupportedError(f"{self.platform} cannot {operation}: {why}")
        entered, waited = time.monotonic_ns(), self.waiting_ns
        self.orphans.update(self.spec.group.pids())
        before = self._cpu_ns()
        self._went_ns = time.monotonic_ns()  # where there is no command to begin
        first_ns, came_ns = self._carry_out(operation, argv)
        wall_ns, cpu_ns = came_ns - self._went_ns, self._cpu_ns() - before
        if operation is Operation.START and self.life.settle is not None:
            self.life.settle()
        elif operation is Operation.PAUSE:
            self._require_still()
        elif operation is Operation.REMOVE:
            wall_ns += self.end()
        # All of it but the operation is tare's own.
        self.waiting_ns = waited + time.monotonic_ns() - entered - wall_ns
        if operation is Operation.CREATE:
            wall_ns += self.life.made_ns or 0
        return Step(wall_ns, cpu_ns, first_ns)

    def end(self) -> int:
        """Remove what is left of it and was made for it. Raises `HostError`.

        Returns the time that it took to remove what users of bare runtimes remove by hand, in ns; the rest is tare's.
        """
        if self.started is not None:
            processes.end(self.started)
            self.started = None
        with contextlib.ExitStack() as ends:
            for group in (self.tool, self.spec.group, *self.life.daemons):
                ends.callback(group.close)
            self.cleanup.release()
        self._wait_for_orphans()
        return sum(self.cleanup.removing_ns[kind] for kind in BY_HAND)

    def _carry_out(self, operation: Operation, argv: Sequence[str]) -> tuple[int | None, int]:
        """Run the command and wait until it has come about.

        Returns how long its first output took, where that is looked at, in ns; and the instant at which it had come.
        """
        first_ns = None
        match operation:
            case Operation.START if self.life.stays:
                self._stay(argv)
            case Operation.EXECUTE:
                return self._execute([*argv, *INSIDE])
            case Operation.STOP | Operation.KILL:
                self._run(operation, argv)
                self._until(operation, "has processes still", self._is_gone)
            case Operation.RESUME:
                stood = self._own_cpu_ns()
                self._run(operation, argv)
                self._until(operation, "stands still", lambda: self._own_cpu_ns() > stood + MOVES_NS)
            case _ if argv:
                self._run(operation, argv)
        return first_ns, time.monotonic_ns()

    def _run(self, operation: Operation, argv: Sequence[str]) -> None:
        """Run a command that says what it has to say on the console, which what it starts may keep."""
        with console.opened(self.spec.space.log) as log:
            process = self._begin(argv, stdout=log, stderr=log)
        _wait(process, operation)
        if process.returncode != 0:
            said = console.read(self.spec.space.log).decode(errors="replace").strip().splitlines()
            why = f": {said[-1][:300]}" if said else ""
            raise PlatformError(f"`{_shown(argv)}` of {self.platform} ended with {process.returncode}{why}")

    def _stay(self, argv: Sequence[str]) -> None:
        """Start what goes on, and wait for its first output."""
        with console.opened(self.spec.space.log) as log:
            process = self._begin(argv, stdout=subprocess.PIPE, stderr=log, leaf="box")
        self.started = process
        if not _first_bytes(process):
            raise PlatformError(f"`{_shown(argv)}` of {self.platform} printed nothing, and was to go on")

    def _execute(self, argv: Sequence[str]) -> tuple[int, int]:
        with console.opened(self.spec.space.log) as log:
            process = self._begin(argv, stdout=subprocess.PIPE, stderr=log)
        try:
            printed = _first_bytes(process)
            first_ns = time.monotonic_ns() - self._went_ns
            _wait(process, Operation.EXECUTE)
            came_ns = time.monotonic_ns()
        finally:
            processes.end(process)
        if process.returncode != 0 or printed.strip() != SAYS:
            said = console.read(self.spec.space.log).decode(errors="replace").strip().splitlines()
            why = f": {said[-1][:300]}" if said else f" and printed {printed[:80]!r}"
            raise PlatformError(f"`{_shown(argv)}` of {self.platform} ended with {process.returncode}{why}")
        return first_ns, came_ns

    def _begin(self, argv: Sequence[str], *, stdout: int, stderr: int, leaf: str = TOOL) -> subprocess.Popen[bytes]:
        """Start a command; the time until it may begin is in no figure."""
        started = str(self.started.pid) if self.started is not None else ""
        held = processes.start_held(
            [word.replace(STARTED, started) for word in argv],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            cgroup_procs=self.spec.group.leaf(leaf),
            within=self.life.within,
            rest=True,
        )
        self._went_ns = time.monotonic_ns()
        held.go()
        return held.process

    def _until(self, operation: Operation, otherwise: str, come: Callable[[], bool]) -> None:
        deadline = until(LIMIT_S)
        while not come():
            if time.monotonic() > deadline:
                raise PlatformError(f"{self.platform} {otherwise} {stretched(LIMIT_S):.0f} s after its {operation}")
            time.sleep(LOOK_S)

    def _is_gone(self) -> bool:
        """Whether no process is left, and none that nobody has waited for: a runtime takes such a one for alive."""
        if self.started is not None:
            self.started.poll()
        return not self.spec.group.pids() and self._wait_for_orphans()

    def _wait_for_orphans(self) -> bool:
        """Wait for those that have ended and whose parent had (`parentage.adopting`); whether none is left."""
        self.orphans -= {pid for pid in self.orphans if parentage.gone(pid)}
        return not self.orphans

    def _cpu_ns(self) -> int:
        """CPU time of the whole platform for it so far, and of its shared daemons, in ns."""
        try:
            daemons_ns = sum(group.cpu_ns() for group in self.life.daemons)
        except OSError as error:
            raise PlatformError(f"a daemon of {self.platform} has ended, and its control group is gone") from error
        return self.spec.group.cpu_ns() + daemons_ns

    def _own_cpu_ns(self) -> int:
        """CPU time of the instance itself, without its platform's commands, in ns."""
        return self.spec.group.cpu_ns() - self.tool.cpu_ns()

    def _moved_ns(self) -> int:
        """CPU time of the instance in `STANDS_S`, in ns."""
        stood = self._own_cpu_ns()
        time.sleep(STANDS_S)
        return self._own_cpu_ns() - stood

    def _require_still(self) -> None:
        """Look whether it uses CPU time; that look is in no figure. Raises `PlatformError`."""
        moved = self._moved_ns()
        if moved > MOVES_NS:
            raise PlatformError(f"{self.platform} used {moved / 1e6:.1f} ms of CPU time while it was paused")


def _wait(process: subprocess.Popen[bytes], operation: Operation) -> None:
    """Wait for a command's end, without looking again and again. Raises `PlatformError` at the limit."""
    end = os.pidfd_open(process.pid)
    try:
        ended = select.select([end], [], [], stretched(LIMIT_S))[0]
    finally:
        os.close(end)
    if not ended:
        processes.end(process)
        raise PlatformError(f"its {operation} has not ended within {stretched(LIMIT_S):.0f} s")
    process.wait()


def _first_bytes(process: subprocess.Popen[bytes]) -> bytes:
    """The first of its output; b"" where it ends, or is silent up to the limit."""
    assert process.stdout is not None
    ready = select.select([process.stdout], [], [], stretched(LIMIT_S))[0]
    return os.read(process.stdout.fileno(), 4096) if ready else b""


def _shown(argv: Sequence[str]) -> str:
    return " ".join(argv)[:200]
