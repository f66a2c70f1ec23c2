"""Adds instances of a platform until a quarter of what fits is there, or until a limit breaks, and measures each level.

The host stays usable: before each start it is checked that the host's reserve of memory, threads, files and disk is
left; instances are the first that the kernel would kill, before anything else on the host.
"""

from __future__ import annotations

import contextlib
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tare.campaign.execution import runs
from tare.campaign.execution.density import ApartResult, sliced_at_once
from tare.campaign.instances import memory_usage
from tare.campaign.instances.client import LoadClient
from tare.campaign.instances.launcher import PARENT_GROUP, RunningInstance
from tare.campaign.instances.pool import InstancePool
from tare.capacity_model import FILESYSTEMS_A_TABLE, FILL, Fill, FillLevel, Resource, Stop, cpus_used, kept, memory_used
from tare.errors import Failed, HostError, ParseError, PlatformError, SessionError, attempt
from tare.estimates.use_lines import UseLine, line
from tare.host import cgroup
from tare.host.facts import ceilings, counters, memory
from tare.host.filesystems import volumes
from tare.host.kernel import process_table
from tare.model import Sample
from tare.session import Execution
from tare.workloads.apart import FillWorkload
from tare.workloads.base import Params
from tare.workloads.cpu import primes

#: A trial that only predicts ends at this share of the number that it predicts.
SHARE = 0.25
#: Of that, near enough: what is predicted moves with each level.
NEAR = 0.9
#: Levels that a prediction needs at least, beside the one without an instance.
LEVELS = 4
#: A fill comes nearer by half of what is left, at least by this share of the whole.
FINEST = 1 / 20
#: The baseline is never filled: it only tells what a workload takes without a sandbox.
BASELINE_MOST = 16
#: Before a fill the kernel's objects go down by less than this in a second, or after so many seconds anyway.
SETTLED, SETTLE_LOOKS = 256 << 10, 20
#: In /proc/PID/oom_score_adj: the kernel kills instances before everything else on the host (proc(5)).
FIRST_TO_GO = 800
#: Bytes of tare's own clients at the end of a fill: a host without them has room for more instances.
_WORTH_SAYING = 64 << 20
#: Seconds for which applications are in service: longer than a fill takes, less than a day where these are stretched.
SERVICE_LIMIT_S = 4 * 3600.0
#: Files that tare keeps free of those that it may open itself.
OWN_FILES = 100
#: What an instance does that is put to work, all at the same instants.
WORK: Params = {"max_prime": 10_000, "slice_ms": 250, "rounds": 4, "warmup_ms": 100}
#: A percentile of the starts of a level needs so many.
_STARTS = 5
_COUNTED: Mapping[Resource, Callable[[], ceilings.Ceiling | None]] = {
    Resource.TASKS: ceilings.tasks,
    Resource.FILES: ceilings.files,
    Resource.BRIDGE_PORTS: ceilings.bridge_ports,
    Resource.MOUNTS: ceilings.mounts,
    Resource.TERMINALS: ceilings.terminals,
    Resource.MEMORY_GROUPS: ceilings.memory_groups,
    Resource.NEIGHBOURS: ceilings.neighbours,
}


def fill(workload: FillWorkload, params: Params, pool: InstancePool, client: LoadClient | None = None) -> ApartResult:
    """Run one trial; ``client``: for the plan of an application.

    Raises `HostError` for a platform whose memory this host does not account, and what starts do.
    """
    if pool.platform.elsewhere:
        raise HostError("its instances are on another machine, whose memory this host does not see")
    if params["active"] and not pool.platform.has_agent:
        raise HostError("no instance of it can be put to work: no agent runs inside")
    ceilings.raise_own_files()
    with contextlib.ExitStack() as in_service:
        put = partial(_put_into_service, workload, in_service, client)
        done = _Filling(params, pool, put).run()
    samples = tuple(Sample(name, value) for name, value in workload.read(done).items())
    return ApartResult(samples, {FILL: done.model_dump_json().encode()}, cpu_ns=done.levels[-1].cpu_ns)


