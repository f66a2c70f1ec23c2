"""What the runner does in which order, by the log that the fake launcher writes."""

from collections import Counter
from dataclasses import replace

import polars as pl
import pytest

from campaign.fakes import FakeFresh, FakeLauncher, FakeRun, FakeStart, Quiet, a_plan, a_record
from tare.campaign.execution.runner import Runner
from tare.campaign.plan.campaign_plan import WorkloadJob
from tare.campaign.plan.schedule import schedule_block
from tare.errors import ParseError, PlatformError, UnsupportedError
from tare.model import Arm, Design, Direction, Family, Metric, Status, TrialKey
from tare.store import create_store, open_store
from tare.workloads.base import Command


def _runner(plan, store, launcher=None, watcher=None):
    return Runner(plan, store, launcher or FakeLauncher(), None, watcher or Quiet())


def _all_keys(plan):
    jobs = [(job.workload, job.rounds) for job in plan.jobs]
    return {key for block in range(plan.blocks) for key in schedule_block(plan.seed, block, plan.arms, jobs).trials()}


@pytest.fixture
def plan():
    return a_plan()


@pytest.fixture
def store(tmp_path, plan):
    with create_store(tmp_path / "fake.tare", a_record(plan)) as store:
        yield store


def test_every_trial_of_every_block_is_in_the_store_once(plan, store):
    launcher = FakeLauncher()
    _runner(plan, store, launcher).run()
    assert store.done() == _all_keys(plan)
    assert set(store.schedule()) == _all_keys(plan)
    assert launcher.living == set()


def test_each_block_starts_every_arm_fresh_in_the_scheduled_order_and_stops_all(plan, store):
    launcher = FakeLauncher()
    _runner(plan, store, launcher).run()
    jobs = [(job.workload, job.rounds) for job in plan.jobs]
    starts = [line for line in launcher.log if line.startswith("start")]
    expected = [
        f"start {arm} measured"
        for block in range(2)
        for arm in schedule_block(plan.seed, block, plan.arms, jobs).launch_order
    ]
    assert starts == expected
    assert Counter(line.split()[0] for line in launcher.log)["stop"] == len(expected)


def test_a_platform_that_does_not_start_fails_all_its_trials_with_the_reason_and_the_rest_goes_on(plan, store):
    _runner(plan, store, FakeLauncher(refuse={"docker"})).run()
    trials = store.trials()
    assert {data for _, data in store.attachments()} == {b"no, no"}
    failed = trials.filter(trials["platform"] == "docker")
    assert set(failed["status"]) == {"failed"}
    assert all("does not want to" in reason for reason in failed["reason"])
    assert set(trials.filter(trials["platform"] != "docker")["status"]) == {"ok"}
    left_out = {key for key in _all_keys(plan) if key.block > 0 and key.arm.platform == "docker"}
    assert store.done() == _all_keys(plan) - left_out, "after its third failure it has no more rows"


def test_an_instance_that_dies_fails_that_trial_and_the_next_gets_a_fresh_one(store):
    plan = a_plan(1)
    launcher = FakeLauncher(die={"runc": 1})
    _runner(plan, store, launcher).run()
    trials = store.trials()
    runc = trials.filter((trials["platform"] == "runc") & (trials["workload"] != "start"))
    assert sorted(runc["status"]) == ["failed", "ok"]
    assert [line for line in launcher.log if "start runc" in line] == ["start runc measured", "start runc"]
    assert launcher.living == set()
    assert [data for _, data in store.attachments()] == [b"its last words"]


class FakeStorage(FakeRun):
    """A run of the family that a second baseline belongs to."""

    family = Family.STORAGE


def _with_a_second_baseline():
    plan = a_plan(others=("plain", "docker"), more=(FakeStorage("disk"),))
    return replace(plan, only_in={"plain": frozenset({Family.STORAGE})})


def test_a_second_baseline_runs_its_family_alone_and_is_started_for_nothing_else(tmp_path):
    plan = _with_a_second_baseline()
    launcher = FakeLauncher()
    with create_store(tmp_path / "x.tare", a_record(plan)) as store:
        _runner(plan, store, launcher).run()
        rows = {(key.workload, key.arm.platform) for key in store.done()}
    assert {workload for workload, platform in rows if platform == "plain"} == {"start", "disk"}
    assert {workload for workload, platform in rows if platform == "docker"} == {"start", "alpha", "beta", "disk"}
    assert not any("on plain" in line for line in launcher.log if line.startswith(("alpha", "beta")))

    alone = replace(plan, jobs=tuple(job for job in plan.jobs if job.workload.name in {"start", "alpha"}))
    with create_store(tmp_path / "y.tare", a_record(alone)) as store:
        trials = _runner(alone, store)._schedule(0, plan.arms, ("start", "alpha")).trials()
    assert {key.arm.platform for key in trials} == {"native", "docker"}


