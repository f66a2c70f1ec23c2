"""Fills without sandboxes: which levels there are, why a fill ends, and that the host's reserve is never touched."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from campaign.fakes import FakeLauncher, FakePlatform
from tare.campaign.execution import capacity_trial
from tare.campaign.instances.memory_usage import Pages
from tare.campaign.instances.pool import InstancePool
from tare.capacity_model import FILL, Resource, Stop, cpus_used, kept, memory_gone, memory_used, read_fill
from tare.errors import ParseError, PlatformError
from tare.estimates.use_lines import fits, tangents
from tare.features.capacity.analysis import memory_curve, quarter, room
from tare.host.facts.ceilings import Ceiling, HostMemory
from tare.host.facts.counters import Memory
from tare.host.facts.memory import Resident
from tare.model import Arm, Resources, Sample
from tare.workloads import workload_registry
from tare.workloads.base import Command, RunPlan

MIB = 2**20
GIB = 2**30


@dataclass
class World:
    """A host on which each instance takes the same: memory, threads, and some of the kernel's."""

    total: int = 8 * GIB
    free: int = 6 * GIB
    each: int = 50 * MIB
    kernel: int = 2 * MIB
    once: int = 30 * MIB  # of the engine's, with the first instance
    tasks: int = 10
    most_tasks: int = 1_000_000
    others: int = 0  # that other processes take with each instance
    room: int = 0  # that ended instances have left in the kernel's slabs
    elsewhere: int = 0  # of the kernel's objects, that another's containers have more of with each instance
    lists: int = 0  # free pages that go into CPUs' lists with each instance
    lowest: int = field(default=10**15)  # of what was available
    copied: Callable[[], int] = lambda: 0  # bytes of mounts that waiting clients have got of the host's
    group_tables: int = 0  # of each memory control group, before the fill
    pool: InstancePool | None = None

    @property
    def groups(self):
        return 200 + 3 * self.count

    @property
    def filesystems(self):
        return 40 + 10 * self.count

    @property
    def tables(self):
        """As the kernel has them: of each group one of 1 KiB for every 64 filesystems that there ever were."""
        return 1024 * self.groups * max(self.group_tables, self.filesystems / 64) if self.group_tables else 0

    @property
    def count(self):
        return len(self.pool.running_instances)

    @property
    def engine(self):
        return self.once if self.count else 0

    def memory(self):
        objects = self.count * (self.kernel + self.elsewhere) + self.copied() + int(self.tables)
        added = max(0, objects - self.room)
        taken = self.count * (self.each + self.others) + added + self.engine
        self.lowest = min(self.lowest, self.free - taken)
        return HostMemory(
            total=self.total,
            available=self.free - taken - self.count * self.lists,
            cpu_lists=self.count * self.lists,
            anonymous=500 * MIB + self.count * (self.each + self.others) + self.engine,
            slab=100 * MIB + self.room + added,
            slab_free=max(0, self.room - objects),
            page_tables=10 * MIB,
            stacks=10 * MIB,
            per_cpu=10 * MIB,
        )


@pytest.fixture
def world(monkeypatch):
    there = World()
    monkeypatch.setattr(capacity_trial.time, "sleep", lambda _: None)
    monkeypatch.setattr(capacity_trial.ceilings, "host_memory", there.memory)
    monkeypatch.setattr(capacity_trial.counters, "memory", lambda: Memory(there.memory().available, 0, 0))
    monkeypatch.setattr(capacity_trial.counters, "pressure_us", lambda _: 0)
    monkeypatch.setattr(capacity_trial.ceilings, "disk", lambda _: Ceiling(0, 100 * GIB))
    monkeypatch.setattr(capacity_trial.ceilings, "group_count", lambda: there.groups)
    mounted = lambda _: set(map(str, range(there.filesystems)))  # noqa: E731
    monkeypatch.setattr(capacity_trial.ceilings, "filesystems", mounted)
    monkeypatch.setattr(capacity_trial.ceilings, "tables_a_group", lambda _, least: there.group_tables)
    tasks = {Resource.TASKS: lambda: Ceiling(200 + there.tasks * there.count, there.most_tasks)}
    monkeypatch.setattr(capacity_trial, "_COUNTED", tasks)
    monkeypatch.setattr(capacity_trial.ceilings, "ports_by_bridge", dict)
    monkeypatch.setattr(capacity_trial.memory_usage, "tables", lambda _: 0)
    monkeypatch.setattr(capacity_trial.memory_usage, "objects_elsewhere", lambda _: there.count * there.elsewhere)
    monkeypatch.setattr(
        capacity_trial.memory, "resident", lambda pids: Resident(0, there.engine if not list(pids) else 0, 0)
    )
    monkeypatch.setattr(
        capacity_trial.memory_usage,
        "pages",
        lambda _: Pages(there.each, MIB, there.each, there.each, 0, 0, there.tasks, 0),
    )
    return there


