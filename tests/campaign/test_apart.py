"""Trials that start instances of their own: cold starts, several at once, the search for the least memory."""

import itertools
import threading
import time
from dataclasses import replace

import pytest

from campaign.fakes import FakeFresh, FakeLauncher, FakePlatform, FakeStart, Quiet, a_plan, a_record
from tare.campaign.execution import cold, density, minimum
from tare.campaign.execution.runner import Runner
from tare.campaign.execution.slices import Sliced, plan_turns, rounds_of
from tare.campaign.instances.gate import Gate, at_once
from tare.campaign.instances.pool import InstancePool
from tare.campaign.plan.campaign_plan import WorkloadJob
from tare.errors import HostError, ParseError, PlatformError, SessionError, TooLateError
from tare.model import Arm, Resources, Sample, TrialKey
from tare.platforms.base import Prepared
from tare.store import create_store, open_store
from tare.workloads import workload_registry

MIB = 2**20


def _run(tmp_path, workload, launcher, params=None, blocks=1, client=None):
    """A campaign of one workload, with these parameters; its trials by arm, its samples, and the store's outputs."""
    plan = a_plan(blocks)
    plan = replace(plan, jobs=(WorkloadJob(workload, params or dict(workload.profiles["quick"])),))
    with create_store(tmp_path / "x.tare", a_record(plan)) as store:
        Runner(plan, store, launcher, client, Quiet()).run()
        trials = {f"{row['platform']}{row['replica'] or ''}": row for row in store.trials().iter_rows(named=True)}
        samples = store.samples()
        outputs = store.outputs(TrialKey(0, workload.name, Arm("runc")))
    return trials, samples, outputs


@pytest.fixture
def probed(monkeypatch):
    """Slices without agents: every instance has an equal part of 1200 a second, and 1 ns of CPU for each unit."""
    stages = []

    def run_slices(inner, params, stage, running_instances):
        stages.append((stage, dict(params)))
        rate = 1200 / len(running_instances)
        if any(running.memory_bytes < 64 * MIB for running in running_instances.values()):
            rate /= 2
        rounds = range(len(stage.rounds))
        metric = next(iter(inner.parts))
        samples = tuple(Sample(metric, rate + number, number) for number in rounds)
        return {arm: Sliced(samples, cpu_ns=500, work=100.0) for arm in running_instances}

    monkeypatch.setattr(density, "run_slices", run_slices)
    return stages


def test_a_probe_works_in_ever_more_instances_at_the_same_instants(tmp_path, probed):
    launcher = FakeLauncher()
    trials, samples, _ = _run(tmp_path, workload_registry.get("density-primes"), launcher)
    assert {row["status"] for row in trials.values()} == {"ok"}
    mine = samples.filter(samples["platform"] == "runc")
    figures = {(row["metric"], row["round"]): row["value"] for row in mine.iter_rows(named=True)}
    for number in range(3):
        assert figures["each-1", number] == 1200 + number
        assert figures["each-2", number] == 600 + number
        assert figures["each-4", number] == 300 + number
        assert figures["total-2", number] == 1200 + 2 * number
        assert figures["total-4", number] == 1200 + 4 * number
    assert figures["cpu-cost", 0] == 5.0  # of all four: 2000 ns, 400 units
    assert len(figures) == 16
    for stage, params in probed:
        assert stage.at_once
        assert not stage.own_cpus
        assert set(params) == {"max_prime", "slice_ms", "rounds", "warmup_ms"}
    assert [len(stage.order) for stage, _ in probed] == [1, 2, 4] * 4
    assert launcher.most == 4, "those that there are go on, and no other arm's instance lives"
    assert launcher.log.count("start runc") == 4
    assert launcher.numbers == 0


