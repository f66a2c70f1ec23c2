"""Trials with several instances of a platform at once (`tare.workloads.apart` has their metrics)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tare.campaign.execution.circumstances import total_ns
from tare.campaign.execution.runs import Measured, outputs_of, run_trial
from tare.campaign.execution.slices import Sliced, run_slices
from tare.campaign.instances import inside_clock
from tare.campaign.instances.client import LoadClient
from tare.campaign.instances.gate import Gate, at_once
from tare.campaign.instances.launcher import RunningInstance
from tare.campaign.instances.pool import InstancePool
from tare.campaign.plan.schedule import Stage
from tare.errors import ParseError
from tare.host import cgroup
from tare.host.facts import counters
from tare.model import CPU_COST, Arm, ClockFacts, Mode, Sample
from tare.workloads.apart import MemoryDensity, MemoryReading, ProbeDensity, RunDensity, StartDensity
from tare.workloads.base import Params, SliceWorkload


@dataclass(frozen=True, slots=True)
class ApartResult:
    """The result of a trial that starts its own instances. Times in ns; None where they could not be read."""

    samples: tuple[Sample, ...]
    outputs: Mapping[str, bytes] = field(default_factory=dict)
    cpu_ns: int | None = None
    daemon_cpu_ns: int | None = None
    clock: ClockFacts | None = None  # of the instance whose clock is off by most


def probes(workload: ProbeDensity, params: Params, pool: InstancePool) -> ApartResult:
    """Grow the pool step by step, and run the probe in all instances at once."""
    inner = workload.inner_params(params)
    samples: list[Sample] = []
    slices: list[Sliced] = []
    clock: ClockFacts | None = None
    for count in workload.counts(params):
        slices = sliced_at_once(workload.inner, inner, pool.platform.name, pool.grow(count))
        clock = inside_clock.most_off([clock, *(sliced.clock for sliced in slices)])
        for number, rates in sorted(by_round(slices, workload.metric).items()):
            samples += _samples(workload.figures(count, rates), number)
    cpu_ns = total_ns(sliced.cpu_ns for sliced in slices)
    daemon_cpu_ns = _most([sliced.daemon_cpu_ns for sliced in slices])
    cost = _cost(cpu_ns, sum(sliced.work for sliced in slices))
    return ApartResult((*samples, *cost), cpu_ns=cpu_ns, daemon_cpu_ns=daemon_cpu_ns, clock=clock)


def sliced_at_once(
    inner: SliceWorkload, params: Params, name: str, running_instances: Sequence[RunningInstance]
) -> list[Sliced]:
    """Run slices in all of these instances at the same instants; results by instance. Raises the first error."""
    members = {Arm(name, number): running for number, running in enumerate(running_instances)}
    order = tuple(members)
    rounds = (order,) * int(params["rounds"])
    stage = Stage(inner.name, Mode.SLICES, order, rounds, at_once=True, own_cpus=False)
    sliced = run_slices(inner, params, stage, members)
    errors = [result.error for result in sliced.values() if result.error is not None]
    # When one instance is lost the others have no slices: their `ParseError` is not the cause.
    for error in sorted(errors, key=lambda error: isinstance(error, ParseError)):
        raise error
    return [sliced[arm] for arm in order]


def by_round(slices: Sequence[Sliced], metric: str) -> dict[int, list[float]]:
    """Return a metric's values by round, one for each instance, of the rounds in which all instances have one.

    Raises `ParseError` where there is no such round.
    """
    values_of: dict[int, list[float]] = {}
    for sliced in slices:
        for sample in sliced.samples:
            if sample.metric == metric:
                values_of.setdefault(sample.round, []).append(sample.value)
    whole = {number: values for number, values in values_of.items() if len(values) == len(slices)}
    if not whole:
        raise ParseError(f"in none of the rounds did all {len(slices)} instances work at once")
    return whole


def runs(workload: RunDensity, params: Params, pool: InstancePool, client: LoadClient) -> ApartResult:
    """Grow the pool step by step, and run the commands in all instances, begun at one instant."""
    inner = workload.inner_params(params)
    samples: list[Sample] = []
    outputs: dict[str, bytes] = {}
    measured: Sequence[Measured] = ()
    clock: ClockFacts | None = None
    for count in workload.counts(params):
        running_instances = pool.grow(count)

        def run_one(
            number: int, gate: Gate, running_instances: Sequence[RunningInstance] = running_instances
        ) -> Measured:
            return run_trial(workload.inner, inner, running_instances[number], client, gate.wait)

        measured = at_once(count, run_one)
        clock = inside_clock.most_off([clock, *(done.clock for done in measured)])
        figures = [done.outcome.samples[workload.metric] for done in measured]
        samples += _samples(workload.figures(count, figures))
        for number, done in enumerate(measured):
            outputs |= {f"{count} {number} {name}": printed for name, printed in outputs_of(done.results).items()}
    cpu_ns, daemon_cpu_ns = total_ns(done.cpu_ns for done in measured), _most([done.daemon_cpu_ns for done in measured])
    cost = _cost(cpu_ns, sum(done.outcome.work for done in measured))
    return ApartResult((*samples, *cost), outputs, cpu_ns, daemon_cpu_ns, clock)


def starts(workload: StartDensity, params: Params, pool: InstancePool) -> ApartResult:
    """Start 1, 2, 4 ... new instances at one instant: each one's start-up time, and the time until the last is up."""
    samples: list[Sample] = []
    for count in workload.counts(params):
        pool.clear()
        running_instances = pool.grow_at_once(count)
        began = [running.instance.started.monotonic_ns for running in running_instances]
        ended = [begun + running.command_ns for begun, running in zip(began, running_instances, strict=True)]
        times_ms = [running.command_ns / 1e6 for running in running_instances]
        samples += _samples(workload.figures(count, times_ms, (max(ended) - min(began)) / 1e6))
    return ApartResult(tuple(samples))


def memory(workload: MemoryDensity, params: Params, pool: InstancePool) -> ApartResult:
    """Grow the pool step by step, and measure the memory of all instances once they are idle.

    A new agent and its guest's kernel still free memory for a moment, and the kernel adds up late.
    """
    before = counters.memory().available
    readings = []
    for count in workload.counts(params):
        running_instances = pool.grow(count)
        time.sleep(cgroup.COUNTED_S)
        usages = tuple(running.measure_memory(idle=True) for running in running_instances)
        readings.append(MemoryReading(usages, counters.memory().available))
    return ApartResult(_samples(workload.measure_memory(before, readings)))


def _samples(figures: Mapping[str, float], number: int = 0) -> tuple[Sample, ...]:
    return tuple(Sample(name, value, number) for name, value in figures.items())


def _cost(cpu_ns: int | None, work: float) -> tuple[Sample, ...]:
    return (Sample(CPU_COST, cpu_ns / work),) if cpu_ns is not None and work > 0 else ()


def _most(times: Sequence[int | None]) -> int | None:
    """Return the longest measurement of daemons that all instances share, which includes the others."""
    return max((time for time in times if time is not None), default=None)