def _fill(world, launcher=None, **params):
    workload = workload_registry.get("capacity")
    launcher = launcher or FakeLauncher()
    world.pool = InstancePool(
        FakePlatform("runc"), Arm("runc"), launcher, pytest.fail, pytest.fail, progress=lambda _: None
    )
    usual = {**workload.profiles["quick"], "most": 500}
    result = capacity_trial.fill(workload, {**usual, **params}, world.pool)
    fill = read_fill(result.outputs[FILL])
    world.pool.clear()
    return fill, {sample.metric: sample.value for sample in result.samples}


def test_a_quarter_is_filled_in_geometric_steps(world):
    fill, figures = _fill(world)
    assert (fill.stop, fill.resource) == (Stop.QUARTER, None)
    counts = [level.count for level in fill.levels]
    assert counts[:5] == [0, 1, 2, 4, 8]
    fits = (world.free - 0.1 * world.total - world.once) / (world.each + world.kernel)
    assert counts[-1] == pytest.approx(fits / 4, abs=2)
    assert figures["memory"] == pytest.approx(52, rel=1e-6)
    assert figures["start"] > 0


def test_room_that_ended_instances_have_left_in_slabs_is_no_memory_for_nothing(world):
    world.room = 40 * MIB  # of twenty instances
    fill, figures = _fill(world)
    last = fill.levels[-1]
    assert last.slab - fill.levels[0].slab < last.count * 2 * MIB
    assert memory_used(fill.levels[0], last) == last.count * 52 * MIB + world.once
    assert memory_gone(fill.levels[0], last) == last.count * 52 * MIB + world.once
    assert figures["memory"] == pytest.approx(52, rel=1e-6)


def test_free_pages_that_go_into_lists_of_cpus_are_not_taken(world):
    world.lists = 10 * MIB
    fill, _ = _fill(world)
    before, last = fill.levels[0], fill.levels[-1]
    assert before.available - last.available == last.count * 62 * MIB + world.once
    assert memory_gone(before, last) == memory_used(before, last) == last.count * 52 * MIB + world.once


def test_free_pages_that_lie_in_lists_of_cpus_before_the_fill_are_there_for_instances(world):
    """A host had 900 MiB there, 10 % of what it had left, and seven instances fewer were predicted than it held."""
    fill, _ = _fill(world)
    before = fill.levels[0]
    apart = before.model_copy(update={"available": before.available - GIB, "cpu_lists": GIB})
    assert room(fill.model_copy(update={"levels": [apart, *fill.levels[1:]]})) == room(fill)
    assert room(fill) == before.available - fill.memory_reserve


def test_objects_that_are_charged_to_others_are_not_taken(world):
    world.elsewhere = 5 * MIB
    fill, figures = _fill(world)
    before, last = fill.levels[0], fill.levels[-1]
    assert last.slab - before.slab == last.count * 7 * MIB
    assert memory_gone(before, last) == memory_used(before, last) == last.count * 52 * MIB + world.once
    assert figures["memory"] == pytest.approx(52, rel=1e-6)


def test_later_mounts_that_waiting_clients_get_copies_of_are_not_the_instances(world, monkeypatch):
    copied = 500 * 530
    monkeypatch.setattr(capacity_trial.memory_usage, "client_has_mounts", lambda _: True)
    monkeypatch.setattr(capacity_trial.ceilings, "mount_count", lambda: 24 + 1000 * world.count)
    monkeypatch.setattr(capacity_trial.ceilings, "mount_bytes", lambda: 530)
    world.copied = lambda: copied * world.count * (world.count - 1)
    fill, figures = _fill(world, most=16)
    before, last = fill.levels[0], fill.levels[-1]
    assert last.slab - before.slab == 16 * 2 * MIB + 16 * 15 * copied
    assert memory_used(before, last) == memory_gone(before, last) == 16 * 52 * MIB + world.once
    assert figures["memory"] == pytest.approx(52, rel=1e-6), "as many clients have as many copies of each other's"


