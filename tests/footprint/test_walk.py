"""What a walk starts and counts in which order, by the log that the fake launcher and the fake counter write."""

from dataclasses import dataclass, field

import pytest

from campaign.fakes import FakeFresh, FakeLauncher, FakePlatform, FakeRun, FakeStart
from tare.campaign.plan.campaign_plan import WorkloadJob
from tare.errors import HostError, ParseError, UnsupportedError
from tare.features.kernel.exchange.result import Missed
from tare.features.kernel.execution.walk import NO_GROUP, Route, Walk, countable
from tare.footprint_model import EMPTY, IDLE, UNITS, Footprint, HitCounts, Phase, Scope
from tare.model import Level
from tare.workloads import workload_registry
from tare.workloads.base import Command, RunPlan


@dataclass
class FakeCounter:
    """Counts the lines of the log since the last reset, by their first word."""

    log: list[str]
    level: Level = Level.SYSCALLS
    reads_itself: bool = False
    running: bool = False
    refuse: str | None = None
    lost: int = 0
    scopes: tuple[Scope, ...] = tuple(Scope)
    since: int = 0
    groups: list[str] = field(default_factory=list)

    def start(self, group):
        if self.refuse is not None:
            raise HostError(self.refuse)
        self.running = True
        self.groups.append(group)
        self.log.append(f"count {group}")
        self.reset()

    def read(self):
        assert self.running
        if self.reads_itself:
            self.log.append("read")
        words = [line.split()[0] for line in self.log[self.since :]]
        hits = {word: words.count(word) for word in words}
        return HitCounts(hits={scope: {**hits, "never": 0} for scope in self.scopes}, lost=self.lost, known=400)

    def reset(self):
        assert self.running
        self.since = len(self.log)

    def stop(self):
        self.running = False


@dataclass
class Watching:
    lines: list[str] = field(default_factory=list)
    steps: list[tuple[int, int, int]] = field(default_factory=list)

    def doing(self, what):
        self.lines.append(what)

    def step(self, done, of, missed):
        self.steps.append((done, of, missed))


class Prepared(FakeRun):
    """Has a preparation and a clean-up, which are nobody's figure."""

    def plan(self, params, around):
        before, another = (Command(("work", word)) for word in ("before", "after"))
        return RunPlan(measures=(Command(("work", self.name)),), prepare=(before,), cleanup=(another,))


def _walk(*workloads, others=("runc", "docker"), repeats=1, idle_s=0.0, launcher=None, seed=5, **of_counter):
    launcher = launcher or FakeLauncher()
    platforms = tuple(FakePlatform(name) for name in ("native", *others))
    route = Route(platforms, tuple(WorkloadJob(workload, {}) for workload in workloads), repeats, idle_s, seed)
    watcher, warnings = Watching(), []
    return Walk(route, FakeCounter(launcher.log, **of_counter), launcher, None, watcher, warnings.append)


def _found(brought, **facts):
    return [
        footprint
        for footprint in brought
        if isinstance(footprint, Footprint) and all(getattr(footprint, name) == value for name, value in facts.items())
    ]


def test_every_platform_has_a_start_and_every_workload_a_footprint_in_each_repeat_and_each_scope():
    walk = _walk(FakeRun("alpha"), FakeRun("beta"), repeats=3)
    brought = list(walk.run())
    keys = {
        (footprint.platform, footprint.phase, footprint.workload, footprint.scope, footprint.repeat)
        for footprint in brought
    }
    assert len(brought) == len(keys) == 3 * 2 * 3 * 3
    assert {footprint.workload for footprint in _found(brought, phase=Phase.START)} == {None}
    assert {footprint.workload for footprint in _found(brought, phase=Phase.STEADY)} == {"alpha", "beta"}
    assert walk.launcher.living == set()
    assert not walk.counter.running


def test_the_counter_knows_the_group_of_each_instance_before_it_starts():
    walk = _walk(FakeRun("alpha"), others=())
    list(walk.run())
    assert walk.launcher.log[:2] == ["count tare/fake0", "start native"]
    assert walk.launcher.log[-1] == "stop native"


def test_a_start_is_counted_from_the_gate_and_work_without_preparation_and_clean_up():
    brought = list(_walk(Prepared("alpha"), others=()).run())
    [start] = _found(brought, phase=Phase.START, scope=Scope.INSTANCE)
    [steady] = _found(brought, phase=Phase.STEADY, scope=Scope.INSTANCE)
    assert start.hits == {"start": 1}
    assert steady.hits == {"alpha": 1}
    assert steady.known == 400
    assert steady.seconds > 0