def test_turns_at_once_without_a_cpu_each_are_kept_nowhere():
    arms = (Arm("runc", 0), Arm("runc", 1), Arm("runc", 2))
    turns = plan_turns(rounds_of([arms, arms], {"slice_ms": 90}), 0, at_once=True, own_cpus=False)
    assert [(turn.start_ns, turn.slot, turn.cpu) for turn in turns] == [(0, 0, None)] * 3 + [(100_000_000, 1, None)] * 3


def test_rounds_in_which_one_has_no_figure_are_left_out():
    first = Sliced((Sample("rate", 1.0, 0), Sample("rate", 2.0, 1)))
    other = Sliced((Sample("rate", 3.0, 1), Sample("cost", 3.0, 0)))
    assert density.by_round([first, other], "rate") == {1: [2.0, 3.0]}


def test_an_instance_that_does_not_start_fails_the_trial_and_no_other(tmp_path, probed):
    trials, _, _ = _run(tmp_path, workload_registry.get("density-primes"), FakeLauncher(refuse={"docker"}))
    assert {name: row["status"] for name, row in trials.items()} == {
        "native": "ok", "native1": "ok", "runc": "ok", "docker": "failed",
    }  # fmt: skip
    assert "does not want to" in trials["docker"]["reason"]


def test_more_than_the_hosts_memory_is_refused_with_the_fix(tmp_path, probed):
    launcher = FakeLauncher(resources=Resources((0,), 1 << 50))
    trials, _, _ = _run(tmp_path, workload_registry.get("density-primes"), launcher)
    assert {row["status"] for row in trials.values()} == {"unsupported"}
    assert "(fix: give --memory" in trials["runc"]["reason"]
    assert launcher.log == []


def test_an_instance_that_is_lost_at_work_fails_the_trial_and_its_console_is_kept(tmp_path, monkeypatch):
    def lost(inner, params, stage, running_instances):
        [*_, last] = running_instances.values()
        if last.arm.platform == "runc" and len(running_instances) == 2:
            last.session.dead = SessionError("the stream ended")
            last._killed = 1
            return {
                arm: Sliced(error=running.session.dead or ParseError("no slices"))
                for arm, running in running_instances.items()
            }
        return {arm: Sliced((Sample("events-per-second", 1.0),), work=1.0) for arm in running_instances}

    monkeypatch.setattr(density, "run_slices", lost)
    launcher = FakeLauncher()
    plan = replace(a_plan(1), jobs=(WorkloadJob(workload_registry.get("density-primes"), {"most": 2, "rounds": 1}),))
    with create_store(tmp_path / "x.tare", a_record(plan)) as store:
        Runner(plan, store, launcher, None, Quiet()).run()
        failed = store.trials().filter(store.trials()["status"] != "ok")
        assert failed["platform"].to_list() == ["runc"]
        [reason] = failed["reason"].to_list()
        assert reason.endswith(": the stream ended"), "and not what the other says of its partner's loss"
        assert reason.startswith(
            "processes of it that the kernel killed for want of memory: 1, at its limit of 1024 MiB"
        )
        assert [data for _, data in store.attachments()] == [b"its last words"]
    assert launcher.numbers == 0


def test_starts_at_once_are_new_ones_each_time(tmp_path):
    launcher = FakeLauncher()
    trials, samples, _ = _run(tmp_path, workload_registry.get("density-start"), launcher)
    assert {row["status"] for row in trials.values()} == {"ok"}
    assert launcher.log.count("start runc") == 1 + 2 + 4
    assert launcher.log.count("stop runc") == 1 + 2 + 4
    assert launcher.most == 4
    mine = samples.filter(samples["platform"] == "runc")
    figures = dict(mine.select("metric", "value").iter_rows())
    assert figures.keys() == {"each-1", "each-2", "total-2", "each-4", "total-4"}
    assert figures["each-4"] == 2.0
    assert figures["total-4"] >= 2.0