@pytest.mark.parametrize("group_tables", [1, 20])
def test_tables_of_control_groups_that_grow_with_filesystems_are_predicted(world, group_tables):
    world.each, world.kernel, world.once, world.group_tables = MIB // 4, MIB // 2, 0, group_tables
    fill, _ = _fill(world, fill=True, budget_bytes=GIB, most=5000)
    assert fill.resource is Resource.MEMORY
    curve = memory_curve(fill)
    [straight], [bent] = [curve.line], tangents([curve], GIB)
    assert quarter(fill)[-1].count < fill.held / 2
    assert fits([bent], GIB).count == pytest.approx(fill.held, rel=0.02)
    assert fits([straight], GIB).count > 1.2 * fill.held, "what a straight line says"


def test_a_fill_has_the_levels_of_a_prediction_and_goes_on(world):
    predicted, _ = _fill(world)
    filled, _ = _fill(world, fill=True)
    counts = [[level.count for level in fill.levels] for fill in (predicted, filled)]
    assert counts[1][: len(counts[0])] == counts[0]
    assert (predicted.quarter, filled.quarter) == (counts[0][-1], counts[0][-1])
    assert [level.count for level in quarter(filled)] == counts[0]
    assert filled.held > 3 * filled.quarter


def test_memory_is_counted_without_other_processes(world):
    world.others = 40 * MIB
    fill, figures = _fill(world)
    last = fill.levels[-1]
    assert memory_used(fill.levels[0], last) == last.count * 52 * MIB + world.once
    assert memory_gone(fill.levels[0], last) == last.count * 52 * MIB + world.once
    assert fill.levels[0].available - last.available == last.count * 92 * MIB + world.once
    assert figures["memory"] == pytest.approx(52, rel=1e-6)


def test_ports_are_counted_of_the_bridge_that_the_instances_have(world, monkeypatch):
    """An engine with a bridge of its own has none before the fill, and the campaign's client has one."""
    ports = lambda: {"tare": 1, "docker0": world.count}  # noqa: E731
    monkeypatch.setattr(capacity_trial.ceilings, "ports_by_bridge", ports)
    monkeypatch.setitem(capacity_trial._COUNTED, Resource.BRIDGE_PORTS, capacity_trial.ceilings.bridge_ports)
    fill, _ = _fill(world, most=8)
    assert [level.used[Resource.BRIDGE_PORTS] for level in fill.levels] == [0, 1, 2, 4, 8]
    filled, _ = _fill(world, fill=True, most=20)
    assert filled.most[Resource.BRIDGE_PORTS] == 1024
    world.each, world.tasks = MIB, 1
    full, _ = _fill(world, fill=True, most=5000)
    assert (full.resource, full.held) == (Resource.BRIDGE_PORTS, 1024 - 102)


def test_cpu_time_of_a_client_that_waits_for_tare_is_not_an_instances(world, monkeypatch):
    quiet, _ = _fill(world, most=4)
    spent = iter(range(0, 10**12, 10**6))
    monkeypatch.setattr(capacity_trial.memory_usage, "client_cpu_ns", lambda _: -next(spent))
    fill, _ = _fill(world, most=4)
    assert [level.cpu_ns - usual.cpu_ns for level, usual in zip(fill.levels, quiet.levels, strict=True)] == [
        level.count * level.count * 10**6 for level in fill.levels
    ]


def test_a_budget_ends_a_fill_and_the_level_before_held(world):
    fill, _ = _fill(world, fill=True, budget_bytes=GIB)
    assert (fill.stop, fill.resource) == (Stop.FULL, Resource.MEMORY)
    fits = int((GIB - world.once) / (world.each + world.kernel))
    assert fill.levels[-1].count > fits
    assert fill.held <= fits
    assert fill.held == pytest.approx(fits, abs=1)
    assert "of 1024 MiB" in fill.reason


def test_the_reserve_of_memory_is_never_touched(world):
    fill, _ = _fill(world, fill=True)
    assert (fill.stop, fill.resource) == (Stop.FULL, Resource.MEMORY)
    assert world.lowest >= 0.1 * world.total
    assert world.lowest < 0.1 * world.total + 3 * (world.each + world.kernel)
    assert fill.held == fill.levels[-1].count


def test_a_host_that_tares_own_clients_fill_says_so(world, monkeypatch):
    own = Pages(world.each, MIB, world.each, world.each, 2 * MIB, 0, world.tasks, 0)
    monkeypatch.setattr(capacity_trial.memory_usage, "pages", lambda _: own)
    fill, _ = _fill(world, fill=True)
    assert (fill.stop, fill.resource) == (Stop.FULL, Resource.MEMORY)
    assert f"; tare's own clients have {2 * fill.levels[-2].count} MiB" in fill.reason, "as last measured"


