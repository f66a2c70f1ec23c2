"""Workloads whose trials start instances of their own: what they plan, and how they read what came."""

import dataclasses

import pytest

from tare.errors import HostError, ParseError
from tare.model import Direction, Family
from tare.workloads import workload_registry
from tare.workloads.apart import (
    Attempt,
    BesideWorkload,
    DensityWorkload,
    FillWorkload,
    ImageSizes,
    MemoryReading,
    ProbeDensity,
    RunDensity,
)
from tare.workloads.base import MemoryUsage, Outcome, Side, SliceWorkload, Surroundings
from workloads.captures import captured

MIB = 2**20
DENSITY = [workload for workload in workload_registry.all_workloads().values() if isinstance(workload, DensityWorkload)]
COUNTED = [workload for workload in DENSITY if workload.name != "density-memory"]
#: Slices of one length are all that they have: the CPU cost is the instances' own.
LONG = SliceWorkload.long_keys
AROUND = Surroundings(2**30, 1, 2**30, "192.0.2.3", 20107, 5201)


def test_the_family_density_has_what_is_asked_of_several_instances():
    names = [
        workload.name for workload in workload_registry.all_workloads().values() if workload.family is Family.DENSITY
    ]
    assert [name for name in names if "-beside-" not in name] == [
        "capacity",
        "density-llc",
        "density-memory",
        "density-network",
        "density-primes",
        "density-start",
        "density-stream",
    ]
    assert all(
        isinstance(workload_registry.get(name), DensityWorkload | BesideWorkload | FillWorkload) for name in names
    )


@pytest.mark.parametrize(
    ("most", "counts"), [(1, (1,)), (2, (1, 2)), (4, (1, 2, 4)), (7, (1, 2, 4)), (8, (1, 2, 4, 8))]
)
def test_the_numbers_double_up_to_the_most(most, counts):
    assert workload_registry.get("density-primes").counts({"most": most}) == counts


@pytest.mark.parametrize("workload", DENSITY, ids=lambda workload: workload.name)
def test_the_headline_is_among_what_both_profiles_give(workload):
    for params in workload.profiles.values():
        counts = workload.counts(params)
        assert counts[-1] == params["most"] >= 4


@pytest.mark.parametrize("workload", COUNTED, ids=lambda workload: workload.name)
def test_all_figures_are_metrics(workload):
    names = [metric.name for metric in workload.metrics]
    assert names[0] == "total-4"
    figures = {name for count in workload.COUNTS for name in workload.figures(count, [1.0] * count)}
    assert figures == set(names)


def test_each_is_the_mean_and_the_total_the_sum_or_what_was_seen_of_all():
    workload = workload_registry.get("density-primes")
    assert workload.figures(1, [5.0]) == {"each-1": 5.0}
    assert workload.figures(2, [1.0, 3.0]) == {"each-2": 2.0, "total-2": 4.0}
    assert workload_registry.get("density-start").figures(2, [10.0, 12.0], 13.0) == {"each-2": 11.0, "total-2": 13.0}


@pytest.mark.parametrize("each", [[], [1.0], [1.0, 0.0], [1.0, -2.0], [1.0, 1.0, 1.0]])
def test_an_instance_without_a_figure_is_no_figure(each):
    with pytest.raises(ParseError, match="2 instances at once gave"):
        workload_registry.get("density-primes").figures(2, each)


@pytest.mark.parametrize(
    "workload",
    [workload for workload in DENSITY if isinstance(workload, ProbeDensity | RunDensity)],
    ids=lambda workload: workload.name,
)
def test_what_runs_in_all_is_another_workload_with_its_own_parameters(workload):
    for params in workload.profiles.values():
        inner = workload.inner_params(params)
        assert set(params) - set(inner) == {"most"}
        assert set(inner) == set(workload.inner.profiles["quick"]) - LONG
        assert workload.metric in {metric.name for metric in workload.inner.metrics}
        assert workload.work_unit == workload.inner.work_unit
    assert workload.all_metrics[-1].name == "cpu-cost"
    assert workload.metrics[0].direction is Direction.HIGHER


