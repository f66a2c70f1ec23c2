"""Instances of a campaign: start one with everything it needs, see it start, end it."""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tare.campaign.instances.starts import marks, marks_from_outside
from tare.campaign.telemetry.disk_watch import DiskWatch, Tenant
from tare.errors import Failed, HostError, PlatformError, SessionError, TareError, attempt
from tare.host import cgroup, console, memory, removers, roots
from tare.host.journal import CleanupStack, Journal
from tare.host.network import Network
from tare.image.build import Image
from tare.model import Arm, Resources
from tare.platforms import contract
from tare.platforms.base import Beacon, Instance, LaunchSpec, Platform
from tare.platforms.parts.marks import Datagram
from tare.session import NoAgentSession, Session
from tare.timeouts import stretched
from tare.workloads.base import StartMarks, Weight

#: The control group that all instances are siblings in.
PARENT_GROUP = "tare"
#: A sandbox that has not said a word by then has failed to start.
START_LIMIT_S = 60.0
#: Ports of instances on the host, below those that Linux hands out by itself (from 32,768).
FIRST_PORT, PORTS = 20_100, 2_000


@dataclass(frozen=True, slots=True)
class Terms:
    """What one instance gets otherwise than the campaign's others; None: as they have it."""

    memory_bytes: int | None = None
    start_limit_s: float | None = None
    gate: Callable[[], None] | None = None  # holds it just before its start instant, until it returns
    number: int | None = None  # one that was asked for beforehand (`InstanceLauncher.number`)


#: As all others.
USUAL = Terms()


@dataclass(slots=True)
class RunningInstance:
    """An instance in service, with its session and all that belongs to it."""

    arm: Arm
    instance: Instance
    session: Session
    cleanup: CleanupStack
    marks: StartMarks | None
    command_ns: int  # from the start instant until its first command had returned; without an agent: had answered
    dirty: list[Failed] = field(default_factory=list)  # what could not be undone of what a trial did in it

    @property
    def usable(self) -> bool:
        """Whether the next trial may have it."""
        return self.session.dead is None and not self.dirty

    def cpu_ns(self) -> int | None:
        """CPU time of the whole platform so far; None where this host does not see its work."""
        return self.instance.spec.group.cpu_ns() if self.instance.accounted else None

    def measure_memory(self) -> Weight:
        """What it takes of this host's memory now. Raises `HostError` where this host does not see it."""
        if not self.instance.accounted:
            raise HostError("its memory is not this host's to see")
        group = self.instance.spec.group
        pss = memory.pss_bytes(self.instance.host_processes())
        return Weight(group=group.memory_bytes(), pss=pss, host=memory.host_bytes())

    def daemon_cpu_ns(self) -> int | None:
        """CPU time of the platform's shared daemons so far; None where there are none that can be read."""
        daemons = self.instance.daemons
        try:
            return sum(group.cpu_ns() for group in daemons) if daemons else None
        except OSError:  # a daemon that is gone may have taken its group along
            return None

    def keep_on(self, cpus: Sequence[int]) -> None:
        """Let all of its threads on the host run on these CPUs only; what it starts later inherits that."""
        for pid in self.instance.host_processes():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                for thread in Path(f"/proc/{pid}/task").iterdir():
                    with contextlib.suppress(ProcessLookupError):
                        os.sched_setaffinity(int(thread.name), cpus)

    def console(self) -> bytes:
        """The end of what its console said so far."""
        return console.read(self.instance.spec.space.log)

    def stop(self) -> None:
        """End the instance and remove what was made for it. Raises `HostError` when something stays."""
        with contextlib.ExitStack() as ends:  # each is done whatever becomes of the one before; the first comes last
            ends.callback(self.cleanup.release)
            for group in (*self.instance.daemons, self.instance.spec.group):
                ends.callback(group.close)
            with contextlib.suppress(SessionError):
                self.session.close()


