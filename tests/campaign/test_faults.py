"""A trial may fail, a campaign not: every kind of fault at every place where others' code is called."""

import contextlib
import errno
import sqlite3
from dataclasses import replace
from types import SimpleNamespace

import pytest

from campaign.fakes import FakeFresh, FakeLauncher, FakePlatform, FakeRun, FakeStart, Quiet, a_plan, a_record
from tare.campaign.execution import block as blocks
from tare.campaign.execution import runs
from tare.campaign.execution.preflight import available, close_all, try_each
from tare.campaign.execution.runner import Runner
from tare.campaign.execution.slices import Sliced
from tare.campaign.instances.launcher import RunningInstance, stop_all
from tare.campaign.instances.pool import InstancePool
from tare.campaign.plan.campaign_plan import WorkloadJob
from tare.campaign.plan.stopping import LOOK_FROM
from tare.errors import (
    DiskFullError,
    Failed,
    HostError,
    ParseError,
    PlatformError,
    SessionError,
    SessionTimeout,
    StoreError,
    attempt,
)
from tare.estimates.running import RunningEstimates
from tare.model import Arm, Status, TrialKey
from tare.store import create_store, read_store
from tare.store.sqlite import SqliteStore
from tare.workloads.apart import ImageWorkload
from tare.workloads.base import Command, Outcome, RunPlan

OPENED = []


@pytest.fixture(autouse=True)
def closed():
    yield
    while OPENED:
        OPENED.pop().close()


def campaign(tmp_path, plan=None, launcher=None, watcher=None, **more):
    """Run it; the rows by workload and platform, what the watcher was told, and the file."""
    plan = plan or a_plan(2)
    store = create_store(tmp_path / "x.tare", a_record(plan))
    watcher = watcher or Quiet()
    with store:
        Runner(plan, store, launcher or FakeLauncher(), None, watcher, **more).run()
    store = read_store(tmp_path / "x.tare")
    OPENED.append(store)
    return list(store.trials().iter_rows(named=True)), watcher, store


def failing(rows, **columns):
    return [row for row in rows if all(row[key] == value for key, value in columns.items())]


def raising(error):
    def fail(*_, **__):
        raise error

    return fail


FAULTS = [
    TypeError("an int is no str"),
    KeyError("rate"),
    FileNotFoundError(2, "No such file", "/data/x"),
    ValueError(),
]