def test_orders_are_random_by_the_seed_and_the_same_again():
    def orders(seed):
        route = _walk(FakeRun("alpha"), FakeRun("beta"), FakeRun("gamma"), idle_s=1.0, seed=seed).route
        names = [
            (platform.name if platform else IDLE, tuple(job.workload.name for job in jobs))
            for repeat in range(20)
            for platform, jobs in route.stops(repeat)
        ]
        return names, {tuple(name for name, _ in names[at : at + 4]) for at in range(0, 80, 4)}

    names, distinct_orders = orders(5)
    assert (names, distinct_orders) == orders(5)
    assert names != orders(6)[0]
    assert len(distinct_orders) > 5
    assert all(sorted(order) == ["docker", IDLE, "native", "runc"] for order in distinct_orders)
    assert len({jobs for name, jobs in names if name == "native"}) > 2


def test_the_idle_host_is_counted_for_everybody_alone_while_no_instance_lives():
    walk = _walk(FakeRun("alpha"), repeats=2, idle_s=0.01)
    brought = list(walk.run())
    idle = [footprint for footprint in brought if footprint.platform == IDLE]
    assert [(footprint.scope, footprint.phase, footprint.workload, footprint.repeat) for footprint in idle] == [
        (Scope.HOST, Phase.STEADY, None, 0),
        (Scope.HOST, Phase.STEADY, None, 1),
    ]
    assert all(footprint.seconds >= 0.01 for footprint in idle)
    assert walk.counter.groups.count(NO_GROUP) == 2
    for at, line in enumerate(walk.launcher.log):
        if line == f"count {NO_GROUP}":
            assert sum(word.startswith("start") for word in walk.launcher.log[:at]) == sum(
                word.startswith("stop") for word in walk.launcher.log[:at]
            )


def test_what_a_reading_leaves_is_counted_on_the_idle_host_where_it_is_in_what_it_reads():
    brought = list(_walk(FakeRun("alpha"), repeats=2, idle_s=0.01, reads_itself=True).run())
    empty = [footprint for footprint in brought if footprint.platform == EMPTY]
    assert [
        (footprint.scope, footprint.phase, footprint.workload, footprint.repeat, footprint.hits) for footprint in empty
    ] == [(Scope.HOST, Phase.STEADY, None, repeat, {"read": 1}) for repeat in (0, 0, 0, 1, 1, 1)]
    after = [brought[at - 1].platform for at, footprint in enumerate(brought) if footprint.platform == EMPTY]
    assert after == [IDLE, EMPTY, EMPTY] * 2, "no instance is alive"
    assert _found(brought, workload="alpha")[0].hits == {"alpha": 1, "read": 1}, "footprints are as they were read"
    for other in (_walk(FakeRun("alpha"), idle_s=0.01), _walk(FakeRun("alpha"), reads_itself=True)):
        assert EMPTY not in {footprint.platform for footprint in other.run()}


def test_a_platform_that_does_not_start_is_a_line_in_each_repeat_and_the_walk_goes_on():
    walk = _walk(FakeRun("alpha"), repeats=2, launcher=FakeLauncher(refuse={"docker"}))
    brought = list(walk.run())
    missed = [miss for miss in brought if isinstance(miss, Missed)]
    assert [(miss.platform, miss.workload, miss.repeat) for miss in missed] == [
        ("docker", None, 0),
        ("docker", None, 1),
    ]
    assert "the start of docker in repeat 1: docker does not want to" in str(missed[0])
    assert {footprint.platform for footprint in _found(brought)} == {"native", "runc"}
    assert walk.watcher.steps[-1][1] == walk.route.steps == 12
    assert max(missing for _, _, missing in walk.watcher.steps) == 2


def test_steps_end_at_all_of_them_whatever_failed():
    walk = _walk(FakeRun("alpha"), FakeRun("beta"), launcher=FakeLauncher(refuse={"docker"}), idle_s=0.01)
    list(walk.run())
    numbers = [done for done, *_ in walk.watcher.steps]
    assert numbers == sorted(set(numbers))
    assert walk._done == walk.route.steps == 10


@pytest.mark.parametrize("error", [UnsupportedError("no such thing"), HostError("no room")])
def test_a_workload_that_fails_is_a_line_with_the_reason_and_the_others_run(monkeypatch, error):
    class Failing(FakeRun):
        def parse(self, params, results):
            raise error

    brought = list(_walk(Failing("alpha"), FakeRun("beta"), others=()).run())
    missed = [miss for miss in brought if isinstance(miss, Missed)]
    assert [(miss.workload, miss.reason) for miss in missed] == [("alpha", error.what)]
    assert {footprint.workload for footprint in _found(brought, phase=Phase.STEADY)} == {"beta"}