@dataclass(slots=True)
class _Filling:
    """One fill under way."""

    params: Params
    pool: InstancePool
    put_into_service: Callable[[RunningInstance], Sequence[Execution]]
    began_s: float = field(default_factory=time.monotonic)
    levels: list[FillLevel] = field(default_factory=list)
    stop: Stop | None = None
    resource: Resource | None = None
    reason: str = ""
    most: dict[Resource, int] = field(default_factory=dict)
    kept_back: dict[Resource, int] = field(default_factory=dict)
    total: int = 0
    held: int = 0
    quarter: int | None = None
    own: list[int] = field(default_factory=list)
    kernel: list[int] = field(default_factory=list)
    cpu_shares: list[float] = field(default_factory=list)
    _starts_ms: list[float] = field(default_factory=list)  # of the level under way
    _host_mounts: list[tuple[RunningInstance, int]] = field(default_factory=list)  # the host's when each client started
    _servers: list[tuple[RunningInstance, Sequence[Execution]]] = field(default_factory=list)
    _failed: int = 0
    _idle_daemons: dict[str, tuple[int, int]] = field(default_factory=dict)  # before the fill, as `_resident`
    _group_tables: int = 0
    _idle_ports: dict[str, int] = field(default_factory=dict)  # before the fill, by bridge
    _bridge: str | None = None  # of the instances, once there is one
    _filesystems: set[str] = field(default_factory=set)  # before the fill

    @property
    def running(self) -> list[RunningInstance]:
        return self.pool.running_instances

    @property
    def memory_reserve(self) -> int:
        """Bytes of the host's memory that no instance gets."""
        return int(float(self.params["reserve"]) * self.total)

    def run(self) -> Fill:
        self._know_ceilings()
        self._settle()
        self._filesystems = ceilings.filesystems(process_table.pids())
        least = ceilings.nodes() * math.ceil(len(self._filesystems) / FILESYSTEMS_A_TABLE)
        self._group_tables = ceilings.tables_a_group(PARENT_GROUP, least)
        self._measure()
        target = 1
        while self.stop is None:
            self._grow(target)
            if self.running and (self._starts_ms or self._failed):
                self._measure()
                self._check_limits()
            if self.stop is None:
                target = self._next()
        cpus = len(self.pool.launcher.resources.cpus)
        return Fill(
            memory_total=self.total,
            memory_reserve=self.memory_reserve,
            group_tables=self._group_tables,
            nodes=ceilings.nodes(),
            budget=int(self.params["budget_bytes"]) or None,
            cpus=cpus,
            active=float(self.params["active"]),
            keep=float(self.params["keep"]),
            most=self.most,
            kept_back=self.kept_back,
            levels=self.levels,
            own=self.own,
            kernel=self.kernel,
            cpu_shares=self.cpu_shares,
            held=self.held,
            quarter=self.quarter,
            stop=self.stop,
            resource=self.resource,
            reason=self.reason,
        )

    def _settle(self) -> None:
        """Wait until the kernel has taken apart what ended instances had: namespaces go in the background."""
        before = _objects()
        for _ in range(SETTLE_LOOKS):
            time.sleep(1.0)
            now = _objects()
            if before - now < SETTLED:
                return
            before = now

    def _end(self, stop: Stop, reason: str, resource: Resource | None = None) -> None:
        self.stop, self.reason, self.resource = stop, reason, resource

    def _know_ceilings(self) -> None:
        self.total = ceilings.host_memory().total
        reserve = float(self.params["reserve"])
        for resource, ceiling in self._counted().items():
            self.most[resource] = ceiling.most
            self.kept_back[resource] = int(ceiling.most * reserve)
        self.kept_back[Resource.DISK] = max(volumes.MIN_FREE, self.kept_back[Resource.DISK])

    def _counted(self) -> dict[Resource, ceilings.Ceiling]:
        counted = {resource: read() for resource, read in _COUNTED.items()}
        if self._bridge is not None:
            counted[Resource.BRIDGE_PORTS] = ceilings.bridge_ports(self._bridge)
        found = {resource: ceiling for resource, ceiling in counted.items() if ceiling is not None}
        return {**found, Resource.DISK: ceilings.disk(self.pool.launcher.work)}

    # Growing

    def _grow(self, target: int) -> None:
        """Add instances up to the target, or until the host or the platform has no more."""
        self._starts_ms, self._failed = [], 0
        while len(self.running) < target and self.stop is None:
            if self._is_full():
                return
            self.pool.progress(f"{self.pool.platform.name}: {len(self.running) + 1} of {target} instances")
            started = attempt(self._add)
            if isinstance(started, Failed):
                self._not_started(started)
                continue
            _go_first(started)
            if memory_usage.client_has_mounts(started.instance):
                self._host_mounts.append((started, ceilings.mount_count()))
            self._starts_ms.append(started.command_ns / 1e6)

    def _add(self) -> RunningInstance:
        running = self.pool.add()
        try:
            self._servers.append((running, self.put_into_service(running)))
        except (ParseError, SessionError) as error:
            self.pool.remove(running)
            raise PlatformError(error.what, fix=error.fix) from error
        return running

    def _not_started(self, failed: Failed) -> None:
        error = failed.error
        if not isinstance(error, PlatformError | HostError):
            raise error
        self._failed += 1
        starts = sum(len(level.starts_ms) + level.failed for level in self.levels) + len(self._starts_ms) + self._failed
        failures = sum(level.failed for level in self.levels) + self._failed
        if not self.running:
            raise error
        if failures / starts > float(self.params["failures"]):
            self._end(Stop.START, failed.reason)

    def _is_full(self) -> bool:
        """Whether the next instance would take of the host's reserve."""
        biggest = max([0, *self.own]) + max([0, *self.kernel])
        free = counters.memory().available - biggest
        if free < self.memory_reserve:
            first, last = self.levels[0], self.levels[-1]
            clients = last.harness - first.harness
            beside = f"; tare's own clients have {clients >> 20} MiB" if clients > _WORTH_SAYING else ""
            self._end(Stop.FULL, f"{max(0, free) >> 20} MiB of memory would be left{beside}", Resource.MEMORY)
        for resource, ceiling in self._counted().items():
            if ceiling.used + self._each(resource) > ceiling.most - self.kept_back[resource]:
                self._end(Stop.FULL, f"{ceiling.used} of {ceiling.most} are used", resource)
        own = ceilings.own_files()
        if own.used > own.most - OWN_FILES:
            self._end(Stop.MOST, f"tare itself may open only {own.most} files (ulimit -n)")
        return self.stop is not None

    def _each(self, resource: Resource) -> int:
        if len(self.levels) < 2:
            return 0
        first, last = self.levels[0], self.levels[-1]
        return max(0, math.ceil((last.used.get(resource, 0) - first.used.get(resource, 0)) / max(1, last.count)))

    def _next(self) -> int:
        """Return the next level's number of instances; the fill ends where there is none."""
        count, predicted, most = len(self.running), self._predicted(), int(self.params["most"])
        quarter = predicted * SHARE
        filling = self.params["fill"] and not self.pool.platform.baseline
        if self.pool.platform.baseline:
            most = min(most, BASELINE_MOST)
        known = len({level.count for level in self.levels})  # a level that was measured again is one
        at_quarter = known > LEVELS and count >= NEAR * quarter
        if at_quarter and self.quarter is None:
            self.quarter = count
        if count >= most:
            self._end(Stop.MOST, f"{most} instances run, the most that were asked for")
        elif filling:
            near = predicted - count if math.isfinite(predicted) else count
            step = max(near / 2, predicted * FINEST if math.isfinite(predicted) else 1, 1)
            following = count + max(1, int(min(count, step)))
            if self.quarter is None and known >= LEVELS and math.isfinite(quarter):
                following = max(count + 1, min(following, math.ceil(quarter)))
            return min(most, following)
        elif time.monotonic() - self.began_s > float(self.params["time_s"]) and known > 2:
            self._end(Stop.TIME, f"the {self.params['time_s']:g} s of a trial are over")
        elif at_quarter:
            self._end(Stop.QUARTER, f"a quarter of some {predicted:.0f} instances runs")
        following = 2 * count
        if known >= LEVELS and math.isfinite(quarter):
            following = max(count + 1, min(following, math.ceil(quarter)))
        return min(following, most)

    def _predicted(self) -> float:
        """How many fit, from the levels so far: roughly, for the choice of the next one."""
        before, *levels = self.levels
        if len(levels) < 2:
            return math.inf
        counts = [level.count for level in levels]
        used = line(counts, [memory_used(before, level) for level in levels])
        least = levels[-1].instances / levels[-1].count
        memory_line = UseLine(used.once, max(used.each, least))
        room = int(self.params["budget_bytes"]) or before.available - self.memory_reserve
        active = float(self.params["active"])
        cpus = line(counts, [cpus_used(level, active) for level in levels])
        predictions = [_crossing(memory_line, room), _crossing(cpus, len(self.pool.launcher.resources.cpus))]
        for resource, most in self.most.items():
            with_levels = line(counts, [level.used.get(resource, 0) for level in levels])
            predictions.append(_crossing(with_levels, most - self.kept_back[resource]))
        return max(1.0, min(predictions))

    # Measuring

    def _measure(self) -> None:
        """Measure the instances that run, once they are idle."""
        self.pool.progress(f"{self.pool.platform.name}: measuring {len(self.running)} idle instances")
        running = list(self.running)
        daemons = [cgroup.Group(path) for path in self._daemons(running)]
        before = _Counters.read(running, daemons)
        time.sleep(cgroup.COUNTED_S)
        after = _Counters.read(running, daemons)
        window_s = (after.at_ns - before.at_ns) / 1e9
        spent = [max(0, later - earlier) for earlier, later in zip(before.cpu_ns, after.cpu_ns, strict=True)]
        readings = [ceilings.host_memory()]
        if not running:
            self._idle_daemons = {daemon.path: _resident(daemon.pids()) for daemon in daemons}
            self._idle_ports = ceilings.ports_by_bridge()
        engine, of_daemons = _resident([pid for daemon in daemons for pid in daemon.pids()])
        pages = [memory_usage.pages(one.instance) for one in running]
        own = memory.resident([os.getpid()])
        copied = self._mounts_copied()
        elsewhere = memory_usage.objects_elsewhere([cgroup.path_of(PARENT_GROUP), *self.pool.launcher.daemons])
        readings.append(ceilings.host_memory())
        for daemon in daemons:
            daemon.close()
        self._leave_out_others_daemons(daemons)
        self._leave_out_others_bridges()
        host, work = ceilings.mean_memory(readings), self._work()
        self.own, self.kernel = [each.own for each in pages], [each.kernel for each in pages]
        self.cpu_shares = [ns / 1e9 / window_s for ns in spent]
        self.levels.append(
            FillLevel(
                count=len(running),
                at_s=time.monotonic() - self.began_s,
                available=host.available,
                anonymous=host.anonymous,
                slab=host.slab,
                slab_free=host.slab_free,
                cpu_lists=host.cpu_lists,
                page_tables=host.page_tables,
                stacks=host.stacks,
                per_cpu=host.per_cpu,
                instances=sum(self.own),
                instances_pss=sum(each.pss for each in pages),
                instances_group=sum(each.group for each in pages),
                engine=engine,
                harness_slab=sum(each.client_slab for each in pages),
                harness_mounts=copied * ceilings.mount_bytes() if copied else 0,
                elsewhere=elsewhere,
                tables=sum(each.tables for each in pages) + of_daemons,
                harness=own.anonymous + own.shared_memory + sum(each.client for each in pages),
                groups=ceilings.group_count(),
                filesystems=len(self._filesystems | self._filesystems_of(running)),
                window_s=window_s,
                cpu_ns=sum(spent),
                daemon_cpu_ns=max(0, after.daemon_cpu_ns - before.daemon_cpu_ns),
                used=self._used(sum(each.tasks for each in pages)),
                starts_ms=self._starts_ms,
                failed=self._failed,
                memory_stall=_share(after.memory_stall_us - before.memory_stall_us, window_s),
                working=work.working,
                rates=work.rates,
                late_ms=work.late_ms,
                work_cpu=work.cpus,
                cpu_stall=_share(after.cpu_stall_us - before.cpu_stall_us, window_s),
            )
        )

    def _daemons(self, running: Sequence[RunningInstance]) -> list[str]:
        """Return the groups of daemons that these instances share; without instances those of the whole campaign."""
        of_running = {daemon.path for one in running for daemon in one.instance.daemons}
        return sorted(of_running if running else self.pool.launcher.daemons)

    def _leave_out_others_daemons(self, daemons: Sequence[cgroup.Group]) -> None:
        """Take daemons of other platforms off the level without an instance: they are no more than other processes."""
        ours = {daemon.path for daemon in daemons}
        off = [each for path, each in self._idle_daemons.items() if path not in ours]
        if self.running and len(self.levels) == 1:
            before = self.levels[0]
            engine, tables = before.engine - sum(each for each, _ in off), before.tables - sum(each for _, each in off)
            self.levels[0] = before.model_copy(update={"engine": max(0, engine), "tables": max(0, tables)})

    def _leave_out_others_bridges(self) -> None:
        """Count the ports of the bridge that the first instances have, before them too: an engine may have its own."""
        if not (self.running and len(self.levels) == 1):
            return
        before, now = self._idle_ports, ceilings.ports_by_bridge()
        more = {name: ports - before.get(name, 0) for name, ports in now.items() if ports > before.get(name, 0)}
        if more:
            self._bridge = max(more, key=lambda name: more[name])
            used = {**self.levels[0].used, Resource.BRIDGE_PORTS: before.get(self._bridge, 0)}
            self.levels[0] = self.levels[0].model_copy(update={"used": used})

    def _filesystems_of(self, running: Sequence[RunningInstance]) -> set[str]:
        """Find what is mounted on the host and in the instances: by one process of each, as all share its mounts."""
        firsts = [pids[0] for one in running if (pids := one.instance.host_processes())]
        return ceilings.filesystems([os.getpid(), *firsts])

    def _mounts_copied(self) -> int:
        """Count the copies of mounts that clients have got from the host since they started.

        A client with mounts of its own gets each later one of the host, and with it those of all later instances. What
        it had when it started is charged to it; these are charged to tare.
        """
        now, running = ceilings.mount_count(), set(map(id, self.running))
        return sum(max(0, now - then) for started, then in self._host_mounts if id(started) in running)

    def _work(self) -> _Work:
        """Put the share of the instances to work that is to be at work at any moment, at least one of them."""
        active = float(self.params["active"])
        if not (active and self.running):
            return _Work()
        working = self.running[: max(1, round(active * len(self.running)))]
        self.pool.progress(f"{self.pool.platform.name}: {len(working)} of {len(self.running)} instances at work")
        sliced = sliced_at_once(primes.WORKLOAD, WORK, self.pool.platform.name, working)
        rates, late_ms = [], []
        for one in sliced:
            of_work = [sample.value for sample in one.samples if sample.metric in primes.WORKLOAD.parts]
            rates.append(statistics.fmean(of_work))
            late_ms.append(statistics.median(max(0, turn.late_ns) for turn in one.slices) / 1e6)
        lasted_s = float(WORK["slice_ms"]) / 1e3 * float(WORK["rounds"])
        return _Work(len(working), rates, late_ms, sum(one.cpu_ns or 0 for one in sliced) / 1e9 / lasted_s)

    def _used(self, tasks: int) -> dict[Resource, int]:
        """Return what is used in pieces.

        Of threads the host's before the fill and the instances' own, as others' change.
        """
        used = {resource: ceiling.used for resource, ceiling in self._counted().items()}
        if Resource.TASKS in used and self.levels:
            used[Resource.TASKS] = self.levels[0].used[Resource.TASKS] + tasks
        return used

    # The user's limits

    def _check_limits(self) -> None:
        """End the fill where the level that was measured last breaks a limit; else it held.

        A limit of speed is broken where a second measurement breaks it too: the host may have stalled in the first.
        """
        broken = list(self._broken())
        if broken and self.stop is None and all(limit.of_speed for limit in broken):
            self._measure_again(restart=any(limit.of_starts for limit in broken))
            broken = list(self._broken())
        if not broken:
            self.held = max(self.held, self.levels[-1].count)
        elif self.stop is None:
            self._end(broken[0].stop, broken[0].reason, broken[0].resource)

    def _measure_again(self, *, restart: bool) -> None:
        """Measure the last level a second time; with ``restart`` after its added instances were started anew."""
        before, count = self.levels[-2].count, self.levels[-1].count
        self._starts_ms, self._failed = [], 0
        if restart:
            for running in self.running[before:]:
                self.pool.remove(running)
            self._grow(count)
        self._measure()

    def _broken(self) -> Iterator[_Broken]:
        """Yield the limits that the last level breaks."""
        before, level = self.levels[0], self.levels[-1]
        for running in self.running:
            attempt(running.session.ping)  # what has ended meanwhile is seen only where its session is read
        lost = sum(running.session.dead is not None for running in self.running)
        if lost:
            yield _Broken(Stop.LIMIT, f"{lost} of {level.count} instances have ended by themselves")
        there = set(map(id, self.running))
        ended = sum(any(server.over for server in of) for running, of in self._servers if id(running) in there)
        if ended:
            yield _Broken(Stop.LIMIT, f"the application has ended by itself in {ended} of {level.count} instances")
        kills = sum(killed.count for each in self.running if (killed := each.instance.spec.group.memory_kills()))
        if kills:
            reason = f"the kernel killed {kills} of their processes for want of memory"
            yield _Broken(Stop.LIMIT, reason, Resource.MEMORY)
        budget, taken = int(self.params["budget_bytes"]), memory_used(before, level)
        if 0 < budget < taken:
            yield _Broken(Stop.FULL, f"{taken >> 20} MiB are taken of {budget >> 20} MiB", Resource.MEMORY)
        yield from self._too_slow(level)

    def _too_slow(self, level: FillLevel) -> Iterator[_Broken]:
        had = kept(self.levels, level)
        if had is not None and had < float(self.params["keep"]):
            reason = f"a working instance has {100 * had:.0f} % of its work alone"
            yield _Broken(Stop.LIMIT, reason, Resource.CPU, of_speed=True)
        starts = sorted(level.starts_ms)
        p99 = starts[math.ceil(0.99 * len(starts)) - 1] / 1e3 if len(starts) >= _STARTS else 0.0
        if 0 < float(self.params["start_p99_s"]) < p99:
            reason = f"the 99th percentile of starts is {p99:.2f} s"
            yield _Broken(Stop.LIMIT, reason, of_speed=True, of_starts=True)
        if 0 < float(self.params["memory_stall"]) < level.memory_stall:
            reason = f"tasks waited for memory {100 * level.memory_stall:.0f} % of the time (PSI)"
            yield _Broken(Stop.LIMIT, reason, Resource.MEMORY, of_speed=True)
        if 0 < float(self.params["cpu_stall"]) < level.cpu_stall:
            reason = f"tasks waited for a CPU {100 * level.cpu_stall:.0f} % of the time (PSI)"
            yield _Broken(Stop.LIMIT, reason, Resource.CPU, of_speed=True)


