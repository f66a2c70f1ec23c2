"""Short runs in rounds: all arms in turn, one trial an arm, one sample a round."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest

from campaign.fakes import FakeLauncher, FakeRun, Quiet, a_plan, a_record
from tare.campaign.execution import runs
from tare.campaign.execution.runner import Runner
from tare.campaign.execution.runs import run_trial
from tare.campaign.plan.campaign_plan import WorkloadJob
from tare.campaign.plan.schedule import schedule_block
from tare.features.studies import literature
from tare.model import Arm, Design, Mode, Sample, TrialKey
from tare.store import create_store
from tare.workloads import workload_registry
from tare.workloads.base import Command, Outcome, RunPlan

ROUNDS = 3


@pytest.fixture
def plan():
    return replace(
        a_plan(1), jobs=(WorkloadJob(FakeRun("alpha"), {"rounds": ROUNDS}), WorkloadJob(FakeRun("beta"), {}))
    )


@pytest.fixture
def store(tmp_path, plan):
    with create_store(tmp_path / "fake.tare", a_record(plan)) as store:
        yield store


def run(plan, store, **launcher):
    launcher = FakeLauncher(**launcher)
    Runner(plan, store, launcher, None, Quiet()).run()
    return launcher


def test_every_round_has_one_run_of_each_arm_in_an_order_of_its_own(plan, store):
    launcher = run(plan, store)
    ran = [line.removeprefix("alpha on ") for line in launcher.log if line.startswith("alpha")]
    arms = len(plan.arms)
    rounds = [ran[at : at + arms] for at in range(0, len(ran), arms)]
    assert len(rounds) == ROUNDS
    assert all(sorted(order) == sorted(map(str, plan.arms)) for order in rounds)
    stages = schedule_block(plan.seed, 0, plan.arms, [(job.workload, job.rounds) for job in plan.jobs]).stages
    [stage] = [stage for stage in stages if stage.workload == "alpha"]
    assert rounds == [[str(arm) for arm in order] for order in stage.rounds]


def test_an_arms_runs_are_one_trial_with_a_figure_and_a_cost_a_round_and_the_cpu_time_of_all(plan, store):
    run(plan, store)
    samples = store.samples()
    alpha = samples.filter((samples["workload"] == "alpha") & (samples["platform"] == "docker"))
    assert sorted(zip(alpha["metric"], alpha["round"], alpha["value"], strict=True)) == [
        *(("cpu-cost", number, 100.0) for number in range(ROUNDS)),
        *(("rate", number, 42.0) for number in range(ROUNDS)),
    ]
    trials = store.trials()
    [trial] = trials.filter((trials["workload"] == "alpha") & (trials["platform"] == "docker")).iter_rows(named=True)
    assert trial["cpu_ns"] == ROUNDS * 1000
    outputs = store.outputs(TrialKey(0, "alpha", Arm("docker")))
    assert sorted(outputs) == [f"round {number}: 0 work" for number in range(ROUNDS)]


class Prepared(FakeRun):
    """Makes files before its runs, and removes them after."""

    def plan(self, params, around):
        names = ("prepare", self.name, "cleanup")
        prepare, measure, cleanup = ((Command(("work", name)),) for name in names)
        return RunPlan(prepare=prepare, measures=measure, cleanup=cleanup)


@pytest.mark.parametrize("rounds", [1, ROUNDS])
def test_what_it_takes_is_made_once_before_all_rounds_and_removed_after(plan, store, rounds):
    launcher = run(replace(plan, jobs=(WorkloadJob(Prepared("alpha"), {"rounds": rounds}),)), store)
    ran = [line for line in launcher.log if line.endswith("on docker")]
    assert ran == ["prepare on docker", *["alpha on docker"] * rounds, "cleanup on docker"]
    if rounds > 1:
        firsts = [line.split()[0] for line in launcher.log if " on " in line]
        arms = len(plan.arms)
        assert firsts == ["prepare"] * arms + ["alpha"] * arms * rounds + ["cleanup"] * arms


class Starting(FakeRun):
    """Says by which run its program's own start can be known."""

    def plan(self, params, around):
        return RunPlan(starts=(Command(("work", "start")),), measures=(Command(("work", "long")),) * 3)


def test_what_the_programs_own_start_costs_is_no_cost_of_the_work(plan, store):
    run(replace(plan, jobs=(WorkloadJob(Starting("alpha"), {}),)), store)
    samples = store.samples()
    # Every command takes 1,000 ns of CPU time: three less the start's one, for 10 units of work.
    assert set(samples.filter(samples["metric"] == "cpu-cost")["value"]) == {200.0}
    assert set(store.trials()["cpu_ns"]) == {3000}, "all that was measured"


