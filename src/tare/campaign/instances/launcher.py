"""Instances of a campaign: start one with all that it needs, observe its start, end it."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tare.campaign.instances import memory_usage
from tare.campaign.instances.disk_watch import DiskWatch, Tenant
from tare.campaign.instances.kills import Kills
from tare.campaign.instances.starts import marks, marks_from_outside
from tare.errors import DiskFullError, Failed, HostError, PlatformError, SessionError, TareError, attempt
from tare.host import cgroup, instance_console, peak
from tare.host.facts import denials
from tare.host.filesystems import roots
from tare.host.network.bridge import Network
from tare.host.network.fence import INSTANCE_PORTS
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack, Journal
from tare.image.image_build import Image
from tare.model import Arm, Resources
from tare.platforms import platform_contract
from tare.platforms.base import Beacon, Instance, LaunchSpec, Platform
from tare.platforms.watchers.marks import Datagram
from tare.session import NoAgentSession, Session
from tare.store import ClientRecord
from tare.timeouts import stretched
from tare.workloads.base import MemoryUsage, StartMarks

#: The control group that all instances are siblings in.
PARENT_GROUP = "tare"
#: A sandbox that has sent nothing after this time has failed to start.
START_LIMIT_S = 60.0
#: Of an instance with an address of its own, which a client on another machine does not know.
UNPINGED = "a client on another machine calls ports of this host's, and its pings would be answered by this host"


@dataclass(frozen=True, slots=True)
class StartOptions:
    """In what one instance differs from the campaign's other instances; None: in nothing."""

    memory_bytes: int | None = None
    start_limit_s: float | None = None
    gate: Callable[[], None] | None = None  # called just before the start command; the start waits until it returns
    number: int | None = None  # that `InstanceLauncher.number` gave beforehand
    published: bool = True  # whether a client will call it (`LaunchSpec.published`)


#: No difference from the campaign's other instances.
DEFAULT = StartOptions()


@dataclass(slots=True)
class RunningInstance:
    """A started instance, with its session and all that was made on the host for it."""

    arm: Arm
    instance: Instance
    session: Session
    cleanup: CleanupStack
    marks: StartMarks | None
    command_ns: int  # from the start command until its first command returned; without an agent: until it answered
    reachable: bool = True  # whether it has published its port, if that is how clients reach it
    no_direct_io: str = ""  # the platform's own
    own_kernel: bool = False  # the platform's own
    dirty: list[Failed] = field(default_factory=list)  # clean-ups after trials in it that failed
    _kills_told: int = 0  # how many kills there had been when they were last told

    @property
    def usable(self) -> bool:
        """True if the next trial may use it."""
        return self.session.dead is None and not self.dirty

    def cpu_ns(self) -> int | None:
        """CPU time of the whole platform for it so far, in ns; None where this host does not account its work."""
        return self.instance.spec.group.cpu_ns() if self.instance.accounted else None

    def measure_memory(self, *, idle: bool = False) -> MemoryUsage:
        """Return what it takes of this host's memory now. Raises `HostError` where this host does not account its work.

        ``idle``: it has been for `cgroup.COUNTED_S`, so that its group's memory can be told to the page.
        """
        return memory_usage.read(self.instance, idle=idle)

    @contextlib.contextmanager
    def peak_watched(self) -> Iterator[Callable[[], int]]:
        """Yield a function that returns the most memory that it had on this host in this context (`peak.watched`).

        Raises `HostError` where this host does not account its work, or does not know.
        """
        if not self.instance.accounted:
            raise HostError("its memory cannot be read: it is another machine's, or in no control group")
        with peak.watched(self.instance.spec.group) as highest:
            yield highest

    def daemon_cpu_ns(self) -> int | None:
        """CPU time of the platform's shared daemons so far, in ns; None where there are none that can be read."""
        daemons = self.instance.daemons
        try:
            return sum(group.cpu_ns() for group in daemons) if daemons else None
        except OSError:  # a daemon that is gone may have taken its group along
            return None

    def keep_on(self, cpus: Sequence[int]) -> None:
        """Pin all of its threads on the host to these CPUs; what it starts later inherits that."""
        for pid in self.instance.host_processes():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                for thread in Path(f"/proc/{pid}/task").iterdir():
                    with contextlib.suppress(ProcessLookupError):
                        os.sched_setaffinity(int(thread.name), cpus)

    def killed(self) -> str:
        """Say what the host's kernel or its own one has killed of it; "" where nothing since the last call."""
        kills = Kills.read(self.instance.spec, accounted=self.instance.accounted, own_kernel=self.own_kernel)
        is_new, self._kills_told = kills.count > self._kills_told, kills.count
        return kills.in_words() if is_new else ""

    def console(self) -> bytes:
        """Return the end of its console's output so far."""
        return instance_console.read(self.instance.spec.space.log)

    def stop(self) -> None:
        """End the instance and remove what was made for it. Raises `HostError` when something cannot be removed."""
        with contextlib.ExitStack() as ends:  # each callback is run even if another fails; the first one comes last
            ends.callback(self.cleanup.release)
            for group in (*self.instance.daemons, self.instance.spec.group):
                ends.callback(group.close)
            with contextlib.suppress(SessionError):
                self.session.close()