@pytest.mark.parametrize(("command", "has_run"), [("work", True), ("fail", False)])
def test_what_ran_well_has_a_footprint_though_what_it_printed_is_strange(command, has_run):
    class Strange(FakeRun):
        def plan(self, params, around):
            return RunPlan(measures=(Command((command, self.name)),))

        def parse(self, params, results):
            raise ParseError("it contradicts itself")

    brought = list(_walk(Strange("alpha"), others=()).run())
    assert [footprint.hits for footprint in _found(brought, workload="alpha")] == [{"alpha": 1}] * (2 if has_run else 0)
    missed = [miss.reason for miss in brought if isinstance(miss, Missed)]
    assert missed == ([] if has_run else ["it contradicts itself"])


def test_an_instance_that_dies_is_replaced_and_its_second_start_is_not_counted():
    launcher = FakeLauncher(die={"native": 1})
    brought = list(_walk(FakeRun("alpha"), FakeRun("beta"), others=(), launcher=launcher).run())
    assert [line for line in launcher.log if line.startswith("start")] == ["start native"] * 2
    assert len([miss for miss in brought if isinstance(miss, Missed)]) == 1
    assert len(_found(brought, phase=Phase.START)) == len(Scope)
    assert len(_found(brought, phase=Phase.STEADY)) == len(Scope)
    assert launcher.living == set()


def test_a_workload_that_wants_a_fresh_instance_comes_last_and_has_it_to_itself():
    launcher = FakeLauncher()
    brought = list(_walk(FakeFresh("gamma"), FakeRun("alpha"), FakeRun("beta"), others=(), launcher=launcher).run())
    assert [line for line in launcher.log if not line.startswith("count")][-4:] == [
        "stop native",
        "start native",
        "gamma on native",
        "stop native",
    ]
    assert len(_found(brought, phase=Phase.START)) == len(Scope)


def test_what_the_host_does_not_see_in_a_group_has_everybodys_footprint_alone(monkeypatch):
    class Unseen(FakeLauncher):
        def start(self, *arguments, **named):
            live = super().start(*arguments, **named)
            live.instance.accounted = False
            return live

    brought = list(_walk(FakeRun("alpha"), others=(), launcher=Unseen()).run())
    assert {footprint.scope for footprint in brought} == {Scope.HOST}


def test_what_runs_on_another_host_is_a_line():
    class Far(FakePlatform):
        elsewhere = True

    walk = _walk(FakeRun("alpha"), others=())
    walk.route = Route((Far("ssh:far"),), walk.route.jobs, 1, 0.0, 1)
    [missed] = walk.run()
    assert "another host" in missed.reason


def test_where_counting_is_not_possible_the_walk_ends_with_the_reason():
    with pytest.raises(HostError, match="BPF is locked"):
        list(_walk(FakeRun("alpha"), refuse="BPF is locked").run())


def test_a_counter_that_knows_no_groups_gives_everybodys_footprint_alone():
    brought = list(_walk(FakeRun("alpha"), others=(), scopes=(Scope.HOST,)).run())
    assert {footprint.scope for footprint in brought} == {Scope.HOST}


def test_counted_instructions_of_a_run_have_the_units_of_its_work_beside_them():
    units = [
        {footprint.hits.get(UNITS) for footprint in _walk(FakeRun("alpha"), level=level).run()}
        for level in (Level.INSTRUCTIONS, Level.SYSCALLS)
    ]
    assert units == [{None, 10}, {None}], "a start has none, and no other level says how much was done"


def test_what_was_lost_is_told():
    brought = list(_walk(FakeRun("alpha"), others=(), lost=7).run())
    assert {footprint.lost for footprint in brought} == {7}


@pytest.mark.parametrize("after", range(1, 8))
def test_a_walk_that_is_closed_in_between_leaves_nothing_alive(after):
    walk = _walk(FakeRun("alpha"), FakeRun("beta"))
    steps = walk.run()
    for _ in range(after):
        next(steps)
    steps.close()
    assert walk.launcher.living == set()
    assert not walk.counter.running


def test_starts_and_what_starts_instances_are_skipped_with_the_reason():
    usable, others = countable(
        [FakeRun("alpha"), FakeStart(), workload_registry.get("density-primes"), workload_registry.get("primes")]
    )
    assert [workload.name for workload in usable] == ["alpha", "primes"]
    assert [skipped.workload for skipped in others] == ["start", "density-primes"]
    assert "counted anyway" in str(others[0])