@pytest.mark.parametrize("after", [3, 9, 15])
def test_an_interrupted_campaign_with_a_second_baseline_keeps_its_trials(tmp_path, after):
    plan = _with_a_second_baseline()
    with create_store(tmp_path / "x.tare", a_record(plan)) as store, pytest.raises(KeyboardInterrupt):
        _runner(plan, store, watcher=Quiet(interrupt_after=after)).run()
    with open_store(tmp_path / "x.tare") as store:
        asked_by_name = replace(plan, only_in={})  # a later tare may know other families
        _runner(asked_by_name, store).run()
        first = {(key.workload, key.arm.platform) for key in store.done() if key.block == 0}
        assert {workload for workload, platform in first if platform == "plain"} == {"start", "disk"}


@pytest.mark.thorough
@pytest.mark.parametrize("after", range(1, 24))
def test_an_interrupted_campaign_goes_on_with_exactly_the_missing_trials(tmp_path, after):
    plan = a_plan()
    launcher = FakeLauncher()
    with create_store(tmp_path / "x.tare", a_record(plan)) as store:
        watcher = Quiet(interrupt_after=after)
        with pytest.raises(KeyboardInterrupt):
            _runner(plan, store, launcher, watcher).run()
        assert launcher.living == set()
        before = store.done()
        assert len(before) == after
    with open_store(tmp_path / "x.tare") as store:
        watcher = Quiet()
        _runner(plan, store, FakeLauncher(), watcher).run()
        assert {trial.key for trial in watcher.trials} == _all_keys(plan) - before
        assert store.done() == _all_keys(plan)
        assert store.trials().height == len(_all_keys(plan))


def test_a_whole_campaign_that_is_run_again_does_nothing(plan, store):
    _runner(plan, store).run()
    launcher = FakeLauncher()
    _runner(plan, store, launcher).run()
    assert launcher.log == []


def test_what_could_not_be_seen_of_a_start_is_kept_with_the_reason(store):
    _runner(a_plan(1), store).run()
    outputs = store.outputs(TrialKey(0, "start", Arm("runc")))
    assert b"ping_ns: no address" in outputs["not seen"].data


@pytest.mark.parametrize(
    ("error", "status"),
    [(ParseError("strange"), "failed"), (UnsupportedError("no such thing"), "unsupported"), (KeyError("x"), "failed")],
)
def test_what_the_tools_printed_is_kept_of_a_trial_that_fails_too(plan, store, monkeypatch, error, status):
    def refuse(*_):
        raise error

    monkeypatch.setattr(FakeRun, "parse", refuse)
    _runner(plan, store).run()
    rows = [row for row in store.trials().iter_rows(named=True) if row["workload"] != "start"]
    ran = [row for row in rows if row["status"] == status]
    assert len(ran) == len(rows) > 0
    key = TrialKey(ran[0]["block"], ran[0]["workload"], Arm(ran[0]["platform"], ran[0]["replica"]))
    assert store.outputs(key)["0 work"].data == b"42.0"


def test_the_cpu_cost_is_the_groups_time_by_the_work(store):
    _runner(a_plan(1), store).run()
    samples = store.samples()
    costs = samples.filter((samples["metric"] == "cpu-cost") & (samples["workload"] == "alpha"))
    assert set(costs["value"]) == {100.0}  # 1000 ns a command, 10 events a command
    assert Status.OK.value in set(store.trials()["status"])


def test_a_workload_that_wants_a_fresh_instance_comes_last_and_has_it_to_itself(tmp_path):
    plan = a_plan(1, more=(FakeFresh("gamma"),))
    launcher = FakeLauncher()
    with create_store(tmp_path / "x.tare", a_record(plan)) as store:
        _runner(plan, store, launcher).run()
        assert store.done() == _all_keys(plan)
    at = next(place for place, line in enumerate(launcher.log) if line.startswith("gamma"))
    assert not any("alpha" in line or "beta" in line for line in launcher.log[at:])
    for place, line in enumerate(launcher.log):
        if line.startswith("gamma on "):
            arm = line.removeprefix("gamma on ")
            assert launcher.log[place - 1] == f"start {arm}"
            assert launcher.log[place + 1] == f"stop {arm}"


def test_a_campaign_of_nothing_else_starts_no_instance_that_does_nothing(tmp_path):
    plan = replace(a_plan(1), jobs=(WorkloadJob(FakeFresh("gamma"), {}),))
    launcher = FakeLauncher()
    with create_store(tmp_path / "x.tare", a_record(plan)) as store:
        _runner(plan, store, launcher).run()
    assert Counter(line.split()[0] for line in launcher.log) == {"start": 4, "gamma": 4, "stop": 4}