def test_the_gate_opens_when_the_last_has_come():
    order, lock = [], threading.Lock()

    def task(number, gate):
        time.sleep(0.02 * number)
        with lock:
            order.append("there")
        gate.wait()
        with lock:
            order.append("through")
        return number

    assert at_once(3, task) == [0, 1, 2]
    assert order == ["there"] * 3 + ["through"] * 3


def test_who_fails_before_the_gate_sends_the_others_away_and_is_what_is_told():
    def task(number, gate):
        if number == 1:
            time.sleep(0.02)
            raise PlatformError("no room")
        try:
            gate.wait()
        except HostError as error:
            raise PlatformError(f"sent away: {error.what}") from error

    with pytest.raises(PlatformError, match="no room"):
        at_once(3, task)


def test_who_fails_after_the_gate_leaves_the_others_alone():
    done = []

    def task(number, gate):
        gate.wait()
        if number == 0:
            raise PlatformError("died young")
        time.sleep(0.02)
        done.append(number)

    with pytest.raises(PlatformError, match="died young"):
        at_once(3, task)
    assert sorted(done) == [1, 2]


def test_a_gate_is_not_waited_at_for_ever(monkeypatch):
    monkeypatch.setattr("tare.campaign.instances.gate.GATE_LIMIT_S", 0.01)
    with pytest.raises(HostError, match="did not get that far"):
        Gate(2).wait()


def test_starts_that_fail_at_the_gate_leave_nothing(tmp_path):
    class Full(FakeLauncher):
        def start(self, platform, arm, *, measured, terms):
            if self.numbers >= 2:
                raise PlatformError("no room for a third", console=b"no room")
            return super().start(platform, arm, measured=measured, terms=terms)

    launcher = Full()
    pool = InstancePool(FakePlatform("runc"), Arm("runc"), launcher, pytest.fail, pytest.fail)
    with pytest.raises(PlatformError):
        pool.grow(3)
    assert launcher.numbers == 2
    pool.clear()
    assert launcher.numbers == 0


@pytest.mark.parametrize("most", [1, 2, 3, 128])
def test_the_least_that_suffices_is_found_in_as_few_tries_as_there_are_bits(most):
    for enough in range(1, most + 1):
        tries = []

        def suffices(number, enough=enough, tries=tries):
            tries.append(number)
            return number >= enough

        assert minimum.least(suffices, most) == enough
        assert len(tries) <= (most - 1).bit_length()
        assert most not in tries


@pytest.mark.parametrize(("needs_mib", "found_mib"), [(37, 64), (64, 64), (65, 72), (700, 704), (1024, 1024)])
def test_the_least_memory_is_what_starts_and_is_not_slow(tmp_path, probed, needs_mib, found_mib):
    """Below 64 MiB the fake's rate is halved, so that what starts with less is not enough."""
    launcher = FakeLauncher(least=needs_mib * MIB)
    trials, samples, outputs = _run(tmp_path, workload_registry.get("memory-least"), launcher)
    assert {row["status"] for row in trials.values()} == {"ok"}, "starts that fail are answers"
    assert set(samples.filter(samples["metric"] == "limit")["value"]) == {found_mib}
    lines = outputs["tries"].data.decode().splitlines()
    assert lines[:3] == ["1024 MiB: 1203 a second"] * 3
    assert len({line.split()[0] for line in lines}) == 8, "the whole, and seven steps of the bisection"
    assert any("does not come up" in line for line in lines) == (needs_mib > 8)
    assert launcher.numbers == 0
    assert launcher.most == 1