@dataclass(frozen=True, slots=True)
class _Broken:
    """A limit that a level breaks."""

    stop: Stop
    reason: str
    resource: Resource | None = None
    of_speed: bool = False  # the host's other work may have broken it
    of_starts: bool = False


@dataclass(frozen=True, slots=True)
class _Work:
    """What instances did that were put to work."""

    working: int = 0
    rates: list[float] = field(default_factory=list)
    late_ms: list[float] = field(default_factory=list)
    cpus: float = 0.0


@dataclass(frozen=True, slots=True)
class _Counters:
    """What is counted since boot, at one moment."""

    at_ns: int
    cpu_ns: Sequence[int]  # by instance
    daemon_cpu_ns: int
    memory_stall_us: int
    cpu_stall_us: int

    @classmethod
    def read(cls, running: Sequence[RunningInstance], daemons: Sequence[cgroup.Group]) -> _Counters:
        spent = 0
        for daemon in daemons:
            with contextlib.suppress(OSError):  # it has ended, and its group with it
                spent += daemon.cpu_ns()
        return cls(
            time.monotonic_ns(),
            [max(0, (one.cpu_ns() or 0) - memory_usage.client_cpu_ns(one.instance)) for one in running],
            spent,
            counters.pressure_us("memory") or 0,
            counters.pressure_us("cpu") or 0,
        )


