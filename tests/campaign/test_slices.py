"""What the agents are told of their slices, and the thread that reads between them; the agents here only listen."""

import os
import time
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from campaign.fakes import FakeLauncher, FakeLive
from tare.campaign.execution import slices
from tare.campaign.plan.schedule import Stage
from tare.model import Arm, Mode
from tare.session import ClockOffset
from tare.session.request_results import PartResult, ProbeResult, ProbeSlice
from tare.workloads import workload_registry

ARMS = (Arm("native"), Arm("native", 1), Arm("docker"))
PARAMS = {"max_prime": 10_000, "slice_ms": 1, "rounds": 2, "warmup_ms": 0}


@dataclass
class Listening:
    """A session whose agent does exactly what it is told to."""

    plan: list[tuple[int, int]] = field(default_factory=list)  # start and duration in ns
    dead = None
    pinned = None  # as the probe was asked for

    def probe(self, name, params, warmup_ns, *, pinned):
        self.pinned = pinned
        return SimpleNamespace(
            wait_ready=lambda time_limit_s: None,
            begin=self.plan.extend,
            wait=lambda time_limit_s: self.did(),
        )

    def sync_clock(self, exchanges=8):
        return ClockOffset(0, 0)

    def did(self):
        turns = [
            ProbeSlice(start, start + lasts, {"events": PartResult(int(lasts > 0), lasts)})
            for start, lasts in self.plan
        ]
        return ProbeResult(tuple(turns), 0)


@pytest.fixture
def running_instances(monkeypatch):
    monkeypatch.setattr(slices, "COARSEST", float("inf"))  # such an agent is never late: its clock seems to stand
    launcher = FakeLauncher()
    instances = {arm: FakeLive(launcher, arm, None) for arm in ARMS}
    for running in instances.values():
        running.session = Listening()
    return instances


def test_nobody_ends_before_all_slices_are_over(running_instances):
    """A probe checks its work when it ends: STREAM goes through all of its memory, in another's last slice."""
    stage = Stage("primes", Mode.SLICES, ARMS, (ARMS, ARMS))
    done = slices.run_slices(workload_registry.get("primes"), PARAMS, stage, running_instances)
    plans = [running.session.plan for running in running_instances.values()]
    last = max(start + lasts for plan in plans for start, lasts in plan if lasts)
    closing = {plan[-1] for plan in plans}
    assert len(closing) == 1
    [(start, lasts)] = closing
    assert lasts == 0
    assert start >= last + slices.GAP_NS
    assert all(sliced.error is None for sliced in done.values())
    assert {len(sliced.slices) for sliced in done.values()} == {2}  # the closing one is none of them


def test_agents_that_answer_slowly_are_told_earlier(running_instances):
    round_trip_ns = 5_000_000
    running_instances[ARMS[1]].session.sync_clock = lambda _=8: ClockOffset(0, round_trip_ns // 2)
    began_ns = time.monotonic_ns()
    slices.run_slices(
        workload_registry.get("primes"), PARAMS, Stage("primes", Mode.SLICES, ARMS, (ARMS,)), running_instances
    )
    first = min(start for running in running_instances.values() for start, _ in running.session.plan)
    assert first - began_ns >= slices.LEAD_NS + 10 * round_trip_ns


def test_the_thread_that_reads_comes_first_only_while_it_reads():
    usual = os.sched_getscheduler(0)
    with slices.promptly():
        first = os.sched_getscheduler(0)
    assert os.sched_getscheduler(0) == usual
    assert first == (os.SCHED_RR if os.geteuid() == 0 else usual)


def test_where_the_kernel_refuses_that_it_goes_on_all_the_same(monkeypatch):
    def refused(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(slices.os, "sched_setscheduler", refused)
    with slices.promptly():
        pass


@pytest.mark.parametrize("at_once", [False, True])
def test_probes_that_take_turns_are_kept_on_one_cpu_and_those_that_work_together_are_not(running_instances, at_once):
    stage = Stage("primes", Mode.SLICES, ARMS, (ARMS, ARMS), at_once=at_once, own_cpus=False)
    slices.run_slices(workload_registry.get("primes"), PARAMS, stage, running_instances)
    assert {running.session.pinned for running in running_instances.values()} == {not at_once}
