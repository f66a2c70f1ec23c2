"""Unit costs of calls, sweeps of mmap, RAMspeed: what they make of a probe's slices, and what they refuse."""

import pytest

from tare.campaign.execution.slices import plan_turns, rounds_of
from tare.errors import HostError, ParseError
from tare.features.studies.workloads.sweep import SIZES
from tare.model import DEFAULT_MARGINS, Arm, Family
from tare.workloads import workload_registry
from tare.workloads.kernel.unit import UnitCost, unit_cost

MIB = 2**20
WORKLOADS = workload_registry.all_workloads()
UNITS = {name: workload for name, workload in WORKLOADS.items() if isinstance(workload, UnitCost)}


def test_every_kind_of_call_has_its_workloads():
    kinds = {name.split("-")[0] for name in UNITS}
    assert kinds == {"call", "mem", "proc", "ipc", "file", "net"}
    assert len(UNITS) == 28
    assert len({workload.profiles["quick"]["call"] for workload in UNITS.values()}) == len(UNITS), (
        "each is another call"
    )


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_cost_is_of_the_kernel_and_runs_only_when_asked_for(name):
    workload = UNITS[name]
    assert workload.family is Family.KERNEL
    assert workload.margin == DEFAULT_MARGINS[Family.KERNEL] == 0.02
    assert not workload.by_default
    assert workload.probe_params(workload.profiles["full"]) == {"call": workload.profiles["quick"]["call"]}


def test_a_rate_by_wall_time_and_a_cost_by_call():
    figures = UNITS["call-getpid"].read_slice({"calls": (1_000_000, 100_000_000)}, cpu_ns=99_000_000)
    assert figures == {"rate": pytest.approx(10_000_000), "cpu-cost": pytest.approx(99)}


@pytest.mark.parametrize(
    ("name", "rate", "cost"),
    [
        ("call-getpid", "calls/s", "ns/call"),
        ("mem-fault", "faults/s", "ns/fault"),
        ("proc-exec", "processes/s", "ns/process"),
        ("ipc-pipe", "round trips/s", "ns/round trip"),
        ("file-fsync", "files/s", "ns/file"),
        ("net-udp-packet", "packets/s", "ns/packet"),
        ("net-tcp-kib", "KiB/s", "ns/KiB"),
    ],
)
def test_units(name, rate, cost):
    assert [metric.unit for metric in UNITS[name].all_metrics] == [rate, cost]


def test_workloads_of_one_making_keep_their_own():
    first, other = unit_cost("one", "the one", "getpid"), unit_cost("other", "the other", "fork", "process")
    assert (first.name, other.name, first.work_unit, other.work_unit) == ("one", "other", "call", "process")


# Sweeps


def parts(*kinds, wall_ns=1_000_000):
    return {f"{kind}-{size}": (4 * MIB, wall_ns) for size in SIZES for kind in kinds}


def test_mmap_alone_and_touch_are_rates_of_their_own():
    slice_ = {**parts("map", "touch"), "touch-64k": (4 * MIB, 8_000_000)}
    figures = WORKLOADS["mmap-sweep"].read_slice(slice_, cpu_ns=40_000_000)
    assert figures["map-4k"] == pytest.approx(4000)
    assert figures["touch-64k"] == pytest.approx(500)
    assert figures["cpu-cost"] == pytest.approx(40_000_000 / 20), "20 MiB were mapped and touched"


def test_mmap_counts_with_munmap_where_both_are_done():
    slice_ = {**parts("map", "touch", "unmap"), "unmap-1m": (4 * MIB, 3_000_000)}
    figures = WORKLOADS["munmap-sweep"].read_slice(slice_, cpu_ns=None)
    assert figures["map-unmap-4k"] == pytest.approx(2000)
    assert figures["map-unmap-1m"] == pytest.approx(1000)
    assert figures["touch-1m"] == pytest.approx(4000)
    assert set(figures) == {metric.name for metric in WORKLOADS["munmap-sweep"].metrics}


