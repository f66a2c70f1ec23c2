"""The telemetry of a campaign: a thread that reads the host's counters at a steady rate while trials run.

It never writes to the store: its readings are kept until the next trials are committed, and are committed with them.
Like all of tare's threads it runs on CPUs that are not measured where there are any (`host.pinning`). A reading costs
about a millisecond (docs/benchmarks.md).
"""

from __future__ import annotations

import contextlib
import resource
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from tare.campaign.instances.launcher import PARENT_GROUP, RunningInstance
from tare.campaign.telemetry.plausible import Judge
from tare.campaign.telemetry.strays import Strays
from tare.errors import Failed, attempt
from tare.host import state
from tare.host.cgroup import Group, named
from tare.host.facts import counters
from tare.host.network.fence import BRIDGE
from tare.model import Arm, CpuTick, InstanceTick, Tick

#: Seconds between two readings: at 2 Hz they take 0.3 % of a core, at 10 Hz 1.2 % (docs/benchmarks.md); and a neighbour
#: that runs for less than half a second matters only to the shortest trials.
INTERVAL_S = 0.5

#: Distinguished reasons for dropped readings.
MAX_REASONS = 5

RunningInstances = Callable[[], Collection[RunningInstance]]


@dataclass(slots=True)
class Dropped:
    """Readings that were dropped for one reason."""

    count: int
    fault: Failed | None  # of the first, where it could not be read