@pytest.mark.thorough
@pytest.mark.parametrize("error", FAULTS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("method", ["plan", "parse"])
def test_a_fault_in_a_workload_is_a_failed_row_with_its_traceback_told_once(tmp_path, monkeypatch, method, error):
    monkeypatch.setattr(FakeRun, method, raising(error))
    rows, watcher, store = campaign(tmp_path)
    bad = failing(rows, workload="alpha")
    assert {row["status"] for row in bad} == {"failed"}
    assert {row["status"] for row in failing(rows, workload="start")} == {"ok"}
    assert len(rows) == 2 * 3 * 4
    for row in bad:
        assert row["reason"].startswith(type(error).__name__)
        assert "(in fail, test_faults.py:" in row["reason"]
        assert "\n" not in row["reason"]
        outputs = store.outputs(TrialKey(row["block"], "alpha", Arm(row["platform"], row["replica"])))
        assert b"Traceback (most recent call last)" in outputs["traceback"].data
        assert ("0 work" in outputs) == (method == "parse"), "what the tools printed stays too"
    assert len(watcher.faults) == 1, "16 trials, one fault"
    assert type(error).__name__ in watcher.faults[0]


def test_a_fault_in_a_start_workload(tmp_path, monkeypatch):
    monkeypatch.setattr(FakeStart, "read", raising(TypeError("unsupported operand")))
    rows, watcher, _ = campaign(tmp_path)
    assert {row["status"] for row in failing(rows, workload="start")} == {"failed"}
    assert {row["status"] for row in failing(rows, workload="alpha")} == {"ok"}
    assert len(watcher.faults) == 1


class Broken(FakeLauncher):
    """A platform plug-in whose start, or whose stop, raises anything."""

    def __init__(self, where, error):
        super().__init__()
        self.where, self.error = where, error

    def start(self, platform, arm, **more):
        if self.where == "start" and arm.platform == "docker":
            raise self.error
        running = super().start(platform, arm, **more)
        if self.where == "stop" and arm.platform == "docker":
            running.stop = raising(self.error)
        return running


@pytest.mark.parametrize(
    "error", [*FAULTS, OSError(errno.ENODEV, "No such device")], ids=lambda error: type(error).__name__
)
def test_a_start_that_raises_anything_fails_that_platforms_trials_alone(tmp_path, error):
    rows, watcher, _ = campaign(tmp_path, launcher=Broken("start", error))
    assert {row["status"] for row in failing(rows, platform="docker")} == {"failed"}
    assert {row["status"] for row in rows if row["platform"] != "docker"} == {"ok"}
    fault, left_out = watcher.faults
    assert "the file has the traceback" in fault
    assert left_out.startswith("docker is left out from here on: it does not start any more: ")


def test_a_stop_that_raises_anything_is_an_event_with_its_traceback(tmp_path):
    rows, watcher, store = campaign(tmp_path, launcher=Broken("stop", RuntimeError("wedged")))
    assert {row["status"] for row in rows} == {"ok"}
    warnings = [event.text for event in store.events() if event.level == "warning"]
    assert len(warnings) == 2, "one a block"
    assert all(text.startswith("the end of an instance: RuntimeError: wedged (in fail") for text in warnings)
    assert {name for name, _ in store.attachments()} == {"traceback of the end of an instance"}
    assert len(watcher.faults) == 1


def test_stopping_goes_on_past_one_that_cannot_be_stopped():
    launcher = FakeLauncher()
    running_instances = [
        launcher.start(FakePlatform("runc"), Arm("runc", number), measured=False) for number in range(3)
    ]
    running_instances[1].stop = raising(AttributeError("stop"))
    [failed] = stop_all(running_instances)
    assert isinstance(failed.error, AttributeError)
    assert launcher.living == {"runc#2"}


def test_what_an_instance_has_is_released_when_its_session_or_group_cannot_be_closed():
    done = []
    group = SimpleNamespace(close=raising(OSError(5, "Input/output error")))
    instance = SimpleNamespace(
        spec=SimpleNamespace(group=group), daemons=[SimpleNamespace(close=lambda: done.append("daemon"))]
    )
    session = SimpleNamespace(close=raising(ValueError("no file")))
    cleanup = SimpleNamespace(release=lambda: done.append("things"))
    running = RunningInstance(Arm("runc"), instance, session, cleanup, None, 0)
    with pytest.raises((OSError, ValueError)):
        running.stop()
    assert done == ["daemon", "things"]


def test_the_look_between_blocks_may_fail(tmp_path, monkeypatch):
    monkeypatch.setattr(RunningEstimates, "known", raising(ZeroDivisionError("division by zero")))
    plan = replace(a_plan(LOOK_FROM + 1), targets={"alpha": 0.01})
    rows, watcher, store = campaign(tmp_path, plan)
    assert len(rows) == (LOOK_FROM + 1) * 3 * 4
    assert any("a look at the intervals: ZeroDivisionError" in event.text for event in store.events())
    assert len(watcher.faults) == 1


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (Outcome({"rate": 1.0, "other": 2.0}, work=1), "gives 'other', which is none of its metrics"),
        (Outcome({"rate": float("nan")}, work=1), "gives nan as its rate"),
        (Outcome({"rate": float("inf")}, work=1), "gives inf as its rate"),
        (Outcome({"rate": "fast"}, work=1), "gives 'fast' as its rate"),
        (Outcome({"rate": 1.0}, work=1, series={"rate": [2.0]}), "gives 2 figures of rate in round 0"),
        (Outcome({}, work=1), "gives no rate, which is its headline"),
        (Outcome({"cpu-cost": 1.0}, work=1), "gives no rate, which is its headline"),
        (Outcome({"rate": 1.0}, work=-1), "did -1 event of work"),
        (Outcome({"rate": 1.0}, work=0), "did 0 event of work"),
        (Outcome({"rate": 1.0}, work=float("nan")), "did nan event of work"),
        (None, "AttributeError: 'NoneType' object has no attribute 'work'"),
    ],
)
def test_a_broken_outcome_is_a_failed_trial_with_the_reason(tmp_path, monkeypatch, outcome, reason):
    monkeypatch.setattr(FakeRun, "parse", lambda *_: outcome)
    rows, _, store = campaign(tmp_path)
    bad = failing(rows, workload="beta")
    assert {row["status"] for row in bad} == {"failed"}
    assert all(reason in row["reason"] for row in bad)
    assert len(rows) == 2 * 3 * 4
    assert store.outputs(TrialKey(0, "beta", Arm("runc")))["0 work"].data == b"42.0"


