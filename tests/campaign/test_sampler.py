"""The telemetry's thread without a host below it: when it reads, what it hands over, and what a fault does."""

import time

import pytest

from campaign.fakes import FakeLauncher, Quiet, a_plan, a_record
from tare.campaign.execution.runner import Runner
from tare.campaign.telemetry import sampler
from tare.campaign.telemetry.sampler import Sampler
from tare.model import Arm, CpuTick, InstanceTick, Tick
from tare.store import create_store, open_store


class FakeHost:
    """Numbers its readings; raises at the one that it is told to."""

    made: list = []
    fails_at: int | None = None
    fails_once = False

    def __init__(self, cpus, daemons):
        self.made.append(self)
        self.read_ns = []
        self.closed = False

    def read(self, running_instances, *, first):
        if len(self.read_ns) == self.fails_at:
            if self.fails_once:
                type(self).fails_at = None
            raise OSError(5, "Input/output error")
        self.read_ns.append(time.monotonic_ns())
        return a_tick(len(self.read_ns), first, tuple(running.arm for running in running_instances))

    def close(self):
        self.closed = True


def a_tick(number, first, arms=()):
    cpu = CpuTick(0, number, 0, 0, 0, 0, 0, 0, 0, 1_000_000 * number, None)
    instances = tuple(InstanceTick(arm, number, 4096, 0, 0) for arm in arms)
    return Tick(
        float(number),
        number,
        first,
        1,
        2,
        1,
        0,
        0,
        9,
        None,
        9,
        1 << 30,
        0,
        0,
        None,
        None,
        None,
        5,
        6,
        (cpu,),
        instances,
    )


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setattr(FakeHost, "made", [])
    monkeypatch.setattr(FakeHost, "fails_at", None)
    monkeypatch.setattr(sampler, "_Host", FakeHost)
    return FakeHost


def test_it_reads_at_its_rate_and_once_more_at_the_end(fake):
    sampler = Sampler((0,), interval_s=0.05)
    with sampler.sampling(tuple):
        while sampler.readings < 5:
            time.sleep(0.005)
        ended = time.monotonic_ns()
    [host] = fake.made
    assert host.closed
    assert host.read_ns[-1] >= ended
    # Never sooner than planned; how much later is the machine's affair.
    assert host.read_ns[4] - host.read_ns[0] >= 4 * 50_000_000 - 5_000_000
    ticks = sampler.drain()
    assert [tick.first for tick in ticks] == [True] + [False] * (len(host.read_ns) - 1)
    assert sampler.drain() == []


def test_a_reading_that_fails_is_dropped_and_those_after_it_are_not(fake, monkeypatch):
    monkeypatch.setattr(fake, "fails_once", True)
    fake.fails_at = 2
    sampler = Sampler((0,), interval_s=0.001)
    with sampler.sampling(tuple):
        while sampler.readings < 6:
            time.sleep(0.001)
    [(reason, dropped)] = sampler.dropped.items()
    assert reason.startswith("OSError: [Errno 5] Input/output error (in ")
    assert (dropped.count, dropped.fault.reason) == (1, reason)
    assert sampler.failed is None
    ticks = sampler.drain()
    assert len(ticks) == sampler.readings - 1
    assert [tick.first for tick in ticks] == [True] + [False] * (len(ticks) - 1)
    assert fake.made[0].closed


def test_a_telemetry_that_does_not_begin_ends_nothing(monkeypatch):
    monkeypatch.setattr(sampler, "_Host", lambda *_: {}["no such host"])
    telemetry = Sampler((0,), interval_s=0.001)
    with telemetry.sampling(tuple):
        while telemetry.failed is None:
            time.sleep(0.001)
    assert telemetry.failed.reason.startswith("KeyError")


def test_a_campaign_keeps_every_tick_in_order_with_the_instances_of_that_moment(fake, tmp_path):
    plan = a_plan()
    sampler = Sampler((0,), interval_s=0.0005)
    with create_store(tmp_path / "x.tare", a_record(plan)) as store:
        Runner(plan, store, FakeLauncher(), None, Quiet(), sampler=sampler).run()
        telemetry = store.telemetry()
        assert store.events() == []
    assert telemetry.host["at_ns"].to_list() == list(range(1, len(fake.made[0].read_ns) + 1))
    assert telemetry.host["first"].sum() == 1
    assert telemetry.cpus.height == telemetry.host.height
    names = {(name, replica) for name, replica in telemetry.instances.select("platform", "replica").iter_rows()}
    assert names <= {("native", 0), ("native", 1), ("runc", 0), ("docker", 0)}


def test_what_was_read_until_an_interrupt_is_kept_and_a_fault_is_told(fake, tmp_path):
    plan = a_plan()
    fake.fails_at = 1
    with create_store(tmp_path / "x.tare", a_record(plan)) as store:
        sampler = Sampler((0,), interval_s=0.0005)
        with pytest.raises(KeyboardInterrupt):
            Runner(plan, store, FakeLauncher(), None, Quiet(interrupt_after=3), sampler=sampler).run()
        assert store.telemetry().host.height == 1
        [event] = store.events()
        assert event.text.startswith(
            f"the telemetry, without {sampler.readings - 1} of {sampler.readings} readings: OSErr"
        )
    fake.fails_at = None
    with open_store(tmp_path / "x.tare") as store:
        Runner(plan, store, FakeLauncher(), None, Quiet(), sampler=Sampler((0,), interval_s=0.0005)).run()
        assert store.telemetry().host["first"].sum() == 2  # no window spans the time between the two


def test_an_arm_in_a_tick_is_named(tmp_path):
    plan = a_plan()
    with create_store(tmp_path / "x.tare", a_record(plan)) as store:
        store.commit_trials((), [a_tick(1, True, (Arm("native", 1), Arm("docker")))])
        assert store.telemetry().instances.rows() == [(1, "native", 1, 1, 4096, 0, 0), (1, "docker", 0, 1, 4096, 0, 0)]
