"""Trials of instances that live by their platform's own commands: each operation is timed from outside."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tare.campaign.execution.density import ApartResult
from tare.campaign.execution.living import Living, RefusedError, living
from tare.campaign.instances.pool import InstancePool
from tare.host.kernel import parentage
from tare.model import FAILURES, NOT_SEEN
from tare.workloads.apart import LifeWorkload, Operation, OperationStep, Round
from tare.workloads.base import Outcome, Params


def live(workload: LifeWorkload, params: Params, pool: InstancePool) -> ApartResult:
    """Run one trial. Raises `UnsupportedError`, `HostError`, `PlatformError`, and what the workload's ``read`` does."""
    refused: list[RefusedError] = []
    with parentage.adopting():
        rounds = _rounds(workload, params, pool, refused)
    if len(refused) == len(rounds):
        raise refused[-1]
    return result_of(workload.read(rounds), [str(error) for error in refused])


def result_of(outcome: Outcome, failures: Sequence[str] = ()) -> ApartResult:
    """Return the figures, why some are missing, and why starts, copies or pauses failed."""
    unseen = "\n".join(f"{metric}: {reason}" for metric, reason in outcome.unseen.items())
    reasons = "\n".join(" ".join(reason.split()) for reason in failures)
    outputs = {name: text.encode() for name, text in ((NOT_SEEN, unseen), (FAILURES, reasons)) if text}
    return ApartResult(tuple(outcome.as_samples()), outputs)


def _rounds(workload: LifeWorkload, params: Params, pool: InstancePool, refused: list[RefusedError]) -> list[Round]:
    """Return the rounds of a trial; ``refused`` gets the refusals that ended some."""
    rounds: list[Round] = []
    began, time_s = time.monotonic(), float(params["time_s"])
    if workload.before:
        with living(pool, workload.payload) as instance:
            for operation in workload.before:
                instance.do(operation)
            while not rounds or time.monotonic() - began < time_s:
                rounds.append(_round(instance, workload, refused))
    else:
        while not rounds or time.monotonic() - began < time_s:
            with living(pool, workload.payload) as instance:
                rounds.append(_round(instance, workload, refused))
    return rounds


def _round(instance: Living, workload: LifeWorkload, refused: list[RefusedError]) -> Round:
    """Operations in turn; the whole begins with the instance where it begins with that."""
    if workload.each[0] is not Operation.CREATE:
        instance.begin_anew()
    steps: dict[Operation | None, OperationStep] = {}
    for operation in workload.each:
        try:
            steps[operation] = instance.do(operation)
        except RefusedError as error:
            if operation not in workload.may_fail:
                raise
            refused.append(error)
            break
    return {**steps, None: OperationStep(instance.lived_ns(), sum(step.cpu_ns for step in steps.values()))}