@pytest.mark.parametrize("cpu_ns", [2**70, -1])
def test_a_figure_that_the_file_cannot_hold_fails_its_own_trial(tmp_path, monkeypatch, cpu_ns):
    @contextlib.contextmanager
    def huge(workload, params, running, client):
        with runs.ready(workload, params, running, client) as run:
            yield lambda: replace(run(), cpu_ns=cpu_ns) if running.arm.platform == "runc" else run()

    monkeypatch.setattr(blocks, "ready", huge)
    rows, _, _ = campaign(tmp_path)
    bad = [row for row in failing(rows, platform="runc") if row["workload"] != "start"]
    assert {row["status"] for row in bad} == {"failed"}
    assert all(row["reason"] == f"beyond what a file keeps: cpu_ns is {cpu_ns}" for row in bad)
    assert {row["status"] for row in rows if row not in bad} == {"ok"}


@pytest.mark.parametrize("figure", [1e200, 1e-200, -1e31])
def test_a_guests_figure_does_not_make_its_file_unreadable(tmp_path, monkeypatch, figure):
    monkeypatch.setattr(FakeRun, "parse", lambda *_: Outcome({"rate": figure}, work=1))
    rows, _, store = campaign(tmp_path)
    bad = failing(rows, workload="beta")
    assert {row["status"] for row in bad} == {"failed"}
    assert all(f"beyond what a file keeps: rate is {figure!r}" in row["reason"] for row in bad)
    assert store.samples().height > 0


class OneTick:
    """Telemetry with something to keep at every look."""

    failed, dropped, readings = None, {}, 1

    @contextlib.contextmanager
    def sampling(self, _running_instances, _daemons):
        yield

    def drain(self):
        return ["a tick"]


def test_telemetry_that_the_file_cannot_hold_costs_no_trial(tmp_path, monkeypatch):
    commit = SqliteStore.commit_trials

    def refusing(self, trials, telemetry=()):
        if telemetry:
            raise OverflowError("Python int too large to convert to SQLite INTEGER")
        return commit(self, trials, telemetry)

    monkeypatch.setattr(SqliteStore, "commit_trials", refusing)
    rows, _, store = campaign(tmp_path, sampler=OneTick())
    assert {row["status"] for row in rows} == {"ok"}
    assert any(event.text.startswith("the telemetry: OverflowError") for event in store.events())


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_an_interrupt_and_an_exit_end_it(tmp_path, monkeypatch, error):
    monkeypatch.setattr(FakeRun, "parse", raising(error))
    with pytest.raises(type(error)):
        campaign(tmp_path)