@pytest.mark.parametrize("absent", ["map-16k", "touch-16k", "unmap-16k"])
def test_a_sweep_without_a_part_is_no_figure(absent):
    slice_ = {name: did for name, did in parts("map", "touch", "unmap").items() if name != absent}
    with pytest.raises(ParseError, match="-16k"):
        WORKLOADS["munmap-sweep"].read_slice(slice_, cpu_ns=1)


@pytest.mark.parametrize("name", ["mmap-sweep", "munmap-sweep"])
@pytest.mark.parametrize(("asked", "memory", "total"), [(0, 1024, 256), (0, 256, 64), (100, 200, 100), (5, 1024, 5)])
def test_what_stays_mapped_follows_the_instances_memory(name, asked, memory, total):
    params = {**WORKLOADS[name].profiles["quick"], "total_bytes": asked * MIB}
    fitted = WORKLOADS[name].fitted(params, memory * MIB)
    assert fitted == {**params, "total_bytes": total * MIB}


@pytest.mark.parametrize(("asked", "memory"), [(101, 200), (4, 1024), (0, 16)])
def test_what_does_not_fit_is_refused_with_the_fix(asked, memory):
    params = {**WORKLOADS["mmap-sweep"].profiles["quick"], "total_bytes": asked * MIB}
    with pytest.raises(HostError, match=f"an instance of {memory} MiB") as refused:
        WORKLOADS["mmap-sweep"].fitted(params, memory * MIB)
    assert "total_bytes" in refused.value.fix


def test_a_sweeps_slice_may_end_late_without_a_loss_of_its_cpu_time():
    turns = plan_turns(rounds_of([(Arm("x"),)] * 2, {"slice_ms": 200}), first_ns=0, gap_ns=100_000_000)
    assert [turn.start_ns for turn in turns] == [0, 300_000_000]
    assert {WORKLOADS[name].gap_ms for name in ("mmap-sweep", "munmap-sweep")} == {100.0}
    assert WORKLOADS["stream"].gap_ms == 0.0


# RAMspeed

RATES = {"write": 4, "read": 8, "copy": 1, "scale": 2, "add": 3, "triad": 6}


@pytest.mark.parametrize("name", ["ramspeed-int", "ramspeed-float", "ramspeed-sse", "ramspeed-sse-nt"])
def test_ramspeed_is_a_rate_a_part_and_the_mean_of_mem(name):
    slice_ = {part: (rate * MIB, 1_000_000) for part, rate in RATES.items()}
    figures = WORKLOADS[name].read_slice(slice_, cpu_ns=24_000_000)
    assert {part: figures[part] for part in RATES} == {part: pytest.approx(rate * 1e3) for part, rate in RATES.items()}
    assert figures["mem"] == pytest.approx(3000)
    assert figures["cpu-cost"] == pytest.approx(1_000_000)
    assert WORKLOADS[name].metrics[0].name == "mem"


@pytest.mark.parametrize("absent", RATES)
def test_ramspeed_without_a_part_is_no_figure(absent):
    slice_ = {part: (MIB, 1_000_000) for part in RATES if part != absent}
    with pytest.raises(ParseError, match=f"no '{absent}'"):
        WORKLOADS["ramspeed-int"].read_slice(slice_, cpu_ns=1)


def test_ramspeeds_arrays_fit_the_instance_or_are_refused():
    ramspeed = WORKLOADS["ramspeed-float"]
    params = ramspeed.profiles["full"]
    assert ramspeed.fitted(params, 256 * MIB) == params, "the least memory that an instance may have"
    with pytest.raises(HostError, match="97 MiB do not fit an instance of 100 MiB") as refused:
        ramspeed.fitted(params, 100 * MIB)
    assert "array_bytes" in refused.value.fix


def test_other_slices_are_taken_as_they_are():
    stream = WORKLOADS["stream"]
    assert stream.fitted(stream.profiles["quick"], 1) == stream.profiles["quick"]
