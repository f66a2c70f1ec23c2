"""The least memory limit with which the work still runs, found by bisection with a fresh instance for every try."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial

from tare.campaign.execution.density import ApartResult, sliced_at_once
from tare.campaign.execution.slices import Sliced
from tare.campaign.instances.launcher import RunningInstance, StartOptions
from tare.campaign.instances.pool import InstancePool
from tare.errors import TareError, TooLateError
from tare.model import Sample
from tare.timeouts import stretched
from tare.workloads.apart import Attempt, LeastWorkload
from tare.workloads.base import Params

#: Newest tries whose median is the rate with the campaign's limit: one of them may be fast by chance.
WHOLE = 3
#: Times that an instance is asked again if its slices all came too late, which a busy host causes with any limit.
CHANCES = 5
#: A start with too little memory may hang instead of failing. Its time limit: a multiple of a usual try, and a time.
PATIENCE, MIN_LIMIT_S = 4.0, 5.0


def least(suffices: Callable[[int], bool], enough: int) -> int:
    """Return the smallest number, at least 1, that suffices.

    ``enough`` suffices, and so does every number above one that does (bisection).
    """
    too_little = 0
    while enough - too_little > 1:
        middle = (enough + too_little) // 2
        if suffices(middle):
            enough = middle
        else:
            too_little = middle
    return enough


def least_memory(workload: LeastWorkload, params: Params, pool: InstancePool) -> ApartResult:
    """Try the campaign's limit, which must suffice, and search below it. All tries are in the outputs.

    A machine that others share is faster in one minute and slower in the next. So each try that runs is followed by one
    with the campaign's limit, and is compared with the newest of these.
    """
    began = time.monotonic()
    limit = pool.launcher.resources.memory_bytes
    tries = [_try(workload, params, pool, StartOptions(memory_bytes=limit)) for _ in range(WHOLE)]
    usual_s = (time.monotonic() - began) / WHOLE / stretched(1.0)  # without the factor of a slow machine
    limit_s = MIN_LIMIT_S + PATIENCE * usual_s

    def suffices(steps: int) -> bool:
        terms = StartOptions(memory_bytes=steps * workload.step_bytes, start_limit_s=limit_s)
        for _ in range(int(params["tries"])):
            tried = _answer(workload, params, pool, terms)
            tries.append(tried)
            if tried.rate is None:  # it did not run at all, which is no chance
                return False
            tries.append(_try(workload, params, pool, StartOptions(memory_bytes=limit)))
            if workload.suffices(params, _usual(tries, limit), tried):
                return True
        return False

    steps = least(suffices, limit // workload.step_bytes)
    figures = workload.read(steps * workload.step_bytes)
    samples = tuple(Sample(name, value) for name, value in figures.items())
    return ApartResult(samples, {"tries": "\n".join(map(_shown, tries)).encode()})


def _usual(tries: list[Attempt], limit_bytes: int) -> Attempt:
    """Return the middle one of the newest tries with this limit."""
    newest = [tried for tried in tries if tried.limit_bytes == limit_bytes][-WHOLE:]
    return sorted(newest, key=lambda tried: tried.rate or 0.0)[WHOLE // 2]


def _answer(workload: LeastWorkload, params: Params, pool: InstancePool, terms: StartOptions) -> Attempt:
    """One try; its error is kept as its reason."""
    try:
        return _try(workload, params, pool, terms)
    except TareError as error:
        pool.add_kills(error)
        return Attempt(terms.memory_bytes or 0, None, str(error))
    finally:
        pool.clear()


def _try(workload: LeastWorkload, params: Params, pool: InstancePool, terms: StartOptions) -> Attempt:
    """One try. Raises `TareError` when the instance does not start, or its probe fails; it is in the pool then."""
    running_instances = pool.grow(1, terms)
    sliced = _sliced(workload, params, pool.platform.name, running_instances)
    pool.clear()
    # Neighbours can only slow an instance down: its best round is what it is capable of.
    rate = max(sample.value for sample in sliced.samples if sample.metric == workload.metric)
    return Attempt(terms.memory_bytes or 0, rate)


def _sliced(
    workload: LeastWorkload, params: Params, platform: str, running_instances: Sequence[RunningInstance]
) -> Sliced:
    slice_once = partial(sliced_at_once, workload.inner, workload.inner_params(params), platform, running_instances)
    for _ in range(CHANCES - 1):
        with contextlib.suppress(TooLateError):
            return slice_once()[0]
    return slice_once()[0]


def _shown(tried: Attempt) -> str:
    return f"{tried.limit_bytes >> 20} MiB: {tried.reason if tried.rate is None else f'{tried.rate:.6g} a second'}"
