"""The restart of an engine beside running instances (`RestartWorkload`)."""

from __future__ import annotations

import contextlib
import time

from tare.campaign.execution.burst_trial import START
from tare.campaign.execution.density import ApartResult
from tare.campaign.execution.life import result_of
from tare.campaign.execution.living import Living, living
from tare.campaign.instances.pool import InstancePool
from tare.errors import Failed, attempt
from tare.host.kernel import parentage
from tare.workloads.apart import Operation, Restart, RestartWorkload
from tare.workloads.base import Params


def restarted(workload: RestartWorkload, params: Params, pool: InstancePool) -> ApartResult:
    """Run one trial. Raises `UnsupportedError`, `HostError`, `PlatformError`."""
    with parentage.adopting(), contextlib.ExitStack() as ends:

        def placed() -> Living:
            return ends.enter_context(living(pool, workload.payload))

        running = [placed() for _ in range(int(params["running"]))]
        for instance in running:
            for operation in START:
                instance.do(operation)
        fresh = placed()
        began = time.monotonic_ns()
        pool.platform.restart_engine()
        answers_ns = time.monotonic_ns() - began
        for operation in START:
            fresh.carry_out(operation)
        wall_ns = time.monotonic_ns() - began
        lost = [attempt(lambda instance=instance: instance.do(Operation.EXECUTE)) for instance in running]  # type: ignore[misc]
        survivors = sum(not isinstance(answer, Failed) for answer in lost)
        return result_of(workload.read(Restart(wall_ns, answers_ns, len(running), survivors)))