@dataclass(slots=True)
class Sampler:
    """Reads the host's counters while `sampling`; `drain` returns the readings since its last call.

    A reading that fails, or cannot be (`tare.campaign.telemetry.plausible`), is dropped, and those after it are not.
    """

    cpus: Sequence[int]  # those that instances are pinned to
    interval_s: float = INTERVAL_S
    seen: Callable[[Tick], object] | None = None  # called with each reading, by the thread that reads
    failed: Failed | None = None  # why it ended before its time, or did not begin
    cpu_ns: int = 0  # what all readings cost
    readings: int = 0
    dropped: dict[str, Dropped] = field(default_factory=dict)  # by reason
    _judge: Judge = field(default_factory=Judge)
    _ticks: list[Tick] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextlib.contextmanager
    def sampling(self, running_instances: RunningInstances, daemons: Collection[str] = ()) -> Iterator[None]:
        """Take readings while the context lasts, and one more at its end.

        ``running_instances``: returns the running instances; called by another thread. ``daemons``: the paths of the
        control groups of shared daemons; more may be added meanwhile.
        """
        end = threading.Event()
        thread = threading.Thread(
            target=self._run, args=(running_instances, daemons, end), name="telemetry", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()

    def drain(self) -> list[Tick]:
        """Return the readings since the last call."""
        with self._lock:
            ticks, self._ticks = self._ticks, []
        return ticks

    def _run(self, running_instances: RunningInstances, daemons: Collection[str], end: threading.Event) -> None:
        ended = attempt(partial(self._read_on, running_instances, daemons, end))
        if isinstance(ended, Failed):
            self.failed = ended

    def _read_on(self, running_instances: RunningInstances, daemons: Collection[str], end: threading.Event) -> None:
        with contextlib.closing(_Host(self.cpus, daemons)) as host:
            self._read_steadily(host, running_instances, end)

    def _read_steadily(self, host: _Host, running_instances: RunningInstances, end: threading.Event) -> None:
        due = time.monotonic()
        over = False
        while not over:
            over = end.is_set()  # before the reading: the last one is taken after the end
            tick = self._read(host, running_instances)
            self.readings += 1
            self.cpu_ns = time.thread_time_ns()
            if tick is not None:
                with self._lock:
                    self._ticks.append(tick)
                if self.seen is not None:
                    attempt(partial(self.seen, tick))  # what shows it must not end the readings
            # Readings that were missed are not made up for.
            due = max(due + self.interval_s, time.monotonic())
            if not over:
                end.wait(max(0.0, due - time.monotonic()))

    def _read(self, host: _Host, running_instances: RunningInstances) -> Tick | None:
        """Return a reading; None where it is dropped."""
        read = attempt(lambda: host.read(running_instances(), first=False))
        judged = read.reason if isinstance(read, Failed) else self._judge.judged(read)
        if isinstance(judged, Tick):
            return judged
        if judged not in self.dropped and len(self.dropped) >= MAX_REASONS:
            judged = "for other reasons"
        dropped = self.dropped.setdefault(judged, Dropped(0, read if isinstance(read, Failed) else None))
        dropped.count += 1
        return None


class _Host:
    """The counters of this host and of the running groups; the files of groups stay open between readings."""

    def __init__(self, cpus: Sequence[int], daemons: Collection[str]) -> None:
        self._known_daemons = daemons
        self._kernel = counters.KernelThreads(cpus)
        self._all = Group("")
        self._tare = named(PARENT_GROUP)
        self._client = named(f"{PARENT_GROUP}/client")
        self._instances: dict[str, Group] = {}
        self._daemons: dict[str, tuple[Group, int]] = {}  # with the last figure
        self._daemons_ns = 0
        self._device = counters.device_of(state.home())
        self._strays = Strays()

    def close(self) -> None:
        """Close all files."""
        for group in (
            self._tare,
            self._client,
            *self._instances.values(),
            *(daemon for daemon, _ in self._daemons.values()),
        ):
            group.close()
        self._strays.close()

    def read(self, running_instances: Collection[RunningInstance], *, first: bool) -> Tick:
        """Read all counters, as near to one moment as possible: the CPUs' first, as they are compared."""
        at, at_ns = time.time(), time.monotonic_ns()
        strays_ns, strays_by_cpu = self._strays.read()
        cpus = self._cpus(strays_by_cpu)
        tare_ns, client_ns, own_ns = self._tare.cpu_ns() - strays_ns, self._client.cpu_ns(), _own_ns()
        memory, disk = counters.memory(), counters.disk(self._device)
        received, sent = counters.network(BRIDGE)
        return Tick(
            at=at,
            at_ns=at_ns,
            first=first,
            own_ns=own_ns,
            tare_ns=tare_ns,
            client_ns=client_ns,
            daemons_ns=self._daemons_so_far(),
            kernel_ns=self._kernel.total_ns(),
            cpu_pressure_us=counters.pressure_us("cpu"),
            memory_pressure_us=counters.pressure_us("memory"),
            io_pressure_us=counters.pressure_us("io"),
            memory_available=memory.available,
            swapped_in=memory.swapped_in,
            swapped_out=memory.swapped_out,
            disk_read_bytes=disk.read_bytes if disk else None,
            disk_written_bytes=disk.written_bytes if disk else None,
            disk_busy_ms=disk.busy_ms if disk else None,
            net_received_bytes=received,
            net_sent_bytes=sent,
            cpus=cpus,
            instances=self._of_instances(running_instances),
        )

    def _cpus(self, strays: Sequence[int] | None) -> tuple[CpuTick, ...]:
        times = counters.cpu_times()
        # Ticks count the tasks that clock interrupts meet: too coarse for half a second where there are finer counters.
        by_cpu, of_tare = self._all.cpu_ns_by_cpu(), self._tare.cpu_ns_by_cpu()
        ran = dict(enumerate(by_cpu)) if by_cpu else counters.run_times()
        ticks = []
        for cpu, ms in times.items():
            user, nice, system, *rest = ms
            idle, iowait, irq, softirq, steal = rest
            run_ns = ran.get(cpu, 1_000_000 * (user + nice + system))
            tare_ns = of_tare[cpu] - (strays[cpu] if strays else 0) if of_tare else None
            ticks.append(CpuTick(cpu, user, nice, system, idle, iowait, irq, softirq, steal, run_ns, tare_ns))
        return tuple(ticks)

    def _of_instances(self, running_instances: Collection[RunningInstance]) -> tuple[InstanceTick, ...]:
        arms_by_group = {
            running.instance.spec.group.path: running.arm for running in running_instances if running.instance.accounted
        }
        for path in self._instances.keys() - arms_by_group.keys():
            self._instances.pop(path).close()
        ticks = []
        for path, arm in arms_by_group.items():
            group = self._instances.setdefault(path, Group(path))
            with contextlib.suppress(OSError):  # it was stopped meanwhile
                ticks.append(_instance(arm, group))
        return tuple(ticks)

    def _daemons_so_far(self) -> int:
        """CPU time of the daemons in ns, each from its first reading on: it works for starts and stops too."""
        for path in tuple(self._known_daemons):
            if path not in self._daemons:
                group = Group(path)
                with contextlib.suppress(OSError):
                    self._daemons[path] = group, group.cpu_ns()
        for path, (group, before) in list(self._daemons.items()):
            try:
                now = group.cpu_ns()
            except OSError:  # it is gone, and its group with it
                group.close()
                del self._daemons[path]
                continue
            self._daemons_ns += now - before
            self._daemons[path] = group, now
        return self._daemons_ns


def _instance(arm: Arm, group: Group) -> InstanceTick:
    throttled = group.throttled()
    return InstanceTick(
        arm,
        group.cpu_ns(),
        group.memory_bytes(),
        None if throttled is None else throttled[0],
        None if throttled is None else throttled[1],
    )


def _own_ns() -> int:
    """CPU time of this process and of its ended children, in ns."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time_ns() + int(1e9 * (ended.ru_utime + ended.ru_stime))
