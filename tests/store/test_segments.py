"""When a campaign was at work: pauses, sleep and kills count for nothing, in files of every version."""

import sys
import time
from pathlib import Path

import pytest

import fake_campaign
from tare.host import processes
from tare.model import Arm, Status, Trial, TrialKey
from tare.store import create_store, open_store, read_store
from tare.store.durations import block_durations, workload_seconds
from tare.store.segments import MAX_HANDOVER_S, Segment, estimated

SHAPE = fake_campaign.Shape(blocks=3, rounds=2)
HOURS = 3600.0


class Clock:
    """A clock of the day and one of the work, which both stand still unless they are moved."""

    def __init__(self, monkeypatch):
        self.day, self.work = 1_700_000_000.0, 1000.0
        monkeypatch.setattr(time, "time", lambda: self.day)
        monkeypatch.setattr(time, "monotonic", lambda: self.work)

    def work_for(self, seconds):
        self.day += seconds
        self.work += seconds

    def sleep(self, seconds):
        """The machine sleeps, or its harness does not run: the clock of the day goes on."""
        self.day += seconds


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.tare"


def trial(store, clock, block, workload, seconds, arm="native"):
    """A trial of so long, which ends now."""
    began = clock.day
    clock.work_for(seconds)
    key = TrialKey(block, workload, Arm(arm))
    values = (None, len(store.done()), began, round(seconds * 1e9), None, None, None, None, 0.0)
    store.commit_trials([Trial(key, Status.OK, *values, samples=(), slices=(), outputs={})])


def test_a_pause_in_a_block_is_no_work_of_it_nor_of_its_workload(path, clock):
    with create_store(path, fake_campaign.record(SHAPE)) as store, store.working("boot one"):
        trial(store, clock, 0, "sysbench-cpu", 29.0)
        trial(store, clock, 0, "iperf3-tcp", 10.0)
        trial(store, clock, 1, "sysbench-cpu", 29.0)
    clock.sleep(10 * HOURS)
    with open_store(path) as store, store.working("boot two"):
        clock.work_for(1.0)  # the start of an instance
        trial(store, clock, 1, "sysbench-cpu", 28.0, arm="runc")
        trial(store, clock, 1, "iperf3-tcp", 12.0)
    with read_store(path) as store:
        trials, segments = store.trials(), store.segments()
    assert [(segment.seconds, segment.boot) for segment in segments] == [(68.0, "boot one"), (41.0, "boot two")]
    assert block_durations(trials) == pytest.approx({0: 39.0, 1: 70.0})
    assert workload_seconds(trials) == pytest.approx({"sysbench-cpu": 43.5, "iperf3-tcp": 11.0})
    assert trials["turn_s"].sum() == pytest.approx(sum(segment.seconds for segment in segments))


def test_what_is_done_between_trials_is_the_next_ones(path, clock):
    with create_store(path, fake_campaign.record(SHAPE)) as store, store.working():
        clock.work_for(5.0)
        trial(store, clock, 0, "sysbench-cpu", 10.0)
        clock.work_for(MAX_HANDOVER_S + 1)  # however long: the segment knows that it was work
        trial(store, clock, 1, "sysbench-cpu", 10.0)
        assert block_durations(store.trials()) == pytest.approx({0: 15.0, 1: MAX_HANDOVER_S + 11})


def test_a_machine_that_slept_did_not_work_meanwhile(path, clock):
    with create_store(path, fake_campaign.record(SHAPE)) as store, store.working():
        trial(store, clock, 0, "sysbench-cpu", 10.0)
        clock.sleep(3 * HOURS)
        trial(store, clock, 0, "iperf3-tcp", 10.0)
        assert [segment.seconds for segment in store.segments()] == [10.0, 10.0]
        assert block_durations(store.trials()) == pytest.approx({0: 20.0})


def test_after_a_clock_was_set_back_time_goes_on(path, clock):
    with create_store(path, fake_campaign.record(SHAPE)) as store, store.working():
        trial(store, clock, 0, "sysbench-cpu", 10.0)
        clock.sleep(-1 * HOURS)
        trial(store, clock, 0, "iperf3-tcp", 12.0)
        assert [segment.seconds for segment in store.segments()] == [10.0, 12.0]
        assert all(turn >= 0 for turn in store.trials()["turn_s"])


KILLED = """
import os, signal, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import fake_campaign
from tare.store import create_store
store = create_store(Path(sys.argv[1]), fake_campaign.record(fake_campaign.Shape(blocks=1)))
with store.working("boot"):
    time.sleep(0.2)
    store.set_status("running")
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.thorough
def test_a_kill_loses_no_more_than_what_came_after_the_last_write(path):
    tests = str(Path(fake_campaign.__file__).parent)
    before = time.time()
    ended = processes.run([sys.executable, "-P", "-c", KILLED, str(path), tests])
    took = time.time() - before
    assert ended.code == -9
    with read_store(path) as store:
        [segment] = store.segments()
    assert 0.2 <= segment.seconds < took - 0.2
    assert segment.boot == "boot"


class TestEstimated:
    """Campaigns that recorded no segments."""

    TRIALS = [(0.0, 10.0), (12.0, 30.0), (40.0, 50.0)]

    def test_short_gaps_are_work(self):
        assert estimated(reversed(self.TRIALS), []) == [Segment(0.0, 50.0)]

    def test_a_resume_ends_a_segment_however_short_the_pause_was(self):
        assert estimated(self.TRIALS, [35.0]) == [Segment(0.0, 30.0), Segment(40.0, 50.0)]

    def test_so_does_a_gap_that_nothing_explains(self):
        far = 50.0 + MAX_HANDOVER_S
        assert estimated([*self.TRIALS, (far, far + 1)], []) == [Segment(0.0, far + 1)]
        assert estimated([*self.TRIALS, (far + 0.5, far + 1)], []) == [Segment(0.0, 50.0), Segment(far + 0.5, far + 1)]

    def test_trials_of_slices_lie_over_each_other(self):
        assert estimated([(0.0, 100.0), (1.0, 99.0), (2.0, 5.0), (110.0, 111.0)], []) == [Segment(0.0, 111.0)]

    def test_nothing_was_run(self):
        assert estimated([], [5.0]) == []


def test_a_write_that_fails_leaves_the_segment_as_it_was(path, clock):
    with create_store(path, fake_campaign.record(SHAPE)) as store, store.working():
        trial(store, clock, 0, "sysbench-cpu", 10.0)
        clock.work_for(7.0)
        with pytest.raises(Exception, match="already"):
            trial(store, clock, 0, "sysbench-cpu", 5.0)
        assert [segment.seconds for segment in store.segments()] == [10.0]