def test_an_instance_that_is_larger_than_what_is_left_is_not_started(world):
    world.each = 4 * GIB
    fill, _ = _fill(world, fill=True)
    assert (fill.stop, fill.resource) == (Stop.FULL, Resource.MEMORY)
    assert [level.count for level in fill.levels] == [0, 1]


def test_the_reserve_of_threads_is_never_touched(world):
    world.most_tasks = 1000
    fill, _ = _fill(world, fill=True)
    assert (fill.stop, fill.resource) == (Stop.FULL, Resource.TASKS)
    assert 200 + world.tasks * fill.levels[-1].count <= 900
    assert fill.held == 70


def test_a_process_killed_for_want_of_memory_ends_a_fill(world, monkeypatch):
    started = InstancePool.add

    def add(pool, *terms):
        running = started(pool, *terms)
        running._killed = int(len(pool.running_instances) == 20)
        return running

    monkeypatch.setattr(InstancePool, "add", add)
    fill, _ = _fill(world, fill=True)
    assert (fill.stop, fill.resource) == (Stop.LIMIT, Resource.MEMORY)
    assert "the kernel killed 1 of their processes" in fill.reason
    assert fill.held < 20 <= fill.levels[-1].count


def test_an_instance_that_ended_by_itself_ends_a_fill(world, monkeypatch):
    started = InstancePool.add

    def add(pool, *terms):
        running = started(pool, *terms)
        running.session.dead = PlatformError("gone") if len(pool.running_instances) == 10 else None
        return running

    monkeypatch.setattr(InstancePool, "add", add)
    fill, _ = _fill(world, fill=True)
    assert fill.stop is Stop.LIMIT
    assert "1 of 16 instances have ended by themselves" in fill.reason
    assert fill.held == 8


@pytest.mark.parametrize(("allowed", "held"), [(0, 12), (0.2, None)])
def test_starts_that_fail_end_a_fill_beyond_their_limit(world, monkeypatch, allowed, held):
    started, tries = InstancePool.add, []

    def add(pool, *terms):
        tries.append(0)
        if len(tries) % 13 == 0:
            raise PlatformError("no more for you")
        return started(pool, *terms)

    monkeypatch.setattr(InstancePool, "add", add)
    fill, _ = _fill(world, fill=True, failures=allowed)
    if held is None:
        assert fill.stop is Stop.FULL
        assert sum(level.failed for level in fill.levels) >= len(tries) // 13
    else:
        assert fill.stop is Stop.START
        assert (fill.held, fill.levels[-1].count) == (held, held)
        assert "no more for you" in fill.reason


def test_slow_starts_end_a_fill(world, monkeypatch):
    started = InstancePool.add

    def add(pool, *terms):
        running = started(pool, *terms)
        running.command_ns = 10_000_000 * len(pool.running_instances)
        return running

    monkeypatch.setattr(InstancePool, "add", add)
    fill, _ = _fill(world, fill=True, start_p99_s=0.5)
    assert fill.stop is Stop.LIMIT
    assert "percentile of starts" in fill.reason
    assert fill.held <= 50 < fill.levels[-1].count


def test_starts_that_are_slow_once_do_not_end_a_fill(world, monkeypatch):
    started, at_16 = InstancePool.add, []

    def add(pool, *terms):
        running = started(pool, *terms)
        stalled = len(pool.running_instances) == 16 and not at_16
        at_16.extend([running] if len(pool.running_instances) == 16 else [])
        running.command_ns = 9 * 10**9 if stalled else 10_000_000
        return running

    monkeypatch.setattr(InstancePool, "add", add)
    launcher = FakeLauncher()
    fill, _ = _fill(world, launcher, fill=True, start_p99_s=0.5)
    assert (fill.stop, fill.resource) == (Stop.FULL, Resource.MEMORY)
    assert [max(level.starts_ms) for level in fill.levels if level.count == 16] == [9000, 10], "both are kept"
    assert len(at_16) == 2
    assert launcher.log.count("stop runc") == fill.held + 8, "the level's own 8 instances are started anew"


