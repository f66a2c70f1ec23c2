"""The clock inside against the host's: what two readings bound, and what becomes of a trial that it timed wrongly."""

import pytest

from campaign.fakes import FakeLauncher, Quiet, a_plan, a_record
from tare.campaign.execution.runner import Runner
from tare.campaign.instances.inside_clock import compared, most_off, on_host, surely_off, why_wrong, with_commands
from tare.session import ClockOffset
from tare.store import create_store
from tare.workloads.base import Completed

S, MS = 1_000_000_000, 1_000_000
BEGAN = ClockOffset(5 * S, MS, 100 * S)


def _later(rate, after_s=10, uncertainty_ns=MS):
    """The reading of a clock that runs by ``rate`` too fast."""
    return ClockOffset(5 * S + round(rate * after_s * S), uncertainty_ns, (100 + after_s) * S)


def _command(wall_ns, outside_ns):
    return Completed(("work",), 0, b"", b"", wall_ns, outside_ns=outside_ns)


@pytest.mark.parametrize("rate", [-0.2, -0.001, 0.0, 0.003, 0.25, 11.0])
def test_two_readings_bound_the_rate_by_their_round_trips(rate):
    clock = compared(BEGAN, _later(rate))
    assert clock.rate_low <= rate <= clock.rate_high
    assert clock.rate_high - clock.rate_low == pytest.approx(2 * (1 + rate) * 2 * MS / (10 * S), rel=1e-3)
    assert (clock.offset_ns, clock.offset_error_ns) == (5 * S, MS)


def test_readings_with_nothing_between_them_bound_nothing_above():
    clock = compared(BEGAN, BEGAN)
    assert clock.rate_low < 0 < clock.rate_high
    assert clock.rate_high >= 1e6
    assert surely_off(clock) == 0


def test_a_clock_that_was_set_back_is_surely_wrong():
    assert surely_off(compared(BEGAN, _later(-3.0))) > 1


def test_a_clock_is_wrong_beyond_half_of_the_margin_and_only_where_the_round_trips_cannot_be_the_cause():
    assert why_wrong(None, 0.01) is None
    assert why_wrong(compared(BEGAN, _later(0.004)), 0.01) is None
    assert why_wrong(compared(BEGAN, _later(0.006)), 0.01) is not None
    assert why_wrong(compared(BEGAN, _later(0.006, uncertainty_ns=30 * MS)), 0.01) is None
    slow = why_wrong(compared(BEGAN, _later(-0.2)), 0.01)
    assert slow is not None
    assert "20 % too slow" in slow
    assert "more than half of the 1 % margin" in slow


def test_a_command_that_seems_longer_inside_than_outside_shows_a_clock_that_is_too_fast():
    unknown = compared(BEGAN, BEGAN)
    fast = with_commands(unknown, [_command(S, 2 * S), _command(5 * S, 4 * S)])
    assert fast.rate_low == pytest.approx(0.25, abs=0.003)
    # A tick of a coarse clock, and a command that was told of to the client, show nothing.
    nothing = with_commands(unknown, [_command(12 * MS, 4 * MS), Completed(("c",), 0, b"", b"", S)])
    assert surely_off(nothing) == 0


def test_of_several_clocks_the_one_that_is_surely_off_by_most_counts():
    right, wrong, unknown = compared(BEGAN, _later(0)), compared(BEGAN, _later(-0.1)), compared(BEGAN, BEGAN)
    assert most_off([None, right, wrong, unknown]) == wrong
    assert most_off([None]) is None


def test_instants_of_a_clock_that_drifts_are_placed_by_the_readings_around_them():
    before, after = ClockOffset(7 * S, 1000, 100 * S), ClockOffset(7 * S - 2 * S, 1000, 110 * S)
    there = on_host(before, after)
    assert there(107 * S) == 100 * S
    assert there(107 * S + 4 * S) == 105 * S
    assert there(115 * S) == 110 * S


def test_a_drift_that_the_round_trips_may_explain_moves_nothing():
    before, after = ClockOffset(7 * S, 60_000, 100 * S), ClockOffset(7 * S + 100_000, 60_000, 110 * S)
    assert on_host(before, after)(112 * S) == 105 * S
    set_back = ClockOffset(-40 * S, 0, 110 * S)
    assert on_host(before, set_back)(112 * S) == 105 * S


def test_a_trial_that_a_wrong_clock_timed_fails_with_the_reason_and_keeps_its_figures(tmp_path):
    plan = a_plan(1)
    with create_store(tmp_path / "fake.tare", a_record(plan)) as store:
        Runner(plan, store, FakeLauncher(rates={"docker": -0.2, "runc": 0.002}), None, Quiet()).run()
        trials = store.trials()
        wrong = trials.filter((trials["platform"] == "docker") & (trials["workload"] != "start"))
        assert set(wrong["status"]) == {"failed"}
        assert all("the clock inside was at least 20 % too slow" in reason for reason in wrong["reason"])
        assert wrong["clock_rate_low"].to_list() == pytest.approx([-0.2] * 2, abs=1e-3)
        assert set(trials.filter(trials["platform"] == "runc")["status"]) == {"ok"}
        assert trials.filter(trials["workload"] == "start")["clock_rate_low"].to_list() == [None] * 4
        assert set(store.samples()["platform"].filter(store.samples()["workload"] == "alpha")) == {"native", "runc"}
        kept = [row for row in store.rows() if row["platform"] == "docker" and row["metric"] == "rate"]
        assert [row["value"] for row in kept] == [42.0] * 2
