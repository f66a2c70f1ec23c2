"""Trials with several instances of a platform at once (`tare.workloads.apart` says what each is to tell)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tare.campaign.execution.gate import Gate, at_once
from tare.campaign.execution.runs import Client, Measured, outputs_of, run_trial
from tare.campaign.execution.slices import Sliced, run_slices
from tare.campaign.instances.launcher import RunningInstance
from tare.campaign.instances.pool import InstancePool
from tare.campaign.plan.schedule import Stage
from tare.errors import ParseError
from tare.host import counters
from tare.model import CPU_COST, Arm, Mode, Sample
from tare.workloads.apart import Load, ProbeDensity, RunDensity, StartDensity, WeightDensity
from tare.workloads.base import Params, SliceWorkload

#: An agent that has just answered is still tidying up; its guest's kernel too.
SETTLE_S = 0.3


@dataclass(frozen=True, slots=True)
class ApartResult:
    """What a trial gave."""

    samples: tuple[Sample, ...]
    outputs: Mapping[str, bytes] = field(default_factory=dict)
    cpu_ns: int | None = None
    daemon_cpu_ns: int | None = None


def probes(workload: ProbeDensity, params: Params, pool: InstancePool) -> ApartResult:
    """Grow step by step, and let the probe work in all that there are."""
    inner = workload.inner_params(params)
    samples: list[Sample] = []
    slices: list[Sliced] = []
    for count in workload.counts(params):
        slices = sliced_at_once(workload.inner, inner, pool.platform.name, pool.grow(count))
        for number, rates in sorted(by_round(slices, workload.metric).items()):
            samples += _samples(workload.figures(count, rates), number)
    own, shared = _sum([sliced.cpu_ns for sliced in slices]), _most([sliced.daemon_cpu_ns for sliced in slices])
    return ApartResult((*samples, *_cost(own, sum(sliced.work for sliced in slices))), cpu_ns=own, daemon_cpu_ns=shared)


def sliced_at_once(
    inner: SliceWorkload, params: Params, name: str, running_instances: Sequence[RunningInstance]
) -> list[Sliced]:
    """The slices of each of some instances, all at the same instants. Raises what any of them failed for."""
    members = {Arm(name, number): running for number, running in enumerate(running_instances)}
    order = tuple(members)
    rounds = (order,) * int(params["rounds"])
    stage = Stage(inner.name, Mode.SLICES, order, rounds, at_once=True, own_cpus=False)
    sliced = run_slices(inner, params, stage, members)
    errors = [result.error for result in sliced.values() if result.error is not None]
    # When one is lost the others have no slices, and say just that.
    for error in sorted(errors, key=lambda error: isinstance(error, ParseError)):
        raise error
    return [sliced[arm] for arm in order]


def by_round(slices: Sequence[Sliced], metric: str) -> dict[int, list[float]]:
    """A figure of every instance by round, of the rounds in which all have it. Raises `ParseError` without any."""
    values_of: dict[int, list[float]] = {}
    for sliced in slices:
        for sample in sliced.samples:
            if sample.metric == metric:
                values_of.setdefault(sample.round, []).append(sample.value)
    whole = {number: values for number, values in values_of.items() if len(values) == len(slices)}
    if not whole:
        raise ParseError(f"in none of the rounds did all {len(slices)} instances work at once")
    return whole


def runs(workload: RunDensity, params: Params, pool: InstancePool, client: Client) -> ApartResult:
    """Grow step by step, and run the commands of all that there are, begun at one instant."""
    inner = workload.inner_params(params)
    samples: list[Sample] = []
    outputs: dict[str, bytes] = {}
    measured: Sequence[Measured] = ()
    for count in workload.counts(params):
        running_instances = pool.grow(count)

        def run_one(
            number: int, gate: Gate, running_instances: Sequence[RunningInstance] = running_instances
        ) -> Measured:
            return run_trial(workload.inner, inner, running_instances[number], client, gate.wait)

        measured = at_once(count, run_one)
        each = [done.outcome.samples[workload.metric] for done in measured]
        samples += _samples(workload.figures(count, each))
        for number, done in enumerate(measured):
            outputs |= {f"{count} {number} {name}": printed for name, printed in outputs_of(done.results).items()}
    own, shared = _sum([done.cpu_ns for done in measured]), _most([done.daemon_cpu_ns for done in measured])
    cost = _cost(own, sum(done.outcome.work for done in measured))
    return ApartResult((*samples, *cost), outputs, own, shared)


def starts(workload: StartDensity, params: Params, pool: InstancePool) -> ApartResult:
    """Start 1, 2, 4 ... anew, each number at one instant: the time of each, and from that instant to the last."""
    samples: list[Sample] = []
    for count in workload.counts(params):
        pool.clear()
        running_instances = pool.grow_at_once(count)
        began = [running.instance.started.monotonic_ns for running in running_instances]
        ended = [begun + running.command_ns for begun, running in zip(began, running_instances, strict=True)]
        each = [running.command_ns / 1e6 for running in running_instances]
        samples += _samples(workload.figures(count, each, (max(ended) - min(began)) / 1e6))
    return ApartResult(tuple(samples))


def weights(workload: WeightDensity, params: Params, pool: InstancePool) -> ApartResult:
    """Grow step by step, and weigh all that there are."""
    before = counters.memory().available
    loads = []
    for count in workload.counts(params):
        running_instances = pool.grow(count)
        time.sleep(SETTLE_S)
        loads.append(
            Load(tuple(running.measure_memory() for running in running_instances), counters.memory().available)
        )
    return ApartResult(_samples(workload.measure_memory(before, loads)))


def _samples(figures: Mapping[str, float], number: int = 0) -> tuple[Sample, ...]:
    return tuple(Sample(name, value, number) for name, value in figures.items())


def _cost(cpu_ns: int | None, work: float) -> tuple[Sample, ...]:
    return (Sample(CPU_COST, cpu_ns / work),) if cpu_ns is not None and work > 0 else ()


def _sum(times: Sequence[int | None]) -> int | None:
    """Of instances; None when it is not known of one."""
    known = [time for time in times if time is not None]
    return sum(known) if len(known) == len(times) else None


def _most(times: Sequence[int | None]) -> int | None:
    """Of daemons that all share: who looked longest saw all that they did."""
    return max((time for time in times if time is not None), default=None)