def test_an_instance_whose_processes_the_kernel_killed_for_want_of_memory_says_so_once(plan, store):
    _runner(plan, store, FakeLauncher(die={"runc": 1}, kills=2)).run()
    trials = store.trials()
    killed = (
        "processes of it that the kernel killed for want of memory: 2, at its limit of 1024 MiB (tare run --memory)"
    )
    assert list(trials.filter(trials["status"] == "failed")["reason"]) == [f"{killed}: the stream ended"]


def test_a_lost_instance_is_told_with_what_ails_its_platform(plan, store, monkeypatch):
    docker = next(platform for platform in plan.platforms if platform.name == "docker")
    monkeypatch.setattr(docker, "daemon_failure", lambda: PlatformError("its daemon is gone", fix="start it"))
    _runner(plan, store, FakeLauncher(die={"docker": 1, "runc": 1})).run()
    trials = store.trials()
    reasons = set(trials.filter(trials["status"] == "failed")["reason"])
    assert reasons == {"its daemon is gone: the stream ended (fix: start it)", "the stream ended"}


def _sequential(blocks=3):
    return replace(a_plan(blocks), design=Design.SEQUENTIAL)


def test_one_after_the_other_each_has_all_of_its_repetitions_and_the_second_baseline_is_last(store):
    launcher = FakeLauncher()
    _runner(_sequential(), store, launcher).run()
    starts = [line.split()[1] for line in launcher.log if line.startswith("start")]
    assert starts == ["native"] * 3 + ["runc"] * 3 + ["docker"] * 3 + ["native#2"] * 3
    assert store.trials().height == 3 * 3 * 4
    assert store.trials()["seq"].to_list() == list(range(36))


@pytest.mark.parametrize("after", [1, 8, 9, 10, 17, 35])
def test_one_after_the_other_goes_on_where_it_was_cut_off(tmp_path, after):
    plan = _sequential()
    with create_store(tmp_path / "x.tare", a_record(plan)) as store, pytest.raises(KeyboardInterrupt):
        _runner(plan, store, watcher=Quiet(interrupt_after=after)).run()
    with open_store(tmp_path / "x.tare") as store:
        watcher = Quiet()
        _runner(plan, store, watcher=watcher).run()
        assert len(watcher.trials) == 36 - after
        assert store.trials().height == 36


def test_one_after_the_other_shares_the_time(store):
    class Blocks(Quiet):
        def block(self, number, spent_s, left_s, interim):
            offers.append((number, left_s))

    offers = []
    plan = replace(_sequential(), blocks=None, budget_s=1e-9)
    _runner(plan, store, watcher=Blocks()).run()
    assert [number for number, _ in offers] == [0, 0, 0, 0], "one block each, however short the time is"
    assert [round(left * 1e9, 2) for _, left in offers] == [1.0, 0.75, 0.5, 0.25]


class Called(FakeRun):
    """A client calls it at its port."""

    def plan(self, params, around):
        return replace(super().plan(params, around), prepare=(Command(("call", f"{around.address}:{around.port}")),))


def test_a_port_is_published_for_a_client_alone_and_not_in_a_start_that_is_measured(tmp_path):
    plan = a_plan(1, others=("docker",), more=(Called("called"), FakeFresh("gamma")))
    plan.platforms[1].publishes = True
    launcher = FakeLauncher()
    with create_store(tmp_path / "x.tare", a_record(plan)) as store:
        _runner(plan, store, launcher).run()
        assert store.done() == _all_keys(plan)
    starts = [line for line in launcher.log if line.startswith("start docker")]
    assert starts == ["start docker measured", "start docker with its port", "start docker"], launcher.log
    called = launcher.log.index("called on docker")
    assert "start docker with its port" in launcher.log[:called]
    assert launcher.log.index("start docker") < launcher.log.index("gamma on docker")


def test_where_no_start_is_measured_the_port_is_there_from_the_first(tmp_path):
    plan = a_plan(1, others=("docker",))
    plan = replace(plan, jobs=(WorkloadJob(FakeRun("alpha"), {}), WorkloadJob(Called("called"), {})))
    plan.platforms[1].publishes = True
    launcher = FakeLauncher()
    with create_store(tmp_path / "x.tare", a_record(plan)) as store:
        _runner(plan, store, launcher).run()
    assert [line for line in launcher.log if line.startswith("start docker")] == ["start docker with its port"]


def test_marks_that_an_older_tares_record_does_not_name_are_left_out(tmp_path, monkeypatch):
    plan = a_plan(1)
    record = a_record(plan)
    marks = {"command": 2.0, "from-nothing": 3.0}
    monkeypatch.setattr(FakeStart, "read", lambda *_: marks)
    monkeypatch.setattr(FakeStart, "metrics", (*FakeStart.metrics, Metric("from-nothing", "ms", Direction.LOWER, "-")))
    with create_store(tmp_path / "x.tare", record) as store:
        _runner(plan, store).run()
        assert set(store.trials()["status"]) == {"ok"}
        names = set(store.samples().filter(pl.col("workload") == "start")["metric"])
    assert names == {"command"}
