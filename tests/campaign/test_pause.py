"""A campaign that was resumed has the time that it did not use yet, however long it lay."""

import contextlib
import time
from dataclasses import replace

import pytest

from campaign.fakes import FakeLauncher, Quiet, a_plan, a_record
from tare.campaign.execution.runner import Runner
from tare.model import Design
from tare.store import create_store, open_store

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


class Slow(FakeLauncher):
    """Instances that take their time."""

    clock: Clock

    def start(self, *arguments, **words):
        self.clock.go(START_S)
        running = super().start(*arguments, **words)
        work = running.session.execute

        def execute(*argv, **others):
            self.clock.go(RUN_S)
            return work(*argv, **others)

        running.session.execute = execute
        return running


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def go_on(plan, store, clock, watcher):
    launcher = Slow()
    launcher.clock = clock
    Runner(plan, store, launcher, None, watcher).run()


def test_pauses_take_nothing_of_the_time_that_was_planned(tmp_path, clock):
    plan = replace(a_plan(others=("runc", "docker")), blocks=None, budget_s=HOUR)
    block_s = 4 * START_S + 4 * 2 * RUN_S  # arms; of which two runs
    file = tmp_path / "x.tare"
    with create_store(file, a_record(plan)) as store, pytest.raises(KeyboardInterrupt):
        go_on(plan, store, clock, Quiet(interrupt_after=12 * 3 + 5))
    clock.day += 10 * HOUR
    with open_store(file) as store, pytest.raises(KeyboardInterrupt):
        go_on(plan, store, clock, Quiet(interrupt_after=7 + 12))  # what was left of that block, and one more
    clock.day += 10 * HOUR
    with open_store(file) as store:
        watcher = Quiet()
        go_on(plan, store, clock, watcher)
        assert watcher.trials, "the second resume ran nothing"
        assert store.trials().height == len(store.schedule()), "no block is left half done"
        assert 1 + max(key.block for key in store.done()) == pytest.approx(HOUR / block_s, abs=1)
        worked = sum(segment.seconds for segment in store.segments())
    assert HOUR - block_s - 8 * START_S < worked <= HOUR + 8 * START_S  # what a resume starts anew is work too


class Told(Quiet):
    def __init__(self, interrupt_after=None):
        super().__init__(interrupt_after=interrupt_after)
        self.blocks = []

    def block(self, number, spent_s, left_s, interim):
        self.blocks.append((number, spent_s))


@pytest.mark.parametrize(
    ("design", "first", "then", "last"),
    # Within the second block, at its end, and where the third is told: one after the other, of the second arm.
    [(Design.BLOCKS, 12 + 5, 7, 2), (Design.SEQUENTIAL, 9 + 3 + 1, 2, 5)],
)
def test_what_a_resumed_campaign_has_spent_is_what_it_worked(tmp_path, clock, design, first, then, last):
    plan = replace(a_plan(3), design=design)
    whole = Told()
    with create_store(tmp_path / "whole.tare", a_record(plan)) as store:
        go_on(plan, store, clock, whole)
    file = tmp_path / "paused.tare"
    create_store(file, a_record(plan)).close()
    for after in (first, then, None):
        clock.day += 10 * HOUR
        paused = Told(after)
        with open_store(file) as store, contextlib.suppress(KeyboardInterrupt):
            go_on(plan, store, clock, paused)
    number, spent_s = paused.blocks[last]
    assert number == last
    assert 0 < whole.blocks[last][1] <= spent_s <= whole.blocks[last][1] + 4 * START_S, "a resume starts them anew"