def test_the_arrays_of_all_instances_fit_an_instance_each_of_a_gibibyte():
    for params in workload_registry.get("density-stream").profiles.values():
        assert 3 * params["array_bytes"] < 0.8 * 2**30


def test_density_network_is_one_stream_to_the_instance():
    workload = workload_registry.get("density-network")
    params = workload.inner_params(workload.profiles["quick"])
    plan = workload.inner.plan(params, AROUND)
    assert [" ".join(server.argv) for server in plan.servers] == ["iperf3 -s --forceflush -B 0.0.0.0 -p 5201"]
    [forth] = plan.measures
    assert forth.side is Side.CLIENT
    assert " ".join(forth.argv) == "iperf3 -c 192.0.2.3 -p 20107 -J -t 1 -O 0 --connect-timeout 5000"


def test_density_network_reads_the_receivers_figure_as_iperf3_tcp_does():
    workload, whole = workload_registry.get("density-network"), workload_registry.get("iperf3-tcp")
    params = workload.inner_params(workload.profiles["quick"])
    outcome = workload.inner.parse(params, [captured("iperf3-to")])
    both_ways = whole.parse(params, [captured("iperf3-to"), captured("iperf3-from")])
    assert outcome.samples == {"to-instance": both_ways.samples["to-instance"]}
    assert 0 < outcome.work < both_ways.work


@pytest.mark.parametrize("captures", [[], ["iperf3-to", "iperf3-to"], ["iperf3-from"], ["iperf3-busy"]])
def test_density_network_refuses_another_test_and_a_wrong_number(captures):
    workload = workload_registry.get("density-network")
    with pytest.raises(ParseError):
        workload.inner.parse(
            workload.inner_params(workload.profiles["quick"]), [captured(capture) for capture in captures]
        )


def test_density_network_without_a_network_names_itself():
    workload = workload_registry.get("density-network")
    with pytest.raises(HostError) as refused:
        workload.inner.plan(workload.profiles["quick"], dataclasses.replace(AROUND, address=None))
    assert refused.value.fix == "leave out density-network on this platform"


def _reading(count, pss, group, available):
    return MemoryReading((MemoryUsage(7 * MIB, group * MIB, pss * MIB, 1000 * MIB),) * count, available * MIB)


def test_one_more_instance_is_the_growth_from_one_to_the_most_and_its_own_group():
    workload = workload_registry.get("density-memory")
    assert [workload.counts({"most": most}) for most in (1, 2, 8)] == [(1,), (1, 2), (1, 8)]
    most = _reading(4, 11, 41, 810)
    gave_back = dataclasses.replace(most.usages[0], group=1 * MIB)
    readings = [_reading(1, 20, 50, 900), dataclasses.replace(most, usages=(gave_back, *most.usages[1:]))]
    figures = workload.measure_memory(960 * MIB, readings)
    assert figures == {
        "further-own": 7, "further-pss": 8, "further-group": 41, "further-available": 30,
        "first-own": 7, "first-pss": 20, "first-group": 50, "first-available": 60,
    }  # fmt: skip
    assert list(figures) == [metric.name for metric in workload_registry.get("density-memory").metrics]


@pytest.mark.parametrize(
    ("readings", "why"),
    [
        ([_reading(1, 20, 50, 900)], "1 instances do not tell"),
        ([_reading(1, 0, 50, 900), _reading(2, 20, 50, 900)], "uses no memory"),
        ([_reading(1, 5, 50, 900), _reading(2, 20, 0, 900)], "uses no memory"),
    ],
)
def test_memory_that_was_not_seen_is_no_figure(readings, why):
    with pytest.raises(ParseError, match=why):
        workload_registry.get("density-memory").measure_memory(960 * MIB, readings)


