"""The memory that an instance takes, before and after some work."""

import pytest

from tare.errors import ParseError
from tare.workloads import workload_registry
from tare.workloads.base import MemoryUsage
from workloads.captures import captured, completed

MIB = 2**20
FOOTPRINT = workload_registry.get("memory-footprint")
PARAMS = FOOTPRINT.profiles["quick"]


def test_the_work_must_have_been_done():
    outcome = FOOTPRINT.parse(PARAMS, [captured("memory-footprint"), completed()])
    assert (outcome.samples, outcome.work) == ({}, 0)


@pytest.mark.parametrize(
    "broken",
    [
        completed("67108864\n"),
        completed("67108864\n1\n"),
        completed("", code=137),
        captured("memory-footprint", code=1),
    ],
)
def test_work_that_was_not_done_is_told(broken):
    with pytest.raises(ParseError, match="was not done"):
        FOOTPRINT.parse(PARAMS, [broken, completed()])


def test_the_figures_are_mebibytes_before_and_after():
    before, after = (
        MemoryUsage(1 * MIB, 3 * MIB, 2 * MIB, 400 * MIB),
        MemoryUsage(4 * MIB, 70 * MIB, 5 * MIB, 400 * MIB),
    )
    figures = FOOTPRINT.measure_memory(before, after)
    assert figures == {
        "idle-own": 1, "idle-pss": 2, "idle-group": 3, "used-own": 4, "used-pss": 5, "used-group": 70,
        "idle-share": 0.25,
    }  # fmt: skip
    assert list(figures) == [metric.name for metric in FOOTPRINT.metrics[:7]]


def test_a_client_that_waits_and_daemons_are_figures_of_their_own():
    before = MemoryUsage(1 * MIB, 3 * MIB, 2 * MIB, 400 * MIB, client=9 * MIB, daemons=100 * MIB)
    figures = FOOTPRINT.measure_memory(before, before)
    assert (figures["idle-client"], figures["daemons"]) == (9, 100)


def test_a_machines_memory_and_what_its_monitor_takes_beside_it_are_two_figures():
    before = MemoryUsage(255 * MIB, 300 * MIB, 260 * MIB, 1000 * MIB, guest=200 * MIB)
    after = MemoryUsage(420 * MIB, 500 * MIB, 430 * MIB, 1000 * MIB, guest=350 * MIB)
    figures = FOOTPRINT.measure_memory(before, after)
    assert set(figures) == {metric.name for metric in FOOTPRINT.metrics} - {"idle-client", "daemons"}
    names = ("idle-guest", "idle-monitor", "used-guest", "used-monitor")
    assert [figures[name] for name in names] == [200, 60, 350, 80]


def test_an_instance_without_memory_is_no_figure():
    with pytest.raises(ParseError, match="idle-pss is 0"):
        FOOTPRINT.measure_memory(MemoryUsage(1, 1, 0, 1), MemoryUsage(1, 1, 1, 1))