def test_a_full_disk_ends_it(tmp_path, monkeypatch):
    monkeypatch.setattr(SqliteStore, "commit_trials", raising(StoreError("database or disk is full")))
    with pytest.raises(StoreError, match="disk is full"):
        campaign(tmp_path)


def test_a_full_disk_of_the_instances_ends_it_before_the_next_block_and_is_no_platforms(tmp_path):
    class Filled(FakeLauncher):
        @property
        def full(self):
            return len(self.log) > 33  # in the midst of the third block's starts

        def start(self, platform, arm, **more):
            if self.full:
                raise DiskFullError("the disk is full: an instance cannot be made")
            return super().start(platform, arm, **more)

    plan, watcher, launcher = a_plan(9), Quiet(), Filled()
    with create_store(tmp_path / "x.tare", a_record(plan)) as store:
        with pytest.raises(HostError, match="the disk of / is full: the campaign ends before its next block") as ended:
            Runner(plan, store, launcher, None, watcher).run()
        assert ended.value.fix == "free 2 GiB there, and inodes (df -i)"
        rows = list(store.trials().iter_rows(named=True))
        last = max(row["block"] for row in rows)
        assert {row["status"] for row in rows if row["block"] < last} == {"ok"}
        assert "failed" in {row["status"] for row in rows if row["block"] == last}
        assert (store.events(), watcher.faults) == ([], []), "no platform is left out for it"
        launcher = FakeLauncher()
        Runner(plan, store, launcher, None, watcher).run()
        after = list(store.trials().iter_rows(named=True))
    assert len(after) == 9 * 4 * 3
    assert {row["status"] for row in after if row["block"] > last} == {"ok"}


def test_the_boundary_lets_the_store_and_interrupts_through_and_nothing_else():
    assert attempt(lambda: 3) == 3
    for error in (StoreError("full"), KeyboardInterrupt(), SystemExit(), GeneratorExit()):
        with pytest.raises(type(error)):
            attempt(raising(error))
    for error in (
        MemoryError(),
        RecursionError(),
        sqlite3.ProgrammingError("x"),
        PlatformError("no"),
        AssertionError(),
    ):
        failed = attempt(raising(error))
        assert failed.error is error
        assert failed.expected == isinstance(error, PlatformError)
        assert bool(failed.traceback) == (not failed.expected)


# What is left after a trial


class Tidying(FakeRun):
    """Has a clean-up, and a server in other tests."""

    def plan(self, params, around):
        return RunPlan(measures=(Command(("work", self.name)),), cleanup=(Command(("tidy", "after")),))


def _wedged(launcher, monkeypatch, error):
    """Every `tidy` fails."""
    start = launcher.start

    def begin(platform, arm, **more):
        running = start(platform, arm, **more)
        execute = running.session.execute

        def execute_or_fail(argv, **options):
            if argv[0] == "tidy":
                launcher.log.append(f"tidy on {arm}")
                raise error
            return execute(argv, **options)

        running.session.execute = execute_or_fail
        return running

    monkeypatch.setattr(launcher, "start", begin)
    return launcher


def _tidying():
    plan = a_plan(1)
    return replace(plan, jobs=(plan.jobs[0], WorkloadJob(Tidying("alpha"), {}), WorkloadJob(Tidying("beta"), {})))


@pytest.mark.parametrize("error", [SessionTimeout("alive 10 s after SIGKILL"), ParseError("rm: busy"), TypeError("x")])
def test_a_result_that_was_read_is_kept_when_the_clean_up_fails_and_the_instance_is_replaced(
    tmp_path, monkeypatch, error
):
    launcher = _wedged(FakeLauncher(), monkeypatch, error)
    rows, _, store = campaign(tmp_path, _tidying(), launcher)
    assert {row["status"] for row in rows} == {"ok"}
    starts = [line for line in launcher.log if line == "start runc" or line == "start runc measured"]
    assert len(starts) == 2, "the second workload gets an instance that is as it was"
    texts = [event.text for event in store.events()]
    assert any(text.startswith("the clean-up after a trial on runc, which is started anew: ") for text in texts)