@pytest.mark.parametrize("needs_mib", [100, 2000])
def test_a_try_whose_processes_the_kernel_killed_says_so(tmp_path, monkeypatch, needs_mib):
    """An answer, where less than the campaign's limit was tried; else the trial fails, and its console is kept."""

    def run_slices(inner, params, stage, running_instances):
        [(arm, running)] = running_instances.items()
        if running.memory_bytes < needs_mib * MIB:
            running._killed, running.session.dead = 1, SessionError("the stream ended")
            return {arm: Sliced(error=running.session.dead)}
        return {arm: Sliced((Sample("events-per-second", 1.0, 0),), work=1.0)}

    monkeypatch.setattr(density, "run_slices", run_slices)
    trials, _, outputs = _run(tmp_path, workload_registry.get("memory-least"), FakeLauncher())
    told = "processes of it that the kernel killed for want of memory: 1, at its limit of 1024 MiB (tare run --memory)"
    if needs_mib > 1024:
        assert trials["runc"]["reason"].startswith(told)
        with open_store(tmp_path / "x.tare") as store:
            assert {data for _, data in store.attachments()} == {b"its last words"}
    else:
        assert trials["runc"]["status"] == "ok"
        assert f"96 MiB: {told}" in outputs["tries"].data.decode()


@pytest.mark.parametrize("lucky", [0, 1, 2])
def test_neither_bad_luck_nor_good_makes_another_least(monkeypatch, lucky):
    """Half of the instances are slow for no reason, and one of the first three is twice as fast as any other."""
    rates = [200.0 if number == lucky else 100.0 if number < 3 or number % 4 > 1 else 90.0 for number in range(200)]
    assert _least_mib(monkeypatch, rates) == 96


@pytest.mark.parametrize("slow_from", range(3, 12))
def test_a_machine_that_becomes_slower_has_no_greater_least(monkeypatch, slow_from):
    """Neighbours take a quarter of all rates from one try on: at no limit is the first rate reached again."""
    rates = [100.0 if number < slow_from else 75.0 for number in range(200)]
    assert _least_mib(monkeypatch, rates) == 96


def test_a_machine_that_becomes_faster_has_no_lesser_least(monkeypatch):
    """Below 256 MiB the work is slowed down by a fifth, which is not hidden by neighbours that left meanwhile."""
    rates = [75.0 if number < 3 else 100.0 for number in range(200)]
    assert _least_mib(monkeypatch, rates, slow_below_mib=256) == 256


def _least_mib(monkeypatch, rates, slow_below_mib=0):
    """What `memory-least` tells of an instance that starts with 96 MiB, its tries having these rates."""
    rates = iter(rates)

    def run_slices(inner, params, stage, running_instances):
        [(arm, running)] = running_instances.items()
        share = 0.8 if running.memory_bytes < slow_below_mib * MIB else 1.0
        return {arm: Sliced((Sample("events-per-second", next(rates) * share),))}

    return _least_of(monkeypatch, run_slices)


def _least_of(monkeypatch, run_slices):
    monkeypatch.setattr(density, "run_slices", run_slices)
    workload = workload_registry.get("memory-least")
    pool = InstancePool(FakePlatform("runc"), Arm("runc"), FakeLauncher(least=96 * MIB), pytest.fail, pytest.fail)
    [sample] = minimum.least_memory(workload, workload.profiles["quick"], pool).samples
    assert sample.metric == "limit"
    return sample.value


@pytest.mark.parametrize("stalls", [1, minimum.CHANCES - 1])
def test_a_busy_host_is_no_want_of_memory(monkeypatch, stalls):
    """Each instance is so often not measured at all before it is."""
    late = itertools.count(1)

    def run_slices(inner, params, stage, running_instances):
        [arm] = running_instances
        if next(late) % (stalls + 1):
            return {arm: Sliced(error=TooLateError("all of its 3 slices came too late"))}
        return {arm: Sliced((Sample("events-per-second", 100.0),))}

    assert _least_of(monkeypatch, run_slices) == 96


def test_a_host_that_is_always_too_late_measures_no_least(monkeypatch):
    def run_slices(inner, params, stage, running_instances):
        return dict.fromkeys(running_instances, Sliced(error=TooLateError("all of its 3 slices came too late")))

    with pytest.raises(TooLateError):
        _least_of(monkeypatch, run_slices)


