from tare.campaign.execution.circumstances import HostReading, total_ns
from tare.host.facts.counters import parse_steal_and_total

STAT = """cpu  2255 34 2290 22625563 6290 127 456 500 0 0
cpu0 1132 34 1441 11311718 3675 127 438 300 0 0
cpu1 1123 0 849 11313845 2614 0 18 200 0 0
intr 114930548 113199788
"""


def test_steal_is_that_of_the_pinned_cpus_only():
    assert parse_steal_and_total(STAT, [1]) == (200, 1123 + 849 + 11313845 + 2614 + 18 + 200)
    assert parse_steal_and_total(STAT, [0, 1])[0] == 500


def test_shares_are_of_the_time_between_two_readings():
    before = HostReading(1_000_000_000, (100, 1000), 5_000, 0.5)
    after = HostReading(2_000_000_000, (110, 1100), 255_000, 0.5)
    assert after.steal_since(before) == 0.1
    assert after.pressure_since(before) == 0.25
    assert before.steal_since(before) is None
    assert HostReading(2, (0, 0), None, 0.0).pressure_since(HostReading(1, (0, 0), None, 0.0)) is None


def test_a_host_that_counts_nothing_stolen_and_counters_that_cannot_be_give_no_share():
    four_columns = "cpu  1 2 3 4\ncpu0 1 2 3 4\n"
    assert parse_steal_and_total(four_columns, [0]) is None
    assert parse_steal_and_total("", [0]) is None
    before = HostReading(1_000_000_000, (10**9, 10**10), 5_000, 0.5)
    for ticks, waited in ((None, None), ((0, 10**10 + 100), 0), ((2 * 10**9, 10**10 + 100), 4_000)):
        after = HostReading(2_000_000_000, ticks, waited, 0.5)
        assert after.steal_since(before) is None
        assert after.pressure_since(before) is None


def test_the_cpu_time_of_all_is_unknown_where_that_of_one_is():
    assert total_ns([3, 4]) == 7
    assert total_ns([3, None, 4]) is None