class HostCpus(NamedTuple):
    """The CPUs of this host for all but the instances."""

    harness: tuple[int, ...]  # off the measured cores, or at least off the probes' CPU
    client: tuple[int, ...]  # other ones than the harness has, where enough are left


@dataclass(slots=True)
class InstanceLauncher:
    """Starts a campaign's instances."""

    campaign: str  # 5 hexadecimal digits: the campaign's part of every label
    image: Image
    resources: Resources
    network: Network
    journal: Journal
    work: Path
    datagram: Datagram
    disk: DiskWatch
    host_cpus: HostCpus
    start_limit_s: float = START_LIMIT_S
    #: The machine that loads the instances' servers; None: this host.
    client: ClientRecord | None = None
    #: Paths of the control groups of the shared daemons that made the instances so far.
    daemons: set[str] = field(default_factory=set)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def number(self) -> int:
        """Reserve the number of an instance to come, for its `StartOptions`, so that its control group is known."""
        return next(self._numbers)

    def group(self, number: int) -> str:
        """Return the path of the control group of the instance with this number."""
        return cgroup.path_of(f"{PARENT_GROUP}/{self._name(number)}")

    def _name(self, number: int) -> str:
        return f"{self.campaign}x{number}"

    def start(self, platform: Platform, arm: Arm, *, measured: bool, terms: StartOptions = DEFAULT) -> RunningInstance:
        """Start an instance and wait until its agent has run a first command. Several threads may do so at once.

        Raises `PlatformError`, `SessionError` or `HostError` with the end of the sandbox's console, and `DiskFullError`
        where others had filled the disk by then; what was made for the instance is then removed.
        """
        number = self.number() if terms.number is None else terms.number
        spaces = self.work / self._name(number)
        cleanup = CleanupStack(self.journal)
        with denials.watched() as denied:
            try:
                with roots.translated(f"an instance of {platform.name}", self.work):
                    running = self._start(platform, arm, number, spaces, cleanup, terms, measured=measured)
                    self.daemons.update(group.path for group in running.instance.daemons)
                    return running
            except TareError as error:
                last = instance_console.read(spaces / "console.log")
                console_end = _last_words(last)
                error.fix = _start_fix(platform, last) or error.fix
                overdone = self.disk.why_ended(self.group(number))
                if overdone is not None:
                    error.what, error.fix = f"{overdone.what}: {error.what}", overdone.fix
                denial = denied()
                if denial is not None:
                    error.what = f"{error.what}; {denial}"
                full = roots.full(self.work)  # asked before the clean-up frees the space
                if full is not None:
                    error.what, error.fix = f"the disk is full: {error.what}", full
                with contextlib.suppress(HostError):  # what cannot be removed is recorded (`host.unremoved`)
                    cleanup.release()
                message = f"{error.what}; its console ends: {console_end}" if console_end else error.what
                if full is not None and overdone is None:  # others have filled it
                    raise DiskFullError(message, fix=error.fix, console=last) from error
                if console_end:
                    raise PlatformError(message, fix=error.fix, console=last) from error
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
        terms: StartOptions,
        *,
        measured: bool,
    ) -> RunningInstance:
        spec, tenant = self._place(platform, number, folder, cleanup, terms, measured=measured)
        name, group = spec.id, spec.group
        with _with_kills(platform, spec):
            instance = platform_contract.launched(platform, spec, cleanup)
        tenant.group = instance.spec.group
        instance.accounted = instance.accounted and group.accounts
        if not platform.has_agent:
            return self._start_without_agent(platform, arm, instance, cleanup, tenant, measured=measured)
        try:
            with _with_kills(platform, instance.spec):
                session = Session.open(instance.stream, time_limit_s=spec.start_limit_s)
                self._check(session, platform)
                first = session.execute(["true"], time_limit_s=spec.start_limit_s)
                command_ns = time.monotonic_ns() - instance.started.monotonic_ns
                if first.code != 0:
                    raise PlatformError(f"`true` in {platform.name} ended with {first.code}")
            start_marks = None
            if measured:
                start_marks = marks(instance, session, self.datagram, command_ns, own_kernel=platform.boots)
            self.network.pin(name)  # before any program of a workload runs in it
            if instance.settle is not None:
                instance.settle()
            if platform.helper_pids and spec.resources.pids is not None:
                spec.group.bound(spec.resources.pids)
            self._lead_client(instance, cleanup)
            self.disk.started(tenant, session)
        except BaseException:
            instance.abandon()
            raise
        reachable = spec.published or not platform.publishes
        return RunningInstance(
            arm,
            instance,
            session,
            cleanup,
            start_marks,
            command_ns,
            reachable=reachable,
            no_direct_io=platform.no_direct_io,
            own_kernel=platform.own_kernel,
        )

    def place(self, platform: Platform, terms: StartOptions = DEFAULT) -> tuple[LaunchSpec, CleanupStack]:
        """Make the place of an instance without an agent: its control group and workspace. No client calls it.

        Who asks for it releases what is made there. Raises `HostError`.
        """
        number, cleanup = self.number(), CleanupStack(self.journal)
        with contextlib.ExitStack() as on_failure:
            on_failure.callback(cleanup.release)
            folder = self.work / self._name(number)
            unpublished = replace(terms, published=False)
            spec, _ = self._place(platform, number, folder, cleanup, unpublished, measured=False)
            on_failure.pop_all()
        return spec, cleanup

    def _place(
        self,
        platform: Platform,
        number: int,
        folder: Path,
        cleanup: CleanupStack,
        terms: StartOptions,
        *,
        measured: bool,
    ) -> tuple[LaunchSpec, Tenant]:
        name = folder.name
        resources = replace(self.resources, memory_bytes=terms.memory_bytes or self.resources.memory_bytes)
        group = cgroup.Group(self.group(number))
        cleanup.own(removers.control_group(group.path))
        pids = None if resources.pids is None else resources.pids + platform.helper_pids
        group.create(replace(resources, memory_bytes=resources.memory_bytes + platform.monitor_bytes, pids=pids))
        space = roots.new_workspace(cleanup, folder, resources.data_bytes)
        tenant = self.disk.add(space, group, resources.data_bytes)
        spec = LaunchSpec(
            id=name,
            image=self.image,
            resources=resources,
            group=group,
            space=space,
            network=self.network,
            port=INSTANCE_PORTS[number % len(INSTANCE_PORTS)],
            beacon=self._beacon(platform) if measured else None,
            start_limit_s=terms.start_limit_s or self.start_limit_s * platform.start_limit_factor,
            gate=terms.gate,
            published=terms.published,
            making_ns=_stopwatch(cleanup),
        )
        return spec, tenant

    def _lead_client(self, instance: Instance, cleanup: CleanupStack) -> None:
        """Lead a client on another machine to the instance. Raises `HostError`."""
        address, network = instance.address, self.network
        if not network.called_from_outside or address.host is None or address.client is not None:
            return
        if address.services:
            problem = (
                "a client on another machine calls one port of an instance, and this one has its services at others"
            )
            raise HostError(problem, fix="leave this platform out, or --client")
        host = network.lead_to(cleanup, instance.spec.port, address.host, address.port)
        unpinged = "" if address.echo in {None, host} else UNPINGED
        port = address.port if host == address.host else instance.spec.port
        instance.address = replace(address, host=host, port=port, unpinged=unpinged)

    def _beacon(self, platform: Platform) -> Beacon:
        port = self.datagram.far_port() if platform.elsewhere else self.datagram.port
        return Beacon(self.datagram.host, port)

    def _start_without_agent(
        self, platform: Platform, arm: Arm, instance: Instance, cleanup: CleanupStack, tenant: Tenant, *, measured: bool
    ) -> RunningInstance:
        """Wait until a platform without an agent answers on its services."""
        session = NoAgentSession(instance.stream, platform.name)
        try:
            with _with_kills(platform, instance.spec):
                answered = _answered(platform, instance, session)
            self.network.pin(instance.spec.id)
            self._lead_client(instance, cleanup)
            self.disk.started(tenant, session)
        except BaseException:
            instance.abandon()
            raise
        start_marks = marks_from_outside(instance, answered) if measured else None
        command_ns = answered - instance.started.monotonic_ns
        return RunningInstance(arm, instance, session, cleanup, start_marks, command_ns, own_kernel=platform.own_kernel)

    def _check(self, session: Session, platform: Platform) -> None:
        image_hash = (session.hello.image or "").strip()
        if platform.same_bits and image_hash != self.image.hash:
            raise PlatformError(
                f"{platform.name} runs other bits: image {image_hash or 'unknown'}, not {self.image.hash}"
            )