def test_the_programs_own_start_is_over_before_the_gate_opens():
    launcher = FakeLauncher()
    running = launcher.start(SimpleNamespace(name="docker", publishes=False), Arm("docker"), measured=False)
    run_trial(Starting("alpha"), {}, running, None, lambda: launcher.log.append("gate"))
    assert launcher.log == ["start docker", "start on docker", "gate", *["long on docker"] * 3]


def test_a_start_that_seems_to_cost_as_much_as_the_work_gives_no_cost(plan, store, monkeypatch):
    same = RunPlan(starts=(Command(("work", "start")),), measures=(Command(("work", "long")),))
    monkeypatch.setattr(Starting, "plan", lambda *_: same)
    run(replace(plan, jobs=(WorkloadJob(Starting("alpha"), {}),)), store)
    assert set(store.samples()["metric"]) == {"rate"}
    assert set(store.trials()["status"]) == {"ok"}


def test_a_start_that_fails_fails_the_trial(plan, store, monkeypatch):
    fails = RunPlan(starts=(Command(("fail", "start")),), measures=(Command(("work", "long")),))
    monkeypatch.setattr(Starting, "plan", lambda *_: fails)
    run(replace(plan, jobs=(WorkloadJob(Starting("alpha"), {}),)), store)
    assert set(store.trials()["status"]) == {"failed"}


def test_where_it_cannot_be_prepared_the_trial_fails_and_nothing_is_left(plan, store, monkeypatch):
    fails = RunPlan(measures=(), prepare=(Command(("fail", "prepare")),), cleanup=(Command(("work", "cleanup")),))
    monkeypatch.setattr(Prepared, "plan", lambda *_: fails)
    launcher = run(replace(plan, jobs=(WorkloadJob(Prepared("alpha"), {"rounds": ROUNDS}),)), store)
    assert set(store.trials()["status"]) == {"failed"}
    assert Counter(launcher.log)["cleanup on docker"] == 1


def test_a_workload_without_rounds_runs_once_and_its_output_has_a_plain_name(plan, store):
    launcher = run(plan, store)
    assert Counter(launcher.log)["beta on docker"] == 1
    assert list(store.outputs(TrialKey(0, "beta", Arm("docker")))) == ["0 work"]


def test_an_arm_that_is_lost_in_a_round_fails_its_trial_has_no_more_rounds_and_disturbs_no_other(plan, store):
    # The stages come in the seed's order; alpha's second command of docker is in a round after the first.
    first = next(
        stage.workload
        for stage in schedule_block(plan.seed, 0, plan.arms, [(job.workload, job.rounds) for job in plan.jobs]).stages
    )
    dies = 2 if first == "alpha" else 3
    launcher = run(plan, store, die={"docker": dies})
    assert Counter(launcher.log)["alpha on docker"] == 2
    rows = {(row["workload"], row["platform"]): row["status"] for row in store.trials().iter_rows(named=True)}
    assert rows == {
        (workload, platform): "failed" if (workload, platform) == ("alpha", "docker") else "ok"
        for workload in ("alpha", "beta")
        for platform in ("native", "runc", "docker")
    }
    assert launcher.living == set()


def test_a_workload_with_rounds_of_its_own_is_not_run_in_rounds(plan, store, monkeypatch):
    monkeypatch.setattr(FakeRun, "parse", lambda *_: Outcome({}, 10.0, {"rate": [1.0, 2.0]}))
    run(plan, store)
    reasons = {(row["workload"], row["reason"]) for row in store.trials().iter_rows(named=True)}
    assert reasons == {("alpha", "alpha has rounds of its own, and cannot be run in rounds"), ("beta", None)}


def test_one_platform_after_the_other_each_has_its_rounds(plan, tmp_path):
    plan = replace(plan, design=Design.SEQUENTIAL)
    with create_store(tmp_path / "sequential.tare", a_record(plan).model_copy(update={"design": plan.design})) as store:
        launcher = run(plan, store)
    assert Counter(launcher.log)["alpha on docker"] == ROUNDS


def test_a_study_that_is_repeated_runs_once_a_block_as_the_study_did():
    for name in literature.names():
        for job in literature.load(name).run.job:
            workload = workload_registry.get(job.workload)
            if workload.mode is Mode.RUN:
                params = {**workload.profiles["quick"], **job.scaled}
                assert params.get("rounds", 1) == 1, (name, job.workload)


def test_what_the_client_spends_stands_beside_what_the_platform_does():
    figures = (Sample("rate", 7.0),)
    run = runs.Measured(Outcome({"rate": 7.0}, work=10), figures, (), 1000, None, client_ns=400)
    values = {(sample.metric, sample.round): sample.value for sample in runs.together([run, run]).samples}
    assert values == {
        (metric, number): value
        for number in (0, 1)
        for metric, value in {"rate": 7.0, "cpu-cost": 100.0, "client-cost": 40.0}.items()
    }
    without = replace(run, client_ns=None)  # it had nothing to do, or is in no group
    assert [sample.metric for sample in runs.together([without]).samples] == ["rate", "cpu-cost"]
