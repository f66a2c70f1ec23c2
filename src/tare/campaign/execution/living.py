"""One instance that lives by its platform's own commands, each timed from outside.

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
from pathlib import Path
from typing import Self

from tare.campaign.instances.launcher import DEFAULT, InstanceLauncher, StartOptions
from tare.campaign.instances.pool import InstancePool
from tare.errors import HostError, PlatformError, UnsupportedError
from tare.host import cgroup, instance_console, processes
from tare.host.kernel import parentage
from tare.host.resources.journal import CleanupStack
from tare.platforms.base import LEADER, STARTED, LaunchSpec, Life, Platform
from tare.platforms.parts.common.pipes import TOOL
from tare.timeouts import stretched, until
from tare.workloads.apart import Operation, OperationStep

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


class RefusedError(PlatformError):
    """A platform's own command ended with another code than 0."""


@contextlib.contextmanager
def living(pool: InstancePool, argv: Sequence[str], terms: StartOptions = DEFAULT) -> Iterator[Living]:
    """Provide an instance to be, of which nothing is left at the end, however that comes."""
    instance = Living.placed(pool.platform, pool.launcher, argv, terms)
    try:
        yield instance
    except BaseException as error:
        if isinstance(error, PlatformError):
            error.console = error.console or instance_console.read(instance.spec.space.log)
        with contextlib.suppress(HostError):  # what stays is noted (`host.unremoved`)
            instance.end()
        raise
    instance.end()


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
    hurried: bool = False  # whether its commands begin as soon as they can, and not after a rest
    orphans: set[int] = field(default_factory=set)  # processes that were seen of it (`note_processes`)
    _went_ns: int = 0  # when the last command began
    _held: dict[Operation, processes.HeldProcess] = field(default_factory=dict)  # commands that wait for their time

    @classmethod
    def placed(
        cls,
        platform: Platform,
        launcher: InstanceLauncher,
        argv: Sequence[str],
        terms: StartOptions = DEFAULT,
        *,
        snapshot: Path | None = None,
    ) -> Self:
        """Make what a user has before an instance is created; with a ``snapshot``, of a copy of what it was made of.

        Raises what `Platform.life` and `Platform.copy` do, and `HostError`.
        """
        spec, cleanup = launcher.place(platform, terms)
        try:
            if not spec.group.accounts:
                raise HostError("the processes of an instance cannot be seen on a host without control groups")
            if snapshot is None:
                life = platform.life(spec, cleanup, argv)
            else:
                life = platform.copy(spec, cleanup, argv, snapshot)
            spec.group.leaf(TOOL)
        except BaseException:
            with contextlib.suppress(HostError):
                cleanup.release()
            raise
        tool = spec.group.child(TOOL)
        return cls(spec, cleanup, life, tool, platform.name, time.monotonic_ns() - (life.made_ns or 0))

    def lived_ns(self) -> int:
        """Return the time since it began, without what is in no figure."""
        return time.monotonic_ns() - self.began_ns - self.waiting_ns

    def begin_anew(self) -> None:
        """Let its time begin now."""
        self.began_ns, self.waiting_ns = time.monotonic_ns(), 0

    def do(self, operation: Operation) -> OperationStep:
        """Carry out an operation. Raises `UnsupportedError` where the platform has none such, and `PlatformError`."""
        argv = self.words(operation)
        entered, waited = time.monotonic_ns(), self.waiting_ns
        self.note_processes()
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
        return OperationStep(wall_ns, cpu_ns, first_ns)

    def carry_out(self, operation: Operation) -> None:
        """Carry out an operation that is not timed by itself. Raises what `do` does."""
        self._carry_out(operation, self.words(operation))

    def command(self, operation: Operation) -> tuple[str, ...]:
        """Return the words of an operation's command; none where it takes none. Raises `UnsupportedError`."""
        argv = tuple(getattr(self.life, operation.value))
        optional = operation in {Operation.CREATE, Operation.REMOVE}
        if operation.value in self.life.lacks or not (argv or optional or operation.value in self.life.acts):
            why = self.life.lacks.get(operation.value, "its own commands have no such one")
            raise UnsupportedError(f"{self.platform} cannot {operation}: {why}")
        return argv

    def end(self) -> int:
        """Remove what is left of it and was made for it. Raises `HostError`.

        Returns the time that it took to remove what users of bare runtimes remove by hand, in ns; the rest is tare's.
        """
        if self.life.close is not None:
            self.life.close()
        for held in self._held.values():
            held.give_up()
        self._held.clear()
        if self.started is not None:
            processes.end(self.started)
            self.started = None
        with contextlib.ExitStack() as ends:
            for group in (self.tool, self.spec.group, *self.life.daemons):
                ends.callback(group.close)
            with self._reaping():
                self.cleanup.release()
        self._wait_for_orphans()
        return sum(self.cleanup.removing_ns[kind] for kind in BY_HAND)

    def _carry_out(self, operation: Operation, argv: Sequence[str]) -> tuple[int | None, int]:
        """Run the command and wait until it has come about.

        Returns how long its first output took, where that is looked at, in ns; and the instant at which it had come.
        """
        match operation:
            case Operation.START | Operation.RESTORE if self.life.stays:
                self._stay(operation, argv)
            case Operation.EXECUTE:
                return self._execute(argv)
            case Operation.STOP | Operation.KILL:
                with self._reaping():
                    self._run(operation, argv)
                self._until(operation, "has processes still", self.is_gone)
            case Operation.RESUME:
                return None, self._resume(argv)
            case _ if argv or operation.value in self.life.acts:
                self._run(operation, argv)
        return None, time.monotonic_ns()

    def _run(self, operation: Operation, argv: Sequence[str]) -> None:
        """Run a command that says what it has to say on the console, which what it starts may keep."""
        if (act := self.life.acts.get(operation.value)) is not None:
            act(())
            return
        self._ended(self._begin(operation, argv), operation, argv)

    def _ended(self, process: subprocess.Popen[bytes], operation: Operation, argv: Sequence[str]) -> None:
        """Wait for the end of a command. Raises `RefusedError` where it failed."""
        _wait(process, operation)
        if process.returncode != 0:
            said = instance_console.read(self.spec.space.log).decode(errors="replace").strip().splitlines()
            why = f": {said[-1][:300]}" if said else ""
            raise RefusedError(f"`{_shown(argv)}` of {self.platform} ended with {process.returncode}{why}")

    def _resume(self, argv: Sequence[str]) -> int:
        """Resume it, and return the instant at which it worked again.

        Its command may return much later: it shares the instance's CPUs with what it has woken.
        """
        stood = self.own_cpu_ns()

        def moves() -> bool:
            return self.own_cpu_ns() > stood + MOVES_NS

        if (act := self.life.acts.get(Operation.RESUME.value)) is not None:
            act(())
            self._until(Operation.RESUME, "stands still", moves)
            return time.monotonic_ns()
        process = self._begin(Operation.RESUME, argv)
        self._until(Operation.RESUME, "stands still", lambda: moves() or bool(process.poll()))
        came_ns = time.monotonic_ns()
        self._ended(process, Operation.RESUME, argv)
        return came_ns

    def _stay(self, operation: Operation, argv: Sequence[str]) -> None:
        """Start what goes on, and wait for its first output."""
        self.started = process = self._begin(operation, argv)
        up = self.life.acts.get(operation.value)
        if not (_first_bytes(process) if up is None else up(())):
            raise PlatformError(f"`{_shown(argv)}` of {self.platform} printed nothing, and should still run")

    def _execute(self, argv: Sequence[str]) -> tuple[int | None, int]:
        if (act := self.life.acts.get(Operation.EXECUTE.value)) is not None:
            printed = act(INSIDE)
            if printed.strip() != SAYS:
                raise PlatformError(f"`{_shown(INSIDE)}` in {self.platform} printed {printed[:80]!r}")
            return None, time.monotonic_ns()
        process = self._begin(Operation.EXECUTE, argv)
        try:
            printed = _first_bytes(process)
            first_ns = time.monotonic_ns() - self._went_ns
            _wait(process, Operation.EXECUTE)
            came_ns = time.monotonic_ns()
        finally:
            processes.end(process)
        if process.returncode != 0 or printed.strip() != SAYS:
            said = instance_console.read(self.spec.space.log).decode(errors="replace").strip().splitlines()
            why = f": {said[-1][:300]}" if said else f" and printed {printed[:80]!r}"
            raise PlatformError(f"`{_shown(argv)}` of {self.platform} ended with {process.returncode}{why}")
        return first_ns, came_ns

    def hold(self, *operations: Operation) -> None:
        """Start operations' commands now, up to the moment before they begin; what names a process waits for that."""
        self.hurried = True
        for operation in operations:
            argv = self.words(operation)
            if argv and not {STARTED, LEADER} & set(argv):
                self._held[operation] = self._hold(operation, argv, rest=False)

    def words(self, operation: Operation) -> tuple[str, ...]:
        """Return the words of an operation's command with what is run inside; as of `command`."""
        argv = self.command(operation)
        return (*argv, *INSIDE) if argv and operation is Operation.EXECUTE else argv

    def _begin(self, operation: Operation, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a command; the time until it may begin is in no figure."""
        held = self._held.pop(operation, None) or self._hold(operation, argv, rest=not self.hurried)
        self._went_ns = time.monotonic_ns()
        held.go()
        return held.process

    def _hold(self, operation: Operation, argv: Sequence[str], *, rest: bool) -> processes.HeldProcess:
        stays = operation in {Operation.START, Operation.RESTORE} and self.life.stays
        says = operation is Operation.EXECUTE or (stays and operation.value not in self.life.acts)
        with instance_console.opened(self.spec.space.log) as log:
            return processes.start_held(
                [*self.named(argv)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if says else log,
                stderr=log,
                cgroup_procs=self.spec.group.leaf("box" if stays else TOOL),
                within=self.life.start_within or self.life.within if operation is Operation.START else self.life.within,
                rest=rest,
            )

    def named(self, argv: Sequence[str]) -> Iterator[str]:
        """Yield the words of a command with the processes that some stand for."""
        for word in argv:
            if word == STARTED and self.started is not None:
                yield str(self.started.pid)
            elif word == LEADER and self.started is not None:
                yield str(self._leader(self.started.pid))
            else:
                yield word

    def _leader(self, pid: int) -> int:
        """Return the innermost of a process's descendants, each the only child of its parent."""
        while len(children := processes.children(pid)) == 1:
            [pid] = children
        return pid

    def _until(self, operation: Operation, otherwise: str, come: Callable[[], bool]) -> None:
        deadline = until(LIMIT_S)
        while not come():
            if time.monotonic() > deadline:
                raise PlatformError(f"{self.platform} {otherwise} {stretched(LIMIT_S):.0f} s after its {operation}")
            time.sleep(LOOK_S)

    def note_processes(self) -> None:
        """Note the instance's processes that tare must wait for, except those that it started itself.

        Only `subprocess` may wait for these: if anything else does, their exit code is lost.
        """
        own = {held.process.pid for held in self._held.values()}
        if self.started is not None:
            own.add(self.started.pid)
        self.orphans.update(set(self.spec.group.pids()) - own)

    def is_gone(self) -> bool:
        """Whether no process is left, and none that nobody has waited for: a runtime takes such a one for alive."""
        started_ended = self.started is None or self.started.poll() is not None
        return started_ended and not self.spec.group.pids() and self._wait_for_orphans()

    def _reaping(self) -> contextlib.AbstractContextManager[None]:
        """Wait for its processes as they end, where a daemon's command waits for that too."""
        return parentage.reaping(self.orphans) if self.life.daemons else contextlib.nullcontext()

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

    def own_cpu_ns(self) -> int:
        """CPU time of the instance itself, without its platform's commands, in ns."""
        return self.spec.group.cpu_ns() - self.tool.cpu_ns()

    def _moved_ns(self) -> int:
        """CPU time of the instance in `STANDS_S`, in ns."""
        stood = self.own_cpu_ns()
        time.sleep(STANDS_S)
        return self.own_cpu_ns() - stood

    def _require_still(self) -> None:
        """Look whether it uses CPU time; that look is in no figure. Raises `PlatformError`.

        What still looks after it may have something to do at times: it is looked at twice.
        """
        moved = min(self._moved_ns(), self._moved_ns())
        if moved > MOVES_NS:
            raise PlatformError(f"{self.platform} used {moved / 1e6:.1f} ms of CPU time while it was paused")


def _wait(process: subprocess.Popen[bytes], operation: Operation) -> None:
    """Wait for a command's end, without looking again and again. Raises `PlatformError` at the limit."""
    if process.returncode is not None:  # it was noticed already
        return
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
    """Return the first of its output; b"" where it ends, or is silent up to the limit."""
    assert process.stdout is not None
    ready = select.select([process.stdout], [], [], stretched(LIMIT_S))[0]
    return os.read(process.stdout.fileno(), 4096) if ready else b""


def _shown(argv: Sequence[str]) -> str:
    return " ".join(" ".join(argv).split())[:200]
