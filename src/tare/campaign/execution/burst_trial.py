"""Bursts of starts by the platform's own commands (`BurstWorkload`).

All commands wait inside their control groups before the first start is issued: nothing of tare's own is started
meanwhile, but for commands that name a process of the instance's.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from tare.campaign.execution.density import ApartResult
from tare.campaign.execution.life import result_of
from tare.campaign.execution.living import Living
from tare.campaign.instances.gate import Gate, at_once
from tare.campaign.instances.launcher import StartOptions
from tare.campaign.instances.pool import InstancePool
from tare.errors import Failed, HostError, attempt
from tare.host.facts import counters
from tare.host.kernel import parentage
from tare.workloads.apart import Burst, BurstStart, BurstWorkload, Operation
from tare.workloads.base import Params

#: A start, from its issue on.
START = (Operation.CREATE, Operation.START, Operation.EXECUTE)
#: Number of instances that are removed at a time.
AT_ONCE = 4


def burst(workload: BurstWorkload, params: Params, pool: InstancePool) -> ApartResult:
    """Run one trial. Raises `UnsupportedError`, and `HostError` where this host's memory does not hold the burst."""
    terms = StartOptions(memory_bytes=int(params["memory_mib"]) << 20)
    require_fits(max(workload.sizes(params)), terms, pool)
    bursts = list[Burst]()
    time_s, began = float(params.get("time_s", math.inf)), time.monotonic()
    with parentage.adopting():
        for count in workload.sizes(params):
            larger = bool(bursts) and count > len(bursts[-1].starts)
            if larger and time.monotonic() - began > time_s:
                break
            with placed(count, workload.payload, terms, pool) as instances:
                bursts.append(start_all(instances, workload.gap_s(params)))
    outcome = workload.read(bursts)
    untried = {f"-{count}" for count in workload.sizes(params)} - {f"-{len(burst.starts)}" for burst in bursts}
    beyond = {
        metric.name: f"beyond {time_s:g} s"
        for metric in workload.metrics
        if any(metric.name.endswith(size) for size in untried)
    }
    return result_of(replace(outcome, unseen={**outcome.unseen, **beyond}), reasons_of(bursts))


def reasons_of(bursts: Iterable[Burst]) -> list[str]:
    """Return why starts failed."""
    return [start.reason for burst in bursts for start in burst.starts if start.reason]


@contextlib.contextmanager
def placed(count: int, payload: Sequence[str], terms: StartOptions, pool: InstancePool) -> Iterator[list[Living]]:
    """Instances to be, with commands that wait for their time; nothing is left of them at the end."""
    instances: list[Living] = []
    try:
        for _ in range(count):
            instances.append(Living.placed(pool.platform, pool.launcher, payload, terms))
            instances[-1].hold(*START)
        yield instances
    finally:
        end_all(instances, pool)


def end_all(instances: Iterable[Living], pool: InstancePool) -> None:
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for ended in threads.map(lambda instance: attempt(instance.end), instances):
            if isinstance(ended, Failed):
                pool.warn(ended)


def start_all(instances: Sequence[Living], gap_s: float = 0.0) -> Burst:
    """Start them all; a start that fails is a figure."""
    before = _cpu_ns(instances)
    issued: list[int] = []

    def start(number: int, gate: Gate) -> tuple[BurstStart, int]:
        gate.wait()
        issued.append(time.monotonic_ns())  # the first to come through gives the instant of all
        due = issued[0] + int(number * gap_s * 1e9)
        time.sleep(max(0, due - time.monotonic_ns()) / 1e9)
        failed = attempt(lambda: _start(instances[number]))
        ended = time.monotonic_ns()
        return BurstStart(None, failed.reason) if isinstance(failed, Failed) else BurstStart(ended - due), ended

    done = at_once(len(instances), start)
    total_ns = max(ended for _, ended in done) - min(issued)
    cpu_ns = _cpu_ns(instances) - before
    for instance, (begun, _) in zip(instances, done, strict=True):
        if not begun.reason and instance.life.settle is not None:
            instance.life.settle()
    return Burst(tuple(begun for begun, _ in done), total_ns, cpu_ns)


def _start(instance: Living) -> None:
    for operation in START:
        instance.carry_out(operation)


def _cpu_ns(instances: Sequence[Living]) -> int:
    """CPU time of all, with their daemons', which they share."""
    own = sum(instance.spec.group.cpu_ns() for instance in instances)
    return own + sum(daemon.cpu_ns() for daemon in instances[0].life.daemons)


def require_fits(count: int, terms: StartOptions, pool: InstancePool) -> None:
    limit = (terms.memory_bytes or 0) + pool.platform.monitor_bytes
    available = counters.memory().available
    if 0 < available < count * limit:
        raise HostError(
            f"{count} instances of {limit >> 20} MiB may take more than the {available >> 20} MiB that there are",
            fix="free memory, or --profile quick, which starts fewer at once",
        )
