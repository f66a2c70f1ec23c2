"""One trial of an application as several instances of a platform (`tare.workloads.apart.SplitWorkload`)."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence

from tare.campaign.execution.circumstances import total_ns
from tare.campaign.execution.density import ApartResult
from tare.campaign.execution.runs import in_service, outputs_of, planned, surroundings
from tare.campaign.execution.slices import spent
from tare.campaign.instances.client import LoadClient
from tare.campaign.instances.launcher import RunningInstance
from tare.campaign.instances.pool import InstancePool
from tare.workloads.apart import SplitWorkload
from tare.workloads.base import Params


def split(workload: SplitWorkload, params: Params, pool: InstancePool, client: LoadClient) -> ApartResult:
    """Start an instance for each part, connect them, and run what is measured against the last one.

    Raises `HostError` where instances of this platform cannot reach each other, and what `runs.run_trial` raises.
    """
    members = pool.grow(len(workload.parts))
    plans = workload.plans(params, [surroundings(member, client) for member in members])
    *behind, front = members
    ids = [member.instance.spec.id for member in members]
    with pool.launcher.network.joined(ids), contextlib.ExitStack() as services:
        for plan, member in zip(plans[:-1], behind, strict=True):
            services.enter_context(in_service(workload.inner, plan, member, client))
        run = services.enter_context(planned(workload.inner, params, plans[-1], front, client))
        began: list[int | None] = []
        ended: list[int | None] = []
        measured = run(lambda: began.extend(_cpu_ns(behind)), lambda: ended.extend(_cpu_ns(behind)))
        used = [measured.cpu_ns, *(spent(*times) for times in zip(began, ended, strict=True))]
    whole = dataclasses.replace(measured, cpu_ns=total_ns(used))
    figures = (*whole.samples, *whole.costs)
    return ApartResult(figures, outputs_of(whole.results), whole.cpu_ns, whole.daemon_cpu_ns, whole.clock)


def _cpu_ns(members: Sequence[RunningInstance]) -> list[int | None]:
    return [member.cpu_ns() for member in members]