@pytest.mark.parametrize(
    "error", [HostError("no room"), SessionTimeout("nothing came"), ParseError("odd"), KeyError("x")]
)
def test_the_clean_up_runs_after_every_error_while_the_session_lives(tmp_path, monkeypatch, error):
    monkeypatch.setattr(Tidying, "parse", raising(error))
    launcher = FakeLauncher()
    rows, _, _ = campaign(tmp_path, _tidying(), launcher)
    ran = failing(rows, workload="alpha")
    status = Status.UNSUPPORTED if isinstance(error, HostError) else Status.FAILED
    assert {row["status"] for row in ran} == {status.value}
    assert launcher.log.count("after on runc") == 2


def test_a_server_that_does_not_end_costs_the_instance_and_not_the_result(monkeypatch):
    running = FakeLauncher().start(FakePlatform("runc"), Arm("runc"), measured=False)
    server = SimpleNamespace(kill=lambda: None, wait=raising(SessionTimeout("alive 10 s after SIGKILL")))
    running.session.start = lambda *_, **__: server

    class Served(FakeRun):
        def plan(self, params, around):
            return RunPlan(measures=(Command(("work", "x")),), servers=(Command(("serve",)),))

    measured = runs.run_trial(Served("served"), {}, running, None)
    assert measured.outcome.samples == {"rate": 42.0}
    assert not running.usable
    assert [str(failed.error) for failed in running.dirty] == ["alive 10 s after SIGKILL"]


# Instances of a trial's own, slices


class Sizes(ImageWorkload):
    name, title, family = "sizes", "fake sizes", FakeRun.family
    metrics, work_unit, profiles = FakeRun.metrics, "image", {"quick": {}, "full": {}}

    def read(self, sizes):
        raise LookupError("no size")


def test_a_fault_where_a_trial_has_instances_of_its_own(tmp_path):
    plan = a_plan(1, more=(Sizes(), FakeFresh("gamma")))
    rows, watcher, _ = campaign(tmp_path, plan)
    assert {row["status"] for row in failing(rows, workload="sizes")} == {"failed"}
    assert {row["status"] for row in failing(rows, workload="gamma")} == {"ok"}
    assert len(watcher.faults) == 1


def test_a_dirty_instance_is_not_grown_on():
    launcher = FakeLauncher()
    failures = []
    pool = InstancePool(FakePlatform("runc"), Arm("runc"), launcher, failures.append, pytest.fail)
    first, _ = pool.grow(2)
    first.dirty.append(Failed(ParseError("rm: busy")))
    assert all(running is not first for running in pool.grow(2))
    assert [str(failed.error) for failed in failures] == ["rm: busy"]
    assert launcher.numbers == 2


def test_a_fault_in_a_whole_stage_of_slices_fails_its_trials(tmp_path, monkeypatch):
    from tare.workloads import workload_registry  # noqa: PLC0415 (the real probe's workload, for its metrics)

    primes = workload_registry.get("primes")
    plan = replace(
        a_plan(1),
        jobs=(WorkloadJob(FakeRun("alpha"), {}), WorkloadJob(primes, {**primes.profiles["quick"], "rounds": 2})),
    )
    monkeypatch.setattr(blocks, "run_slices", raising(IndexError("list index out of range")))
    rows, watcher, _ = campaign(tmp_path, plan)
    assert {row["status"] for row in failing(rows, workload="primes")} == {"failed"}
    assert {row["status"] for row in failing(rows, workload="alpha")} == {"ok"}
    assert len(watcher.faults) == 1


