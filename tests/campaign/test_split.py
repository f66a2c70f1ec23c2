"""An application as several instances: in which order they come into service, and whose CPU time counts."""

import contextlib
from types import SimpleNamespace

import pytest

from tare.campaign.execution import split as execution
from tare.campaign.execution.runs import Measured
from tare.errors import HostError
from tare.workloads import workload_registry
from tare.workloads.base import Outcome, Surroundings

WORKLOAD = workload_registry.get("site-split")
PARAMS = WORKLOAD.profiles["quick"]


class _World:
    """Instances 0, 1 and 2, which spend 1, 2 and 10 s of CPU time under the load."""

    def __init__(self, monkeypatch, *, among="192.0.2.7", unread=()):
        self.events, self.under_load = [], False
        self.unread = unread
        self.members = [self._member(at) for at in range(3)]
        network = SimpleNamespace(joined=self._joined)
        launcher = SimpleNamespace(network=network)
        self.pool = SimpleNamespace(grow=lambda count: self.members[:count], launcher=launcher)
        around = Surroundings(1 << 30, 1, 1 << 40, "192.0.2.3", 1, 2, among=among)
        monkeypatch.setattr(execution, "surroundings", lambda running, client: around)
        monkeypatch.setattr(execution, "in_service", self._in_service)
        monkeypatch.setattr(execution, "planned", self._planned)

    def _member(self, at):
        spec = SimpleNamespace(id=f"x{at}")

        def cpu_ns():
            return None if at in self.unread else (10 + at + self.under_load * (at + 1)) * 10**9

        return SimpleNamespace(at=at, instance=SimpleNamespace(spec=spec), cpu_ns=cpu_ns)

    @contextlib.contextmanager
    def _joined(self, names):
        self.events.append(("joined", tuple(names)))
        yield
        self.events.append("parted")

    @contextlib.contextmanager
    def _in_service(self, workload, plan, running, client):
        self.events.append(("serves", running.at, plan.servers[0].argv[-1]))
        yield
        self.events.append(("ended", running.at))

    @contextlib.contextmanager
    def _planned(self, workload, params, plan, running, client):
        assert (workload, params, running.at) == (WORKLOAD.inner, PARAMS, 2)

        def run(gate, over):
            gate()
            self.under_load = True
            over()
            self.events.append("measured")
            return Measured(Outcome({"successes": 1.0}, 1000), (), (), 10 * 10**9, None)

        yield run

    def trial(self):
        return execution.split(WORKLOAD, PARAMS, self.pool, SimpleNamespace())


def test_they_are_joined_before_the_first_serves_and_until_the_last_has_ended(monkeypatch):
    world = _World(monkeypatch)
    world.trial()
    assert world.events[0] == ("joined", ("x0", "x1", "x2"))
    assert [event[1] for event in world.events[1:3]] == [0, 1]
    assert world.events[3:] == ["measured", ("ended", 1), ("ended", 0), "parted"]


def test_the_cpu_time_is_that_of_all_of_them_under_the_load(monkeypatch):
    result = _World(monkeypatch).trial()
    assert result.cpu_ns == (1 + 2 + 10) * 10**9
    assert {sample.metric: sample.value for sample in result.samples}["cpu-cost"] == 13e9 / 1000


def test_where_one_instances_cpu_time_is_not_read_there_is_no_cost(monkeypatch):
    result = _World(monkeypatch, unread={1}).trial()
    assert result.cpu_ns is None
    assert result.samples == ()


def test_nothing_begins_where_they_cannot_reach_each_other(monkeypatch):
    world = _World(monkeypatch, among=None)
    with pytest.raises(HostError, match="cannot reach each other"):
        world.trial()
    assert world.events == []
