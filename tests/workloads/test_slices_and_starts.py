"""The workloads that run no command: probes in slices, and the start."""

import pytest

from tare.errors import ParseError
from tare.workloads import workload_registry
from tare.workloads.base import StartMarks

MIB = 2**20


def test_primes_is_events_a_second_of_the_slices_own_wall_time():
    figures = workload_registry.get("primes").read_slice({"events": (450, 100_000_000)}, cpu_ns=99_000_000)
    assert figures == {"events-per-second": pytest.approx(4500), "cpu-cost": pytest.approx(220_000)}


def test_stream_is_mib_a_second_by_kernel_and_cost_by_all_the_work():
    parts = {
        "copy": (1000 * MIB, 25_000_000),
        "scale": (1000 * MIB, 50_000_000),
        "add": (1500 * MIB, 100_000_000),
        "triad": (1500 * MIB, 75_000_000),
    }
    figures = workload_registry.get("stream").read_slice(parts, cpu_ns=250_000_000)
    assert figures == {
        "copy": pytest.approx(40_000),
        "scale": pytest.approx(20_000),
        "add": pytest.approx(15_000),
        "triad": pytest.approx(20_000),
        "cpu-cost": pytest.approx(50_000),
    }


@pytest.mark.parametrize("part", [None, (0, 100), (100, 0)])
def test_a_slice_without_work_is_no_figure(part):
    parts = {"events": part} if part else {}
    with pytest.raises(ParseError, match="the probe primes did no 'events'"):
        workload_registry.get("primes").read_slice(parts, cpu_ns=1)


def test_the_agent_gets_its_parameters_and_the_schedule_keeps_its_own():
    stream = workload_registry.get("stream")
    assert stream.probe_params(stream.profiles["quick"]) == {"array_bytes": 128 * MIB}
    primes = workload_registry.get("primes")
    assert primes.probe_params(primes.profiles["full"]) == {"max_prime": 10_000}


def test_three_arrays_of_stream_fit_an_instance_of_a_gibibyte():
    for params in workload_registry.get("stream").profiles.values():
        assert 3 * params["array_bytes"] < 0.8 * 2**30


def test_startup_is_milliseconds_from_the_one_instant():
    figures = workload_registry.get("startup").read(StartMarks(2_000_000, 3_500_000, 1_000_000, 900_000))
    assert figures == {"first-byte": 2.0, "command": 3.5, "first-datagram": 1.0, "ping": 0.9}


def test_from_nothing_is_what_was_made_beforehand_and_the_start():
    workload = workload_registry.get("startup")
    figures = workload.read(StartMarks(2_000_000, 3_500_000, None, None, made_ns=40_000_000))
    assert figures == {"first-byte": 2.0, "command": 3.5, "from-nothing": 43.5}
    box = workload.read(StartMarks(None, None, None, None, answer_ns=250_000_000, made_ns=50_000_000))
    assert box == {"answer": 250.0, "answer-from-nothing": 300.0}
    shown = [metric.name for metric in workload.metrics[:1]] + [m.name for m in workload.metrics[1:] if m.headline]
    assert shown == ["command", "from-nothing"], "tables show both marks"


def test_what_a_platform_cannot_show_is_left_out():
    marks = StartMarks(2_000_000, 3_000_000, None, None, {"ping_ns": "no address of its own"})
    assert workload_registry.get("startup").read(marks) == {"first-byte": 2.0, "command": 3.0}


def test_the_parts_of_a_start_are_figures_too_unless_they_are_nothing():
    marks = StartMarks(2_000_000, 3_000_000, None, None, parts={"runtime": 1_500_000, "agent": 500_000, "userspace": 0})
    figures = workload_registry.get("startup").read(marks)
    assert figures == {"first-byte": 2.0, "command": 3.0, "runtime": 1.5, "agent": 0.5}
    assert set(figures) <= {metric.name for metric in workload_registry.get("startup").metrics}


@pytest.mark.parametrize("field", ["first_byte_ns", "command_ns", "datagram_ns", "ping_ns"])
@pytest.mark.parametrize("value", [0, -5])
def test_nothing_happens_before_the_start(field, value):
    marks = {"first_byte_ns": 1, "command_ns": 1, "datagram_ns": 1, "ping_ns": 1, field: value}
    with pytest.raises(ParseError, match="before the start"):
        workload_registry.get("startup").read(StartMarks(**marks))
