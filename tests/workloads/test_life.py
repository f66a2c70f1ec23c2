"""The life of instances: what is read of the times of their operations."""

import pytest

from tare.errors import ParseError
from tare.workloads import registry
from tare.workloads.apart import Operation, Step
from tare.workloads.life.tails import tails

MS = 1_000_000


def _round(whole_ms, **parts):
    steps = {Operation(name): Step(int(ms * MS), int(ms * MS / 2), int(ms * MS / 4)) for name, ms in parts.items()}
    return {**steps, None: Step(int(whole_ms * MS), sum(step.cpu_ns for step in steps.values()))}


def test_a_whole_life_is_its_clocks_time_and_has_its_parts():
    parts = {"create": 40, "start": 8, "execute": 20, "stop": 6, "remove": 26}
    outcome = registry.get("whole-life").read([_round(102, **parts), _round(100, **parts)])
    assert outcome.series["whole"] == [102, 100]
    assert outcome.series["cpu"] == [50, 50]
    assert {name: outcome.series[name] for name in parts} == {name: [ms, ms] for name, ms in parts.items()}
    assert outcome.work == 2


@pytest.mark.parametrize("whole", [94, 106])
def test_parts_that_do_not_make_up_the_whole_are_no_figures(whole):
    parts = {"create": 40, "start": 8, "execute": 20, "stop": 6, "remove": 26}
    with pytest.raises(ParseError, match=f"lives took {whole}.0 ms, and their parts 100.0 ms"):
        registry.get("whole-life").read([_round(whole, **parts)])


def test_an_exec_has_all_of_its_times_and_the_quantiles_that_they_allow():
    outcome = registry.get("exec").read([_round(ms, execute=ms) for ms in range(1, 31)])
    assert outcome.series["return"] == list(range(1, 31))
    assert outcome.series["first-output"] == [ms / 4 for ms in range(1, 31)]
    assert outcome.series["cpu"] == [ms / 2 for ms in range(1, 31)]
    assert outcome.samples == {"p95": pytest.approx(29.45)}  # R: quantile(1:30, 0.95, type = 6)
    assert outcome.unseen == {"p99": "needs 70 more of them in a trial (time_s)"}


def test_no_quantile_is_made_of_too_few_times():
    figures, unseen = tails([1.0] * 19)
    assert figures == {}
    assert unseen["p95"] == "needs 1 more of them in a trial (time_s)"
    assert set(tails([1.0] * 20)[0]) == {"p95"}
    assert set(tails([1.0] * 100)[0]) == {"p95", "p99"}


def test_the_end_of_what_does_not_obey_and_a_pause_have_their_own_figures():
    kills = [_round(50, create=20, start=5, kill=7, remove=18)]
    assert registry.get("kill").read(kills).series == {"gone": [7], "cpu": [3.5]}
    assert registry.get("pause").read([_round(12, pause=3, resume=9)]).series == {"pause": [3], "resume": [9]}