def _answered(platform: Platform, instance: Instance, session: NoAgentSession) -> int:
    """Return when an instance without an agent answered, in ns of the monotonic clock. Raises `PlatformError`."""
    assert instance.answer is not None, "a platform without an agent is watched for its answers"
    limit_s = instance.spec.start_limit_s
    answered = instance.answer.wait(time_limit_s=limit_s, gone=lambda: session.dead is not None)
    if answered is None and session.dead is not None:
        raise PlatformError(f"{platform.name} ended before it answered", fix="see what its console says")
    if answered is None:
        silent = ", ".join(map(str, instance.answer.silent()))
        message = f"{platform.name} does not answer {silent} within {stretched(limit_s):.0f} s"
        raise PlatformError(message, fix="see what its console says, and that it takes the address it is given")
    return answered


@contextlib.contextmanager
def _with_kills(platform: Platform, spec: LaunchSpec) -> Iterator[None]:
    """Add to an error what the host killed of the instance; at once, as cgroup v1 forgets it with groups below.

    What its own kernel says is in the end of the console, which the error gets besides.
    """
    try:
        yield
    except TareError as error:
        kills = Kills.read(spec, accounted=not platform.elsewhere, own_kernel=False)
        if kills.count:
            error.what = f"{kills.in_words()}: {error.what}"
        raise


def _stopwatch(cleanup: CleanupStack) -> Callable[[], int]:
    """Return a function that gives the time since now, in ns, without that which goes into the journal."""
    began, noted = time.monotonic_ns(), cleanup.noting_ns
    return lambda: time.monotonic_ns() - began - (cleanup.noting_ns - noted)


def stop_all(running_instances: Iterable[RunningInstance]) -> list[Failed]:
    """End all of these instances, even where ending one of them fails. Returns the failures."""
    ends = [attempt(running.stop) for running in running_instances]
    return [end for end in ends if isinstance(end, Failed)]


def _start_fix(platform: Platform, printed: bytes) -> str:
    fix = attempt(partial(platform.start_fix, printed))
    return fix if isinstance(fix, str) else ""


def _last_words(output: bytes) -> str:
    lines = output.decode(errors="replace").strip().splitlines()
    # After a kernel's panic comes its stack, and after our own boot script's error how the machine powers off: the
    # reason is in the lines up to there.
    fatal_lines = [number for number, line in enumerate(lines) if "Kernel panic" in line or line.startswith("tare: ")]
    end = fatal_lines[0] + 1 if fatal_lines else len(lines)
    return " | ".join(line[:300] for line in lines[max(0, end - 3) : end])
