"""A campaign that was resumed has the time that it did not use yet, however long it lay."""

import time
from dataclasses import replace

import pytest

from campaign.fakes import FakeNursery, Quiet, a_plan, a_record
from tare.campaign.runner import Runner
from tare.model import Design
from tare.store.store import Store

HOUR = 3600.0
START_S, RUN_S = 5.0, 25.0


class Clock:
    """The host's clocks: they go on while instances start and work, and only the clock of the day does in a pause."""

    def __init__(self, monkeypatch):
        self.day, self.work = 1_700_000_000.0, 1000.0
        monkeypatch.setattr(time, "time", lambda: self.day)
        monkeypatch.setattr(time, "monotonic", lambda: self.work)
        monkeypatch.setattr(time, "monotonic_ns", lambda: round(self.work * 1e9))

    def go(self, seconds):
        self.day += seconds
        self.work += seconds


class Slow(FakeNursery):
    """Instances that take their time."""

    clock: Clock

    def start(self, *arguments, **words):
        self.clock.go(START_S)
        live = super().start(*arguments, **words)
        work = live.session.execute

        def execute(*argv, **others):
            self.clock.go(RUN_S)
            return work(*argv, **others)

        live.session.execute = execute
        return live


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def go_on(plan, store, clock, watcher):
    nursery = Slow()
    nursery.clock = clock
    Runner(plan, store, nursery, None, watcher).run()


def test_pauses_take_nothing_of_the_time_that_was_planned(tmp_path, clock):
    plan = replace(a_plan(others=("runc", "docker")), blocks=None, budget_s=HOUR)
    block_s = 4 * START_S + 4 * 2 * RUN_S  # arms; of which two runs
    file = tmp_path / "x.tare"
    with Store.create(file, a_record(plan)) as store, pytest.raises(KeyboardInterrupt):
        go_on(plan, store, clock, Quiet(interrupt_after=12 * 3 + 5))
    clock.day += 10 * HOUR
    with Store.open(file) as store, pytest.raises(KeyboardInterrupt):
        go_on(plan, store, clock, Quiet(interrupt_after=12))
    clock.day += 10 * HOUR
    with Store.open(file) as store:
        watcher = Quiet()
        go_on(plan, store, clock, watcher)
        whole = [key.block for key in store.done()]
        assert store.trials().height == len(store.schedule()), "no block is left half done"
        worked = sum(segment.seconds for segment in store.segments())
    assert watcher.trials, "the second resume ran nothing"
    assert HOUR - block_s - 8 * START_S < worked <= HOUR + 8 * START_S  # what a resume starts anew is work too
    assert max(whole) + 1 == pytest.approx(HOUR / block_s, abs=1)


class Told(Quiet):
    def __init__(self):
        super().__init__()
        self.blocks = []

    def block(self, number, spent_s, left_s):
        self.blocks.append((number, spent_s))


@pytest.mark.parametrize("design", [Design.BLOCKS, Design.SEQUENTIAL])
def test_what_a_resumed_campaign_has_spent_is_what_the_whole_one_had(tmp_path, clock, design):
    plan = replace(a_plan(3), design=design)
    watchers = {}
    for name in ("whole", "paused"):
        watcher = watchers[name] = Told()
        file = tmp_path / f"{name}.tare"
        with Store.create(file, a_record(plan)) as store:
            if name == "paused":
                watcher.interrupt_after = 24 if design is Design.BLOCKS else 15
                with pytest.raises(KeyboardInterrupt):
                    go_on(plan, store, clock, watcher)
            else:
                go_on(plan, store, clock, watcher)
        if name == "paused":
            clock.day += 10 * HOUR
            with Store.open(file) as store:
                watcher = watchers[name] = Told()
                go_on(plan, store, clock, watcher)
    last = 2 if design is Design.BLOCKS else 5  # of the pass that was cut off, which is the second of the arms
    (block, spent_s), (_, whole_s) = (watchers[name].blocks[last] for name in ("paused", "whole"))
    assert block == last
    assert spent_s == pytest.approx(whole_s)
    assert spent_s > 0
