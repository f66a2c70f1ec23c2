"""What each trial cost of a campaign's time: turns add up, and arms that run in turn share theirs."""

import polars as pl
import pytest

from tare.store.durations import block_durations, with_turns, workload_seconds
from tare.store.segments import Segment

SEGMENT = [Segment(began=100.0, ended=200.0)]


def frame(*rows):
    """Trials: block, workload, platform, when it began and when it ended."""
    return pl.DataFrame(
        [(block, name, arm, began, round((ended - began) * 1e9)) for block, name, arm, began, ended in rows],
        schema=["block", "workload", "platform", "started", "wall_ns"],
        orient="row",
    )


def turns(*rows):
    return with_turns(frame(*rows), SEGMENT)["turn_s"].to_list()


def test_runs_one_after_the_other_have_their_own_time():
    assert turns((0, "net", "native", 101, 104), (0, "net", "runc", 105, 107)) == pytest.approx([4, 3])


def test_arms_that_run_in_turn_share_the_time_of_all():
    """Their trials end together: the time was one arm's, and the others' was none."""
    shared = turns((0, "cpu", "native", 101, 112.9), (0, "cpu", "runc", 101, 113), (0, "cpu", "gvisor", 101.1, 113))
    assert shared == pytest.approx([13 / 3] * 3)


def test_what_runs_in_turn_shares_with_nothing_else():
    rows = ((0, "cpu", "native", 101, 111), (0, "cpu", "runc", 101, 111), (0, "net", "native", 111, 121))
    assert turns(*rows) == pytest.approx([5.5, 5.5, 10])
    again = ((0, "cpu", "native", 101, 111), (1, "cpu", "native", 111, 121), (1, "cpu", "runc", 111.5, 121))
    assert turns(*again) == pytest.approx([11, 5, 5])


def test_turns_add_up_to_the_work_of_blocks_and_workloads():
    trials = with_turns(
        frame((0, "cpu", "native", 101, 111), (0, "cpu", "runc", 101, 112), (0, "net", "runc", 112, 130)), SEGMENT
    )
    assert block_durations(trials) == pytest.approx({0: 30})
    assert workload_seconds(trials) == pytest.approx({"cpu": 12, "net": 18})


def test_no_trials_have_no_turns():
    assert with_turns(frame().cast({"started": pl.Float64, "wall_ns": pl.Int64}), SEGMENT)["turn_s"].to_list() == []