@dataclass(slots=True)
class InstanceLauncher:
    """Where a campaign's instances are born."""

    campaign: str  # 5 hexadecimal digits: the campaign's part of every label
    image: Image
    resources: Resources
    network: Network
    journal: Journal
    work: Path
    datagram: Datagram
    disk: DiskWatch
    start_limit_s: float = START_LIMIT_S
    #: Paths of the control groups of shared daemons that instances so far were made by.
    daemons: set[str] = field(default_factory=set)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def number(self) -> int:
        """A number for an instance to come, for its `Terms`: whoever has it knows the control group beforehand."""
        return next(self._numbers)

    def group(self, number: int) -> str:
        """The path of the control group that the instance of this number has."""
        return f"{PARENT_GROUP}/{self._name(number)}"

    def _name(self, number: int) -> str:
        return f"{self.campaign}x{number}"

    def start(self, platform: Platform, arm: Arm, *, measured: bool, terms: Terms = USUAL) -> RunningInstance:
        """Start an instance and wait until its agent has run a first command. Several threads may do so at once.

        Raises `PlatformError`, `SessionError` or `HostError` with the sandbox's last words; nothing stays.
        """
        number = self.number() if terms.number is None else terms.number
        spaces = self.work / self._name(number)
        cleanup = CleanupStack(self.journal)
        try:
            with roots.translated(f"an instance of {platform.name}", self.work):
                running = self._start(platform, arm, number, spaces, cleanup, terms, measured=measured)
                self.daemons.update(group.path for group in running.instance.daemons)
                return running
        except TareError as error:
            last = console.read(spaces / "console.log")
            said = _last_words(last)
            overdone = self.disk.why_ended(self.group(number))
            if overdone is not None:
                error.what, error.fix = f"{overdone.what}: {error.what}", overdone.fix
            full = roots.full(self.work)  # looked at before what was made goes again
            if full is not None:
                error.what, error.fix = f"the disk is full: {error.what}", full
            with contextlib.suppress(HostError):  # what stays is noted (`host.unremoved`)
                cleanup.release()
            if said:
                what = f"{error.what}; its console ends: {said}"
                raise PlatformError(what, fix=error.fix, console=last) from error
            raise
        except BaseException:
            with contextlib.suppress(HostError):
                cleanup.release()
            raise

    def _start(
        self,
        platform: Platform,
        arm: Arm,
        number: int,
        folder: Path,
        cleanup: CleanupStack,
        terms: Terms,
        *,
        measured: bool,
    ) -> RunningInstance:
        name = folder.name
        resources = replace(self.resources, memory_bytes=terms.memory_bytes or self.resources.memory_bytes)
        group = cgroup.Group(self.group(number))
        cleanup.own(removers.control_group(group.path))
        group.create(resources)
        space = roots.new_workspace(cleanup, folder, resources.data_bytes)
        tenant = self.disk.add(space, group, resources.data_bytes)
        token = secrets.token_bytes(16)
        spec = LaunchSpec(
            id=name,
            image=self.image,
            resources=resources,
            group=group,
            space=space,
            network=self.network,
            port=FIRST_PORT + number % PORTS,
            beacon=Beacon(self.datagram.host, self.datagram.port, token) if measured else None,
            start_limit_s=terms.start_limit_s or self.start_limit_s * platform.start_patience,
            gate=terms.gate,
        )
        instance = contract.launched(platform, spec, cleanup)
        if not platform.has_agent:
            return self._start_mute(platform, arm, instance, cleanup, tenant, measured=measured)
        try:
            session = Session.open(instance.stream, time_limit_s=spec.start_limit_s)
            self._check(session, platform)
            first = session.execute(["true"], time_limit_s=spec.start_limit_s)
            command_ns = time.monotonic_ns() - instance.started.monotonic_ns
            if first.code != 0:
                raise PlatformError(f"`true` in {platform.name} ended with {first.code}")
            seen = None
            if measured:
                seen = marks(instance, session, self.datagram, token, command_ns, own_kernel=platform.own_kernel)
            self.network.pin(name)  # no program of a workload's has run there yet
            if instance.settle is not None:
                instance.settle()
            self.disk.started(tenant, session)
        except BaseException:
            instance.abandon()
            raise
        return RunningInstance(arm, instance, session, cleanup, seen, command_ns)

    def _start_mute(
        self, platform: Platform, arm: Arm, instance: Instance, cleanup: CleanupStack, tenant: Tenant, *, measured: bool
    ) -> RunningInstance:
        """Wait until what has no agent has answered from outside."""
        session = NoAgentSession(instance.stream, platform.name)
        assert instance.answer is not None, "what has no agent is watched for its answers"
        try:
            limit_s = instance.spec.start_limit_s
            answered = instance.answer.wait(time_limit_s=limit_s, gone=lambda: session.dead is not None)
            if session.dead is not None:
                raise PlatformError(f"{platform.name} ended before it answered", fix="see what its console says")
            if answered is None:
                silent = ", ".join(map(str, instance.answer.silent()))
                what = f"{platform.name} does not answer {silent} within {stretched(limit_s):.0f} s"
                raise PlatformError(what, fix="see what its console says, and that it takes the address it is given")
            self.network.pin(instance.spec.id)
            self.disk.started(tenant, session)
        except BaseException:
            instance.abandon()
            raise
        seen = marks_from_outside(instance, answered) if measured else None
        return RunningInstance(arm, instance, session, cleanup, seen, answered - instance.started.monotonic_ns)

    def _check(self, session: Session, platform: Platform) -> None:
        seen = (session.hello.image or "").strip()
        if platform.same_bits and seen != self.image.hash:
            raise PlatformError(f"{platform.name} runs other bits: image {seen or 'unknown'}, not {self.image.hash}")


def stop_all(running_instances: Iterable[RunningInstance]) -> list[Failed]:
    """End instances; an error with one does not keep the others alive. Returns what failed."""
    ends = [attempt(running.stop) for running in running_instances]
    return [end for end in ends if isinstance(end, Failed)]


def _last_words(said: bytes) -> str:
    lines = said.decode(errors="replace").strip().splitlines()
    # What a kernel says after it panicked is its stack, and once our own boot script gave up, how it powers off: why is
    # in the lines up to that.
    told = [number for number, line in enumerate(lines) if "Kernel panic" in line or line.startswith("tare: ")]
    end = told[0] + 1 if told else len(lines)
    return " | ".join(line[:300] for line in lines[max(0, end - 3) : end])
