"""What an instance that does nothing costs in CPU time."""

import pytest

from tare.errors import ParseError
from tare.workloads import workload_registry
from tare.workloads.base import Side, Surroundings
from workloads.captures import completed

IDLE = workload_registry.get("idle-cpu")
PARAMS = IDLE.profiles["quick"]


def test_nothing_is_asked_of_the_instance_while_it_is_measured():
    plan = IDLE.plan(PARAMS, Surroundings(1 << 30, 1, 1 << 40, None, 0, 0))
    assert [command.side for command in plan.measures] == [Side.CLIENT]
    assert plan.servers == ()
    assert IDLE.fresh


def test_the_figure_is_cpu_time_for_each_second():
    assert IDLE.parse(PARAMS, [completed(wall_s=5.01)]).samples == {}
    assert IDLE.measure_idle(5_300_000, 5_000_000_000) == {"cpu": pytest.approx(1060)}
    assert IDLE.measure_idle(0, 5_000_000_000) == {"cpu": 0}
    assert [metric.name for metric in IDLE.all_metrics] == ["cpu"]


@pytest.mark.parametrize("slept", [completed(wall_s=4.9), completed(wall_s=5.1, code=1)])
def test_a_client_that_did_not_sleep_gives_no_figure(slept):
    with pytest.raises(ParseError, match="the client slept for"):
        IDLE.parse(PARAMS, [slept])