def test_a_level_that_was_measured_again_leaves_the_next_levels_as_they_are(world, monkeypatch):
    waited, looks = [0], []

    def pressure_us(kind):
        looks.extend([world.count] if kind == "cpu" else [])
        waited[0] += 10**9 if kind == "cpu" and looks.count(4) == 2 and looks[-1] == 4 else 0
        return waited[0] if kind == "cpu" else 0

    quiet, _ = _fill(world, fill=True)
    monkeypatch.setattr(capacity_trial.counters, "pressure_us", pressure_us)
    fill, _ = _fill(world, fill=True, cpu_stall=0.5)
    counts, usual = ([level.count for level in of.levels] for of in (fill, quiet))
    assert sorted([*usual, 4]) == counts
    assert (fill.held, fill.quarter) == (quiet.held, quiet.quarter)


@pytest.mark.parametrize(
    ("kind", "limit", "resource"),
    [("memory", "memory_stall", Resource.MEMORY), ("cpu", "cpu_stall", Resource.CPU)],
)
def test_tasks_that_wait_end_a_fill(world, monkeypatch, kind, limit, resource):
    waited = {"memory": 0, "cpu": 0}

    def pressure_us(asked):
        waited[asked] += 10**9 if asked == kind and world.count > 20 else 0
        return waited[asked]

    monkeypatch.setattr(capacity_trial.counters, "pressure_us", pressure_us)
    fill, _ = _fill(world, fill=True, **{limit: 0.5})
    assert (fill.stop, fill.resource) == (Stop.LIMIT, resource)
    assert "100 % of the time (PSI)" in fill.reason
    assert fill.held <= 20 < fill.levels[-1].count


def test_an_instance_that_does_not_start_at_all_fails_the_trial(world):
    with pytest.raises(PlatformError, match="does not want to"):
        _fill(world, FakeLauncher(refuse={"runc"}))


def test_instances_on_another_machine_are_refused(world):
    platform = FakePlatform("ssh:there")
    platform.elsewhere = True
    pool = SimpleNamespace(platform=platform)
    with pytest.raises(Exception, match="another machine"):
        capacity_trial.fill(workload_registry.get("capacity"), {}, pool)


def test_a_fill_that_is_none_is_refused_with_the_first_mistake(world):
    fill, _ = _fill(world)
    text = fill.model_dump_json()
    assert read_fill(text.encode()) == fill
    with pytest.raises(ValueError, match="levels"):
        read_fill(replace_in(text, '"levels":[', '"levels":7,"more":[').encode())
    with pytest.raises(ValueError, match="cpus"):
        read_fill(replace_in(text, '"cpus":1', '"cpus":-1').encode())


def replace_in(text, old, new):
    assert old in text
    return text.replace(old, new, 1)


@pytest.fixture
def shared(monkeypatch):
    """Two CPUs that all working instances share."""

    def work(inner, params, name, running):
        rate = 100 * min(1, 2 / len(running))
        spent = int(1e9 * min(1, 2 / len(running)))
        turn = SimpleNamespace(late_ns=3_000_000 * (len(running) - 1))
        samples = (Sample("events-per-second", rate), Sample("cpu-cost", 1.0))
        return [SimpleNamespace(samples=samples, slices=[turn], cpu_ns=spent) for _ in running]

    monkeypatch.setattr(capacity_trial, "sliced_at_once", work)
    return FakeLauncher(resources=Resources((0, 1), 1 << 30))


def test_instances_at_work_are_a_share_of_all_and_run_out_of_cpus(world, shared):
    fill, _ = _fill(world, shared, active=0.25)
    assert [(level.count, level.working) for level in fill.levels[1:5]] == [(1, 1), (2, 1), (4, 1), (5, 1)]
    assert cpus_used(fill.levels[3], fill.active) == pytest.approx(1), "of the 2 that there are: 8 fit"
    assert fill.stop is Stop.QUARTER
    assert [kept(fill.levels, level) for level in fill.levels[1:5]] == [1, 1, 1, 1]


def test_work_that_is_not_kept_ends_a_fill(world, shared):
    fill, _ = _fill(world, shared, active=0.25, fill=True, keep=0.9)
    assert (fill.stop, fill.resource) == (Stop.LIMIT, Resource.CPU)
    assert fill.levels[-1].working == 3
    assert fill.held < 12
    assert "67 % of its work alone" in fill.reason
    assert [level.working for level in fill.levels[-2:]] == [3, 3], "it was measured twice"