def test_the_size_of_an_image_is_in_mebibytes():
    workload = workload_registry.get("image-size")
    assert workload.read(ImageSizes(3 * MIB, 2 * MIB)) == {"disk": 3, "unpacked": 2}
    assert workload.read(ImageSizes(3 * MIB, None)) == {"disk": 3}, "what runs is not the image"
    with pytest.raises(ParseError, match="disk of the image is 0"):
        workload.read(ImageSizes(0, 1))
    with pytest.raises(ParseError, match="unpacked of the image is 0"):
        workload.read(ImageSizes(1, 0))


@pytest.mark.parametrize(("rate", "enough"), [(100.0, True), (95.0, True), (94.9, False), (200.0, True), (None, False)])
@pytest.mark.parametrize("name", ["memory-least", "memory-least-stream"])
def test_memory_is_enough_when_less_than_a_twentieth_of_the_rate_is_lost(name, rate, enough):
    workload = workload_registry.get(name)
    for params in workload.profiles.values():
        assert workload.suffices(params, Attempt(2**30, 100.0), Attempt(64 * MIB, rate, "lost")) is enough
        assert set(workload.inner_params(params)) == set(workload.inner.profiles["quick"]) - LONG
        assert params["tries"] > 1
    assert workload.read(72 * MIB) == {"limit": 72}


def test_a_cold_start_is_read_as_a_warm_one():
    cold, warm = workload_registry.get("startup-cold"), workload_registry.get("startup")
    assert cold.metrics == warm.metrics
    assert cold.cold
    assert not warm.cold
    assert not cold.by_default


NEIGHBOURS = [
    workload for workload in workload_registry.all_workloads().values() if isinstance(workload, BesideWorkload)
]


@pytest.mark.parametrize("workload", NEIGHBOURS, ids=lambda workload: workload.name)
def test_a_neighbour_goes_on_for_longer_than_any_run_beside_it(workload):
    kept, noisy = workload.name.split("-beside-")
    assert workload.inner.name == kept
    assert {workload.rate, workload.latency} <= {metric.name for metric in workload.inner.metrics}
    server, *client = workload.noise(dataclasses.replace(AROUND, cpu_count=2, listen="192.0.2.1"))
    words = " ".join(server.argv)
    if noisy == "network":
        assert words == "iperf3 -s --forceflush -B 192.0.2.1 -p 5201"
        assert [(command.side, command.argv[:6]) for command in client] == [
            (Side.CLIENT, ("iperf3", "-c", "192.0.2.3", "-p", "20107", "-t"))
        ]
    else:
        assert client == []
        assert words.startswith("/usr/local/bin/tare-agent run --ready output -- stress-ng --timeout 3600 --")
        assert " 4" in words, "two for each CPU"
    for params in workload.profiles.values():
        assert workload.inner_params(params).keys() == workload.inner.profiles["quick"].keys()


def test_who_reads_figures_of_another_workload_has_its_revision():
    readers = [workload for workload in workload_registry.all_workloads().values() if hasattr(workload, "inner")]
    assert {"redis-beside-cpu", "site-split"} <= {workload.name for workload in readers}
    assert [workload.name for workload in readers if workload.revision < workload.inner.revision] == []


def test_what_is_kept_is_the_rate_beside_of_that_alone():
    workload = workload_registry.get("redis-beside-cpu")
    figures = workload.figures(*(Outcome({"get": rate, "get-p99": ms}, 1) for rate, ms in ((200.0, 2.0), (50.0, 5.0))))
    assert figures == {"kept": 25.0, "alone": 200.0, "beside": 50.0, "latency": 250.0}
    assert set(figures) == {metric.name for metric in workload.all_metrics}
    with pytest.raises(ParseError, match="alone and beside a neighbour there were"):
        workload.figures(*(Outcome({"get": rate, "get-p99": 1.0}, 1) for rate in (200.0, 0.0)))
