"""A client on another machine, which ssh reaches: commands of the image in a chroot there.

It is the platform ssh that brings the image's files by their digest and starts the agent there (`platforms.ssh`); its
programs are a user's without rights, as those of the client on this host. A lost connection fails the trial that it is
lost in; the next trial connects again.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from tare.campaign.instances import inside_clock
from tare.campaign.instances.client import KEPT, OUTPUT_CAP, confined
from tare.campaign.instances.launcher import InstanceLauncher
from tare.errors import HostError, PlatformError, SessionError, UsageError, attempt
from tare.host import processes
from tare.host.cgroup import Group
from tare.host.filesystems import roots
from tare.host.network import outside
from tare.host.network.fence import INSTANCE_PORTS
from tare.host.network.outside import Outside
from tare.host.resources.journal import CleanupStack
from tare.image.image_build import Image
from tare.platforms.base import AGENT, Address, LaunchSpec
from tare.platforms.ssh import Facts, Ssh
from tare.session import ClockOffset, ExecResult, Execution, Session
from tare.store import ClientRecord

#: How a client is named: by the platform that reaches it.
PREFIX = "ssh:"
#: By how much its clock may be surely too fast or too slow; what its programs time would be wrong by as much.
MOST_OFF = 0.01
_OPEN_LIMIT_S = 60.0
#: Of a call that shows whether it arrives, and of a program that serves until it is ended.
_CALL_LIMIT_S, _SERVING_LIMIT_S = 30.0, 24 * 3600.0
_CLOCK_SOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"


def check(name: str) -> Ssh:
    """Return the machine of this name, ``ssh:[USER@]HOST[:PORT]``. Raises `UsageError` for what names none."""
    if not name.startswith(PREFIX) or name == PREFIX:
        raise UsageError(f"{name!r} names no client", fix="write --client ssh:[USER@]HOST[:PORT]")
    return Ssh(name.removeprefix(PREFIX))


def connected(name: str, launcher: InstanceLauncher, group: Group, cleanup: CleanupStack) -> FarClient:
    """Look at a machine, bring it the image, and return the client there. Raises `HostError` where it cannot be one.

    ``group``: of the connection's processes on this host.
    """
    numbers = itertools.count()

    def client(image: Image, own: FarClient | None = None, *, loads: bool = True) -> FarClient:
        machine = check(name)
        availability = machine.detect()
        if not availability.available:
            raise HostError(f"the client {name}: {availability.reason}", fix=availability.fix or None)
        assert machine.facts is not None, "it was looked at"
        resources = replace(launcher.resources, cpus=machine.facts.cpus, data_bytes=None, cpu_quota=None)

        def place() -> LaunchSpec:
            label = f"{launcher.campaign}c{next(numbers)}"
            space = roots.new_workspace(cleanup, launcher.work / label)
            return LaunchSpec(label, image, resources, group, space, launcher.network, INSTANCE_PORTS[-1])

        try:
            machine.prepare(image)
        except PlatformError as error:
            raise HostError(f"the client {name}: {error.what}", fix=error.fix or machine.by_hand()) from error
        return FarClient(machine, place, cleanup, own, loads=loads)

    image, tools = launcher.image, launcher.image.tools
    return client(image) if tools is None else client(tools, client(image, loads=False))


@dataclass(frozen=True, slots=True)
class _Link:
    """A connection, and the clock there when it began."""

    session: Session
    clock: ClockOffset


class FarClient:
    """The instances' peer on another machine. Several threads may use it: each has a connection meanwhile."""

    def __init__(
        self,
        machine: Ssh,
        place: Callable[[], LaunchSpec],
        cleanup: CleanupStack,
        own: FarClient | None = None,
        *,
        loads: bool = True,
    ) -> None:
        """``place`` makes the place on this host for one connection; ``own``: with the application's own image.

        ``loads``: it keeps other campaigns from the machine, which one of a campaign's does.
        """
        self._machine, self._place, self._cleanup, self._own = machine, place, cleanup, own
        self._loads = loads
        self._lock = threading.Lock()
        self._first: _Link | None = None  # the connection that keeps others away
        self._links: list[_Link] = []  # all that were made
        self._free: list[_Link] = []  # those that no thread uses
        self._cpu_ns = 0

    @property
    def address(self) -> str:
        """The machine's own IPv4 address; "" where it has none that is known."""
        return self._machine.resolved() or ""

    @property
    def cpu_count(self) -> int:
        """CPUs that its commands may use: all of the machine's."""
        return len(self._facts.cpus)

    @property
    def _facts(self) -> Facts:
        assert self._machine.facts is not None, "it was looked at"
        return self._machine.facts

    def cpu_ns(self) -> int | None:
        """CPU time that its commands have used so far, in ns, as their kernel says."""
        return self._cpu_ns + (self._own._cpu_ns if self._own is not None else 0)

    def towards(self, address: Address) -> FarClient:  # noqa: ARG002 (it has one way to all of them)
        """Return the client itself."""
        return self

    def in_own_image(self) -> FarClient:
        """Return the client with the application's own image as its root.

        Where none was brought, this client itself.
        """
        return self if self._own is None else self._own

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str = "/data",
        env: Mapping[str, str] = MappingProxyType({}),
        stdin: bytes = b"",
        time_limit_s: float,
    ) -> processes.Finished:
        """Run a program there to its end, or to the time limit. Raises `HostError` where it is not reached."""
        with self._linked() as link:
            done = link.session.execute(
                self._command(argv, cwd, env), stdin=stdin, time_limit_s=time_limit_s, output_cap=OUTPUT_CAP
            )
            with self._lock:
                self._cpu_ns += done.user_ns + done.system_ns
            _check_clock(link)
        return processes.Finished(
            tuple(argv),
            _code(done),
            done.stdout,
            done.stderr,
            done.wall_ns,
            timed_out=done.timed_out,
            truncated=done.truncated,
        )

    @contextlib.contextmanager
    def serving(self, argv: Sequence[str]) -> Iterator[_Running]:
        """Run a program there without a limit; it is ended at the latest when the context is left."""
        with self._linked() as link:
            command = self._command(argv, "/data", {})
            began = link.session.start(command, time_limit_s=_SERVING_LIMIT_S, output_cap=OUTPUT_CAP)
            try:
                yield _Running(link.session, began)
            finally:
                if link.session.dead is None:
                    began.kill()
                    began.wait(time_limit_s=_OPEN_LIMIT_S)

    def record(self, name: str, way: Outside) -> ClientRecord:
        """Return the machine's facts, for the campaign's file. Raises `HostError`."""
        with self._linked() as link:
            began_ns = time.time_ns()
            shown = link.session.execute(["date", "+%s.%N"], time_limit_s=30).stdout
            middle_ns = (began_ns + time.time_ns()) / 2
            source = link.session.execute(["cat", _CLOCK_SOURCE], time_limit_s=30).stdout
        ahead = attempt(lambda: float(shown) - middle_ns / 1e9)
        facts = self._facts
        return ClientRecord(
            client=name,
            name=facts.name,
            address=way.address,
            called=way.front,
            kernel=facts.kernel,
            model=facts.model,
            cpus=len(facts.cpus),
            memory_bytes=facts.memory_kib << 10,
            clock_source=source.decode(errors="replace").strip()[:100],
            clock_ahead_s=round(ahead, 3) if isinstance(ahead, float) else None,
        )

    def require_reached(self, way: Outside) -> None:
        """Raise `HostError` where its connections do not arrive at the ports of instances."""

        def call(address: str, port: int) -> None:
            ask = [AGENT, "ask", "http", address, str(port), "0.1", "0", "0", "/"]
            calling.enter_context(self._linked()).session.start(self._command(ask, "/", {}), time_limit_s=_CALL_LIMIT_S)

        with contextlib.ExitStack() as calling:
            outside.require_reached(way, call)

    def close(self) -> None:
        """End its connections; the machine removes there what was made for them."""
        for link in self._links:
            link.session.close()
        if self._own is not None:
            self._own.close()

    def _command(self, argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> list[str]:
        return confined(argv, cwd, env, KEPT.get(argv[0].rpartition("/")[2]))

    @contextlib.contextmanager
    def _linked(self) -> Iterator[_Link]:
        """Provide a connection for this thread alone.

        An error that is raised meanwhile says that it is the client's.
        """
        try:
            with self._lock:
                link = self._free.pop() if self._free else self._connected()
            try:
                yield link
            finally:
                if link.session.dead is None:
                    with self._lock:
                        self._free.append(link)
                else:
                    link.session.close()
        except (SessionError, PlatformError, HostError) as error:
            problem = f"the client {self._machine.name}: {error.what}"
            raise HostError(problem, fix=error.fix or self._machine.by_hand()) from error

    def _connected(self) -> _Link:
        """Connect; the lock is held."""
        first = self._loads and (self._first is None or self._first.session.dead is not None)
        self._machine.loads = first
        spec = self._place()
        instance = self._machine.launch(spec, self._cleanup)
        try:
            session = Session.open(instance.stream, time_limit_s=_OPEN_LIMIT_S)
            _settle(session, spec.image)
            link = _Link(session, session.sync_clock())
        except BaseException:
            instance.abandon()
            raise
        instance.first_byte.wait(0)
        self._links.append(link)
        if first:
            self._first = link
        return link


def _check_clock(link: _Link) -> None:
    """Raise `HostError` where what programs there have timed is wrong by more than `MOST_OFF`."""
    clock = inside_clock.compared(link.clock, link.session.sync_clock(inside_clock.EXCHANGES))
    off = inside_clock.surely_off(clock)
    if off > MOST_OFF:
        way = "fast" if clock.rate_low > 0 else "slow"
        problem = f"its clock runs at least {100 * off:.3g} % too {way} against this host's: its times do not hold"
        raise HostError(problem, fix="mend its clock (its clock source, NTP), or load from another machine")


def _settle(session: Session, image: Image) -> None:
    """Check that the image's bits are there, and give the client's user a name and the data folder."""
    if (session.hello.image or "").strip() != image.hash:
        raise HostError(f"it runs other bits: image {session.hello.image or 'unknown'}, not {image.hash}")
    user = roots.client_user()
    attempt(partial(session.execute, ["chown", f"{user}:{user}", "/data"], time_limit_s=30))
    users = attempt(partial(session.get, "/etc/passwd", 1 << 20))
    if isinstance(users, bytes):  # an application's own image need not have it
        session.put("/etc/passwd", users + f"\ntare-client:x:{user}:{user}::/data:/bin/sh\n".encode())


def _code(done: ExecResult) -> int:
    """Return the exit code, or the number of the signal that ended it, negative."""
    return done.code if done.code is not None else -(done.signal or 0)


class _Running:
    """A program that runs there."""

    def __init__(self, session: Session, execution: Execution) -> None:
        self._session, self._execution = session, execution

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        if self._session.dead is None and not self._execution.over:
            self._session.ping()  # what ended meanwhile is known then
        if not self._execution.over:
            return None if self._session.dead is None else -1
        return _code(self._execution.result())