def test_work_that_is_not_kept_once_does_not_end_a_fill(world, shared, monkeypatch):
    works, counts = capacity_trial.sliced_at_once, []

    def stalled_once(inner, params, name, running):
        counts.append(world.count)
        sliced = works(inner, params, name, running)
        if counts.count(4) == 1 and counts[-1] == 4:
            slow = (Sample("events-per-second", 50), Sample("cpu-cost", 1.0))
            sliced[0] = SimpleNamespace(samples=slow, slices=sliced[0].slices, cpu_ns=sliced[0].cpu_ns)
        return sliced

    quiet, _ = _fill(world, shared, active=0.25, fill=True, keep=0.9)
    monkeypatch.setattr(capacity_trial, "sliced_at_once", stalled_once)
    fill, _ = _fill(world, shared, active=0.25, fill=True, keep=0.9)
    assert [kept(fill.levels, level) for level in fill.levels if level.count == 4] == [0.5, 1]
    assert (fill.held, fill.reason) == (quiet.held, quiet.reason)


@pytest.mark.parametrize("fails", [False, True])
def test_an_application_is_put_into_service_in_each_instance(world, monkeypatch, fails):
    put = []

    def put_into_service(workload, in_service, client, running):
        put.append(running)
        if fails and len(put) == 5:
            raise ParseError("it is not in service")
        in_service.callback(put.append, "ended")
        return [SimpleNamespace(over=False)]

    monkeypatch.setattr(capacity_trial, "_put_into_service", put_into_service)
    launcher = FakeLauncher()
    fill, _ = _fill(world, launcher, most=8)
    if fails:
        assert (fill.stop, fill.held) == (Stop.START, 4)
        assert "it is not in service" in fill.reason
        assert launcher.log.count("stop runc") == 5, "the one that is of no use is ended too"
        assert put.count("ended") == 4
    else:
        assert (len(put) - put.count("ended"), put.count("ended")) == (8, 8)


def test_an_application_that_ends_by_itself_ends_a_fill(world, monkeypatch):
    servers = []

    def put_into_service(workload, in_service, client, running):
        servers.append(SimpleNamespace(over=False))
        return servers[-1:]

    def ping():
        servers[2].over = world.count == 8  # it is read with the answer
        return 0

    started = InstancePool.add

    def add(pool, *terms):
        running = started(pool, *terms)
        running.session.ping = ping if len(pool.running_instances) == 3 else running.session.ping
        return running

    monkeypatch.setattr(InstancePool, "add", add)
    monkeypatch.setattr(capacity_trial, "_put_into_service", put_into_service)
    fill, _ = _fill(world, most=100)
    assert (fill.stop, fill.held) == (Stop.LIMIT, 4)
    assert "the application has ended by itself in 1 of 8 instances" in fill.reason


def test_an_application_is_in_service_for_longer_than_its_load(monkeypatch):
    begun = []

    @contextlib.contextmanager
    def in_service(application, plan, running, client):
        begun.append(plan)
        yield ["server"]

    plan = RunPlan(measures=(), servers=(Command(("serve",), time_limit_s=90),))
    application = SimpleNamespace(profiles={"quick": {}}, plan=lambda params, around: plan)
    monkeypatch.setattr(capacity_trial.runs, "in_service", in_service)
    monkeypatch.setattr(capacity_trial.runs, "surroundings", lambda *_: None)
    with contextlib.ExitStack() as fill:
        workload = SimpleNamespace(application=application)
        assert capacity_trial._put_into_service(workload, fill, object(), object()) == ["server"]
    assert [server.time_limit_s for server in begun[0].servers] == [capacity_trial.SERVICE_LIMIT_S]
    assert capacity_trial.SERVICE_LIMIT_S > 3600


def test_the_daemon_of_another_platform_is_no_engine(world, monkeypatch):
    """It gives memory back while instances of a platform without a daemon are added."""
    sizes = {"/of-docker": lambda: 80 * MIB - world.count * MIB, "/of-none": lambda: 0}
    monkeypatch.setattr(
        capacity_trial.cgroup,
        "Group",
        lambda path: SimpleNamespace(path=path, pids=lambda: [path], cpu_ns=lambda: 0, close=lambda: None),
    )
    monkeypatch.setattr(
        capacity_trial.memory, "resident", lambda pids: Resident(0, sum(sizes[p]() for p in pids if p in sizes), 0)
    )
    world.once = 0
    launcher = FakeLauncher()
    launcher.daemons = {"/of-docker"}
    fill, _ = _fill(world, launcher, most=8)
    assert [level.engine for level in fill.levels] == [0] * len(fill.levels)
    assert memory_used(fill.levels[0], fill.levels[-1]) == 8 * 52 * MIB
