"""A workload alone and beside a neighbour: the order of the runs, and what makes a trial worthless."""

import contextlib
from types import SimpleNamespace

import pytest

from tare.campaign.execution import neighbour as execution
from tare.campaign.execution.runs import Measured
from tare.errors import ParseError
from tare.workloads import workload_registry
from tare.workloads.base import Outcome, Side

WORKLOAD = workload_registry.get("redis-beside-network")


class _World:
    """Two instances and a client, whose neighbour is noisy while its server runs; each run takes a second."""

    def __init__(self, monkeypatch, *, idle_ns=0, noisy_ns=10**9, server_ends=False, call_ends=False):
        self.noisy, self.runs, self.at, self.cpu = False, [], 0, 0
        self._idle_ns, self._noisy_ns = idle_ns, noisy_ns
        self._server, self._call = SimpleNamespace(over=server_ends), SimpleNamespace(args=["iperf3", "-c"])
        self._call.poll = lambda: 1 if call_ends else None
        second = SimpleNamespace(
            cpu_ns=lambda: self.cpu,
            instance=SimpleNamespace(address=None),
            session=SimpleNamespace(execute=lambda argv, time_limit_s: None),
        )
        self.pool = SimpleNamespace(grow=lambda count: [SimpleNamespace(), second][:count])
        self.client = SimpleNamespace(towards=lambda address: SimpleNamespace(serving=self._calling))
        around = SimpleNamespace(address="192.0.2.3", port=1, instance_port=2, listen="0.0.0.0", cpu_count=1)
        monkeypatch.setattr(execution, "surroundings", lambda running, client: around)
        monkeypatch.setattr(execution, "ready", self._ready)
        monkeypatch.setattr(execution, "serving", self._serving)
        monkeypatch.setattr(execution.time, "monotonic_ns", lambda: self.at)

    @contextlib.contextmanager
    def _ready(self, workload, params, running, client):
        assert workload is WORKLOAD.inner
        yield self._run

    def _run(self):
        self.runs.append(self.noisy)
        self.at += 10**9
        self.cpu += self._noisy_ns if self.noisy else self._idle_ns
        figures = {"get": 100.0 if self.noisy else 400.0, "get-p99": 3.0 if self.noisy else 2.0}
        return Measured(Outcome(figures, 1), (), (), None, None)

    @contextlib.contextmanager
    def _serving(self, commands, running):
        assert all(command.side is Side.INSTANCE for command in commands)
        yield [self._server for _ in commands]

    @contextlib.contextmanager
    def _calling(self, argv):
        self.noisy = True
        yield self._call
        self.noisy = False

    def trial(self, pairs=3):
        params = {**WORKLOAD.profiles["quick"], "pairs": pairs}
        return execution.with_neighbour(WORKLOAD, params, self.pool, self.client)


def test_the_order_turns_from_pair_to_pair_and_each_pair_has_its_figures(monkeypatch):
    world = _World(monkeypatch)
    result = world.trial()
    assert world.runs == [False, True, True, False, False, True]
    kept = [(sample.round, sample.value) for sample in result.samples if sample.metric == "kept"]
    assert kept == [(0, 25.0), (1, 25.0), (2, 25.0)]
    assert result.outputs["1 beside neighbour"] == b"100.0 % of one CPU\n"


@pytest.mark.parametrize(
    ("world", "what"),
    [
        ({"idle_ns": 6 * 10**8}, "to be idle and took 60.0 % of one CPU, and 100.0 % of one CPU when noisy"),
        ({"server_ends": True}, "the neighbour ended before the run beside it"),
        ({"call_ends": True}, "the neighbour ended before the run beside it"),
    ],
)
def test_a_neighbour_that_was_not_what_it_was_to_be_fails_the_trial(monkeypatch, world, what):
    with pytest.raises(ParseError, match=what):
        _World(monkeypatch, **world).trial()