def test_an_instance_that_is_lost_among_slices_says_what_the_kernel_killed(tmp_path, monkeypatch):
    from tare.workloads import workload_registry  # noqa: PLC0415 (as above)

    def lost(workload, params, stage, running_instances, extra):
        runc = running_instances[Arm("runc")]
        runc._killed, runc.session.dead = 1, SessionError("the stream ended")
        return {
            arm: Sliced(error=running.session.dead or ParseError("no")) for arm, running in running_instances.items()
        }

    primes = workload_registry.get("primes")
    plan = replace(a_plan(1), jobs=(WorkloadJob(primes, {**primes.profiles["quick"], "rounds": 2}),))
    monkeypatch.setattr(blocks, "run_slices", lost)
    rows, _, _ = campaign(tmp_path, plan)
    reasons = {row["platform"]: row["reason"] for row in failing(rows, workload="primes")}
    assert (
        "killed for want of memory: 1, at its limit of 1024 MiB (tare run --memory): the stream ended"
        in reasons["runc"]
    )
    assert reasons["docker"] == "no"


# Before the first trial, and after the last


class Faulty(FakePlatform):
    """Fails at one of its methods."""

    def __init__(self, name, method, *, baseline=False):
        super().__init__(name, baseline=baseline)
        setattr(self, method, raising(AttributeError(f"{name} has no {method}")))


def test_a_platform_whose_detection_fails_is_left_out():
    kept = []
    platforms = [FakePlatform("native", baseline=True), Faulty("odd", "detect")]
    detected, left_out = available(platforms, progress=lambda _: None, keep=lambda *fault: kept.append(fault))
    assert [platform.name for platform, _ in detected] == ["native"]
    assert left_out[0].reason.startswith("AttributeError: odd has no detect (in fail, test_faults.py:")
    assert kept[0][0] == "the detection of odd"
    assert b"Traceback" in kept[0][1].traceback


def test_a_platform_that_answers_something_else_than_it_should_is_left_out():
    kept = []
    odd = FakePlatform("odd")
    odd.detect = lambda: None
    platforms = [FakePlatform("native", baseline=True), odd]
    detected, left_out = available(platforms, progress=lambda _: None, keep=lambda *fault: kept.append(fault))
    assert [platform.name for platform, _ in detected] == ["native"]
    assert "the detect of odd gave NoneType, and not Availability" in left_out[0].reason
    odd.prepare = lambda image: None
    arguments = {"progress": lambda _: None, "keep": lambda *fault: kept.append(fault)}
    ready, left_out = try_each([(odd, detected[0][1])], None, FakeLauncher(), **arguments)
    assert (ready, len(kept)) == ([], 2)
    assert "the prepare of odd gave NoneType, and not Prepared" in left_out[0].reason


def test_a_platform_whose_preparation_fails_is_left_out():
    kept = []
    odd = Faulty("odd", "prepare")
    arguments = {"progress": lambda _: None, "keep": lambda *fault: kept.append(fault)}
    ready, left_out = try_each([(odd, odd.detect())], None, FakeLauncher(), **arguments)
    assert ready == []
    assert left_out[0].reason.startswith("AttributeError: odd has no prepare")
    assert len(kept) == 1


@pytest.mark.parametrize("method", ["detect", "prepare"])
def test_without_the_baseline_it_ends_with_one_line(method):
    native = Faulty("native", method, baseline=True)
    arguments = {"progress": lambda _: None, "keep": pytest.fail}
    calls = {
        "detect": lambda: available([native], **arguments),
        "prepare": lambda: try_each([(native, native.detect())], None, FakeLauncher(), **arguments),
    }
    with pytest.raises(PlatformError, match=f"native has no {method}"):
        calls[method]()


def test_one_that_cannot_be_closed_keeps_no_other_open():
    closed = []
    other = FakePlatform("other")
    other.close = lambda: closed.append("other")
    [(platform, failed)] = close_all([Faulty("odd", "close"), other])
    assert (platform.name, closed) == ("odd", ["other"])
    assert "odd has no close" in failed.reason
