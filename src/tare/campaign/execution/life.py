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
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

from tare.campaign.execution.density import ApartResult
from tare.campaign.instances.launcher import InstanceLauncher
from tare.campaign.instances.pool import InstancePool
from tare.errors import HostError, PlatformError, UnsupportedError
from tare.host import cgroup, console, processes
from tare.host.resources.journal import CleanupStack
from tare.platforms.base import STARTED, LaunchSpec, Life, Platform
from tare.platforms.parts.common.pipes import TOOL
from tare.timeouts import stretched, until
from tare.workloads.apart import LifeWorkload, Operation, Round, Step
from tare.workloads.base import Params

T = TypeVar("T")

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
    return ApartResult(tuple(workload.read(rounds).as_samples()))


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
    waiting_ns: int = 0  # that is in no figure: commands that wait for their time, looks that come after it
    started: subprocess.Popen[bytes] | None = None  # of a start that stays

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
        before = self._cpu_ns()
        begun, waited = time.monotonic_ns(), self.waiting_ns
        first_ns = self._carry_out(operation, argv)
        wall_ns = time.monotonic_ns() - begun - (self.waiting_ns - waited)
        cpu_ns = self._cpu_ns() - before
        match operation:
            case Operation.CREATE:
                wall_ns += self.life.made_ns or 0
            case Operation.START:
                self._learn()
            case Operation.PAUSE:
                self._require_still()
            case Operation.REMOVE:
                wall_ns += self.end()
        return Step(wall_ns, cpu_ns, first_ns)

    def _learn(self) -> None:
        """Note what is only known of it once it runs; that time is in no figure."""
        if self.life.settle is not None:
            self._looked_at(self.life.settle)

    def end(self) -> int:
        """Remove what is left of it and was made for it. Raises `HostError`.

        Returns the time that it took to remove what users of bare runtimes remove by hand, in ns; the rest is tare's.
        """
        begun = time.monotonic_ns()
        if self.started is not None:
            processes.end(self.started)
            self.started = None
        with contextlib.ExitStack() as ends:
            for group in (self.tool, self.spec.group, *self.life.daemons):
                ends.callback(group.close)
            self.cleanup.release()
        by_hand_ns = sum(self.cleanup.removing_ns[kind] for kind in BY_HAND)
        self.waiting_ns += time.monotonic_ns() - begun - by_hand_ns
        return by_hand_ns

    def _carry_out(self, operation: Operation, argv: Sequence[str]) -> int | None:
        """Run the command and wait until it has come about; how long its first output took, where that is looked at."""
        match operation:
            case Operation.START if self.life.stays:
                return self._stay(argv)
            case Operation.EXECUTE:
                return self._execute([*argv, *INSIDE])
            case Operation.STOP | Operation.KILL:
                pids = self._looked_at(self.spec.group.pids)
                self._run(operation, argv)
                self._until(operation, "has processes still", lambda: self._is_gone(pids))
            case Operation.RESUME:
                stood = self._own_cpu_ns()
                self._run(operation, argv)
                self._until(operation, "stands still", lambda: self._own_cpu_ns() > stood + MOVES_NS)
            case _ if argv:
                self._run(operation, argv)
        return None

    def _run(self, operation: Operation, argv: Sequence[str]) -> None:
        """Run a command that says what it has to say on the console, which what it starts may keep."""
        with console.opened(self.spec.space.log) as log:
            process = self._begin(argv, stdout=log, stderr=log)
        _wait(process, operation)
        if process.returncode != 0:
            said = console.read(self.spec.space.log).decode(errors="replace").strip().splitlines()
            why = f": {said[-1][:300]}" if said else ""
            raise PlatformError(f"`{_shown(argv)}` of {self.platform} ended with {process.returncode}{why}")

    def _stay(self, argv: Sequence[str]) -> int:
        """Start what goes on, and wait for its first output."""
        with console.opened(self.spec.space.log) as log:
            process = self._begin(argv, stdout=subprocess.PIPE, stderr=log, leaf="box")
        self.started = process
        begun = time.monotonic_ns()
        if not _first_bytes(process):
            raise PlatformError(f"`{_shown(argv)}` of {self.platform} printed nothing, and was to go on")
        return time.monotonic_ns() - begun

    def _execute(self, argv: Sequence[str]) -> int:
        with console.opened(self.spec.space.log) as log:
            process = self._begin(argv, stdout=subprocess.PIPE, stderr=log)
        begun = time.monotonic_ns()
        try:
            printed = _first_bytes(process)
            first_ns = time.monotonic_ns() - begun
            _wait(process, Operation.EXECUTE)
        finally:
            processes.end(process)
        if process.returncode != 0 or printed.strip() != SAYS:
            said = console.read(self.spec.space.log).decode(errors="replace").strip().splitlines()
            why = f": {said[-1][:300]}" if said else f" and printed {printed[:80]!r}"
            raise PlatformError(f"`{_shown(argv)}` of {self.platform} ended with {process.returncode}{why}")
        return first_ns

    def _begin(self, argv: Sequence[str], *, stdout: int, stderr: int, leaf: str = TOOL) -> subprocess.Popen[bytes]:
        """Start a command; the time until it may begin is in no figure."""
        begun = time.monotonic_ns()
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
        self.waiting_ns += time.monotonic_ns() - begun
        held.go()
        return held.process

    def _until(self, operation: Operation, otherwise: str, come: Callable[[], bool]) -> None:
        deadline = until(LIMIT_S)
        while not come():
            if time.monotonic() > deadline:
                raise PlatformError(f"{self.platform} {otherwise} {stretched(LIMIT_S):.0f} s after its {operation}")
            time.sleep(LOOK_S)

    def _is_gone(self, pids: Sequence[int]) -> bool:
        """Whether no process of the instance is left, and none of these is waited for by nobody yet (a zombie).

        A runtime takes a zombie for a process that runs. Of a start that stays, tare itself is the parent.
        """
        if self.started is not None:
            self.started.poll()
        return not self.spec.group.pids() and not any(Path(f"/proc/{pid}").exists() for pid in pids)

    def _looked_at(self, look: Callable[[], T]) -> T:
        """What a look shows whose time is in no figure."""
        begun = time.monotonic_ns()
        shown = look()
        self.waiting_ns += time.monotonic_ns() - begun
        return shown

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
        moved = self._looked_at(self._moved_ns)
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