def _put_into_service(
    workload: FillWorkload, in_service: contextlib.ExitStack, client: LoadClient | None, running: RunningInstance
) -> Sequence[Execution]:
    """Have the servers of the user's application run in an instance, until the fill ends; none without one."""
    application = workload.application
    if application is None:
        return ()
    assert client is not None, "a campaign has a client"
    plan = application.plan(dict(application.profiles["quick"]), runs.surroundings(running, client))
    # Of a trial the servers' time is that of its load, and here that of the fill.
    plan = replace(plan, servers=tuple(replace(server, time_limit_s=SERVICE_LIMIT_S) for server in plan.servers))
    return in_service.enter_context(runs.in_service(application, plan, running, client))


def _resident(pids: Sequence[int]) -> tuple[int, int]:
    """Pages that processes have alone, and their page tables with the kernel's stacks, in bytes."""
    found = memory.resident(pids)
    return found.anonymous + found.shared_memory, memory_usage.tables(pids)


def _crossing(used: UseLine, most: float) -> float:
    return max(0.0, (most - used.once) / used.each) if used.each > 0 else math.inf


def _objects() -> int:
    """Bytes of the kernel's objects in use that cannot be reclaimed."""
    host = ceilings.host_memory()
    return host.slab - host.slab_free


def _share(waited_us: int, window_s: float) -> float:
    return min(1.0, max(0.0, waited_us / 1e6 / window_s))


def _go_first(running: RunningInstance) -> None:
    """Make the instance's processes the first that the kernel kills when the host has no memory left."""
    for pid in running.instance.host_processes():
        with contextlib.suppress(OSError):  # it has ended
            Path(f"/proc/{pid}/oom_score_adj").write_text(str(FIRST_TO_GO), encoding="ascii")
