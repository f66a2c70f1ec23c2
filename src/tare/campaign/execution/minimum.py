"""The least memory limit with which the work goes on, found by bisection: a fresh instance for every try."""

from __future__ import annotations

import time
from collections.abc import Callable

from tare.campaign.execution.density import ApartResult, sliced_at_once
from tare.campaign.instances.launcher import Terms
from tare.campaign.instances.pool import InstancePool
from tare.errors import TareError
from tare.model import Sample
from tare.timeouts import stretched
from tare.workloads.apart import Attempt, LeastWorkload
from tare.workloads.base import Params

#: What the campaign's limit gives is the middle one of so many instances: one of them may be lucky.
WHOLE = 3
#: A start with too little memory may hang instead of failing: it has so many times what a whole one took, and this.
PATIENCE, MIN_LIMIT_S = 4.0, 5.0


def least(suffices: Callable[[int], bool], enough: int) -> int:
    """The smallest number from 1 on that suffices, when ``enough`` does, and more than one that does does too."""
    too_little = 0
    while enough - too_little > 1:
        middle = (enough + too_little) // 2
        if suffices(middle):
            enough = middle
        else:
            too_little = middle
    return enough


def least_memory(workload: LeastWorkload, params: Params, pool: InstancePool) -> ApartResult:
    """Try the campaign's limit, which must do, and search below it. All tries are in the outputs."""
    began = time.monotonic()
    limit = pool.launcher.resources.memory_bytes
    tries = [_try(workload, params, pool, Terms(memory_bytes=limit)) for _ in range(WHOLE)]
    usual_s = (time.monotonic() - began) / WHOLE / stretched(1.0)  # as it would be on a usual machine
    limit_s = MIN_LIMIT_S + PATIENCE * usual_s
    whole = sorted(tries, key=lambda tried: tried.rate or 0.0)[WHOLE // 2]

    def suffices(steps: int) -> bool:
        terms = Terms(memory_bytes=steps * workload.step_bytes, start_limit_s=limit_s)
        for _ in range(int(params["tries"])):
            tries.append(_answer(workload, params, pool, terms))
            if workload.suffices(params, whole, tries[-1]):
                return True
            if tries[-1].rate is None:  # which is no bad luck
                return False
        return False

    steps = least(suffices, limit // workload.step_bytes)
    figures = workload.read(steps * workload.step_bytes)
    samples = tuple(Sample(name, value) for name, value in figures.items())
    return ApartResult(samples, {"tries": "\n".join(map(_shown, tries)).encode()})


def _answer(workload: LeastWorkload, params: Params, pool: InstancePool, terms: Terms) -> Attempt:
    """A try that may fail."""
    try:
        return _try(workload, params, pool, terms)
    except TareError as error:
        return Attempt(terms.memory_bytes or 0, None, str(error))


def _try(workload: LeastWorkload, params: Params, pool: InstancePool, terms: Terms) -> Attempt:
    """Raises `TareError` when the instance does not start, or does not work."""
    try:
        running_instances = pool.grow(1, terms)
        [sliced] = sliced_at_once(workload.inner, workload.inner_params(params), pool.platform.name, running_instances)
    finally:
        pool.clear()
    # Neighbours only make slower: the best round is what the instance can do.
    rate = max(sample.value for sample in sliced.samples if sample.metric == workload.metric)
    return Attempt(terms.memory_bytes or 0, rate)


def _shown(tried: Attempt) -> str:
    return f"{tried.limit_bytes >> 20} MiB: {tried.reason if tried.rate is None else f'{tried.rate:.6g} a second'}"
