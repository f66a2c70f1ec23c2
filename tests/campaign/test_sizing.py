"""How many runs of a user's command a block has, by a first run on the baseline."""

from types import SimpleNamespace

import pytest

from campaign.fakes import FakeLauncher, FakePlatform, FakeRun
from tare.campaign.execution import sizing
from tare.campaign.plan.campaign_plan import WorkloadJob
from tare.errors import ParseError
from tare.model import UserProgram
from tare.session import Refused
from tare.workloads.own import program


@pytest.mark.parametrize(
    ("seconds", "rounds"),
    [(0.0001, 20), (0.1, 20), (0.15, 10), (0.2, 10), (0.39, 5), (0.9, 2), (1.01, 1), (60, 1), (0, 20)],
)
def test_short_commands_run_often_and_long_ones_once(seconds, rounds):
    assert sizing.rounds_for(seconds) == rounds


@pytest.fixture
def prepared():
    names = (FakePlatform("native", baseline=True), FakePlatform("runc"))
    ready = [SimpleNamespace(platform=platform) for platform in names]
    return SimpleNamespace(ready=ready, launcher=FakeLauncher(), client=None)


def _job(name, **fields):
    workload = program.of(name, UserProgram(argv=("work", name), **fields))
    return WorkloadJob(workload, workload.profiles["quick"])


def test_commands_get_rounds_and_others_stay(prepared):
    other = WorkloadJob(FakeRun("alpha"), {"time": 1})
    jobs = sizing.sized([_job("a"), other, _job("given")], {"given"}, prepared, lambda line: None)
    assert [job.params.get("rounds") for job in jobs] == [20, None, 1]
    assert prepared.launcher.log == ["start native", "a on native", "stop native"]


def test_without_commands_nothing_is_started(prepared):
    jobs = [WorkloadJob(FakeRun("alpha"), {"time": 1})]
    assert sizing.sized(jobs, (), prepared, lambda line: None) == tuple(jobs)
    assert prepared.launcher.log == []


@pytest.mark.parametrize(
    ("error", "fix"),
    [(ParseError("`x` ended with exit code 3: no"), "--ignore-failure"), (Refused("no x", "x"), "--package")],
)
def test_a_command_that_fails_is_told_before_anything_is_measured(prepared, monkeypatch, error, fix):
    def fail(*_):
        raise error

    monkeypatch.setattr(sizing, "run_trial", fail)
    with pytest.raises(type(error), match="nothing was measured: in a first run on native") as told:
        sizing.sized([_job("a")], (), prepared, lambda line: None)
    assert fix in told.value.fix
    assert prepared.launcher.log == ["start native", "stop native"]