def test_an_instance_that_does_not_work_with_all_of_the_memory_has_no_least(tmp_path, probed):
    trials, _, _ = _run(tmp_path, workload_registry.get("memory-least"), FakeLauncher(least=2 << 30))
    assert {row["status"] for row in trials.values()} == {"failed"}
    assert "does not come up with 1024 MiB" in trials["runc"]["reason"]


class Cold(FakeStart):
    """A start from the disk."""

    name = "cold"
    cold = True


class Filed(FakePlatform):
    """One whose files are known."""

    def prepare(self, image):
        return Prepared("a file", 1, (self.file,))


def _with_cold(tmp_path):
    """The usual fake campaign and a cold start; of docker it is not known what its starts read."""
    plan = a_plan(1, more=(Cold(), FakeFresh("gamma")))
    platforms = tuple(
        platform if platform.name == "docker" else Filed(platform.name, baseline=platform.baseline)
        for platform in plan.platforms
    )
    for platform in platforms:
        platform.file = tmp_path / f"{platform.name}.ext4"
        platform.file.write_bytes(b"x")
    return replace(plan, platforms=platforms)


def test_cold_starts_come_last_each_after_its_files_left_the_cache(tmp_path, monkeypatch):
    plan, launcher = _with_cold(tmp_path), FakeLauncher()
    drop = cold.roots.drop_page_cache
    monkeypatch.setattr(
        cold.roots, "drop_page_cache", lambda path: (launcher.log.append(f"drop {path.stem}"), drop(path))
    )
    with create_store(tmp_path / "x.tare", a_record(plan)) as store:
        Runner(plan, store, launcher, None, Quiet()).run()
        trials = store.trials().filter(store.trials()["workload"] == "cold")
        samples = store.samples()
    by = dict(trials.select("platform", "status").iter_rows())
    assert by == {"native": "ok", "runc": "ok", "docker": "unsupported"}
    assert "leave startup-cold out for docker" in trials.filter(trials["platform"] == "docker")["reason"][0]
    assert samples.filter(samples["workload"] == "cold").height == 3
    for place, line in enumerate(launcher.log):
        if line.startswith("drop"):
            assert launcher.log[place + 1].split("#")[0] == f"start {line.split()[1]} measured".split("#")[0] or (
                launcher.log[place + 1].startswith(f"start {line.split()[1]}#2")
            )
            living = [entry for entry in launcher.log[:place] if entry.startswith("start")]
            gone = [entry for entry in launcher.log[:place] if entry.startswith("stop")]
            assert len(living) == len(gone), "nobody else is alive"
    warm = [line for line in launcher.log if line.endswith("measured")]
    assert len(warm) == 4 + 3, "every arm's start of the block, and the cold ones"
    assert launcher.living == set()


def test_a_campaign_of_cold_starts_alone_starts_nothing_else(tmp_path):
    plan = _with_cold(tmp_path)
    plan = replace(plan, jobs=(WorkloadJob(Cold(), {}),))
    launcher = FakeLauncher()
    with create_store(tmp_path / "x.tare", a_record(plan)) as store:
        Runner(plan, store, launcher, None, Quiet()).run()
        assert store.trials().height == 4
    assert sum(line.startswith("start") for line in launcher.log) == 3


@pytest.mark.thorough
@pytest.mark.parametrize("after", range(1, 20))
def test_an_interrupted_campaign_with_cold_starts_goes_on_with_what_is_missing(tmp_path, after):
    plan = _with_cold(tmp_path)
    with create_store(tmp_path / "x.tare", a_record(plan)) as store:
        with pytest.raises(KeyboardInterrupt):
            Runner(plan, store, FakeLauncher(), None, Quiet(interrupt_after=after)).run()
        assert len(store.done()) == after
    with open_store(tmp_path / "x.tare") as store:
        watcher = Quiet()
        Runner(plan, store, FakeLauncher(), None, watcher).run()
        assert len(watcher.trials) == 20 - after
        assert store.trials().height == 20
