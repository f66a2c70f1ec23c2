"""Trials of instances that live by their platform's own commands: each operation is timed from outside."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tare.campaign.execution.density import ApartResult
from tare.campaign.execution.living import Living, living
from tare.campaign.instances.pool import InstancePool
from tare.host.kernel import parentage
from tare.model import NOT_SEEN
from tare.workloads.apart import LifeWorkload, Operation, OperationStep, Round
from tare.workloads.base import Outcome, Params


def live(workload: LifeWorkload, params: Params, pool: InstancePool) -> ApartResult:
    """Run one trial. Raises `UnsupportedError`, `HostError`, `PlatformError`, and what the workload's ``read`` does."""
    with parentage.adopting():
        return result_of(workload.read(_rounds(workload, params, pool)))


def result_of(outcome: Outcome) -> ApartResult:
    """Return the figures, and beside them why some are missing."""
    unseen = "\n".join(f"{metric}: {reason}" for metric, reason in outcome.unseen.items())
    return ApartResult(tuple(outcome.as_samples()), {NOT_SEEN: unseen.encode()} if unseen else {})


def _rounds(workload: LifeWorkload, params: Params, pool: InstancePool) -> list[Round]:
    rounds: list[Round] = []
    began, time_s = time.monotonic(), float(params["time_s"])
    if workload.before:
        with living(pool, workload.payload) as instance:
            for operation in workload.before:
                instance.do(operation)
            while not rounds or time.monotonic() - began < time_s:
                rounds.append(_round(instance, workload.each))
    else:
        while not rounds or time.monotonic() - began < time_s:
            with living(pool, workload.payload) as instance:
                rounds.append(_round(instance, workload.each))
    return rounds


def _round(instance: Living, operations: Sequence[Operation]) -> Round:
    """Operations in turn; the whole begins with the instance where it begins with that."""
    if operations[0] is not Operation.CREATE:
        instance.begin_anew()
    steps: dict[Operation | None, OperationStep] = {operation: instance.do(operation) for operation in operations}
    return {**steps, None: OperationStep(instance.lived_ns(), sum(step.cpu_ns for step in steps.values()))}
