"""Footprints from the order to the file: a campaign's file that is there already, or a new one with nothing else."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tare.campaign import conduct, preflight
from tare.campaign.conduct import DEFAULT_MEMORY
from tare.campaign.ground import prepared, sole_campaign
from tare.campaign.plan import Job, Plan, make_jobs
from tare.campaign.preflight import Ready
from tare.errors import UsageError
from tare.footprint.counters import counter_of
from tare.footprint.model import Counter, Footprint, Level
from tare.footprint.record import footprints, keep, numbered_after
from tare.footprint.walk import NO_GROUP, Missed, Route, Skipped, Walk, Watcher, countable
from tare.image.build import Image
from tare.model import Resources
from tare.store.record import LeftOut
from tare.store.store import Store
from tare.workloads import registry as workloads
from tare.workloads.base import Params

#: As of Anjali, Caraza-Harter and Swift 2020, section 3.3: CPU, network, memory (mmap and munmap), writing of files.
WORKLOADS = ("sysbench-cpu", "iperf3-tcp", "munmap-sweep", "sysbench-fileio-seqwr")
#: The workloads' parameters. How often a call is made depends on how long a workload runs; which ones hardly does.
PROFILE = "quick"


@dataclass(frozen=True, slots=True)
class Order:
    """What the user asked for; empty and None mean the default."""

    platforms: Sequence[str] = ()
    workloads: Sequence[str] = ()
    level: Level = Level.SYSCALLS
    repeats: int = 3
    idle_s: float = 10.0
    seed: int | None = None
    cpus: tuple[int, ...] = ()
    memory_bytes: int = DEFAULT_MEMORY
    subnet: str | None = None
    params: Mapping[str, Params] = field(default_factory=dict)  # in place of the profile's, by workload

    def check(self) -> None:
        """Raise `UsageError` for what cannot be."""
        if self.repeats < 1:
            raise UsageError(f"{self.repeats} repeats cannot be counted", fix="give at least 1; 3 show what is stable")
        if self.idle_s < 0:
            raise UsageError("the idle host cannot be looked at for less than no time", fix="give --idle 10s, or 0")


#: What a walk brought, as it comes.
Told = Callable[[Footprint | Missed | LeftOut | Skipped], None]


def begin(order: Order, file: Path, watcher: Watcher, told: Told) -> None:
    """Count into ``file``, and tell everything once it is in there. What is in it by an interrupt stays.

    Raises `TareError`: `HostError` where this host does not let one count, with the fix.
    """
    order.check()
    chosen = conduct.platforms_for(order.platforms)
    jobs, skipped = _jobs(order)
    for workload in skipped:
        told(workload)
    counter = counter_of(order.level)
    with contextlib.ExitStack() as stack:
        there = stack.enter_context(Store.open(file)) if file.exists() else None
        stack.enter_context(sole_campaign())
        _try(counter, watcher)
        conduct.check_disk()
        image = conduct.image_for(jobs, watcher.doing)
        stack.callback(conduct.close_all, chosen)
        if there is not None:
            conduct.check_same(there.record, image)
        resources = _resources(order, there)
        found, missing = preflight.available(chosen, asked=(), progress=watcher.doing)
        nursery, client = stack.enter_context(prepared(image, resources, order.subnet))
        ready, broken = preflight.try_each(found, image, nursery, asked=(), progress=watcher.doing)
        route = _route(order, ready, jobs)
        left_out = [*missing, *broken]
        store = there or stack.enter_context(_new(file, route, ready, left_out, resources, image))
        for one in left_out:
            store.add_event("warning", f"no footprint of {one.platform}: {one.reason}")
            told(one)
        with _status(store, new=there is None):
            _walk(Walk(route, counter, nursery, client, watcher, partial(store.add_event, "warning")), store, told)


def _walk(walk: Walk, store: Store, told: Told) -> None:
    number = numbered_after(footprints(store))
    with contextlib.closing(walk.run()) as brought:
        for one in brought:
            if isinstance(one, Missed):
                store.add_event("warning", str(one))
                told(one)
            else:
                keep(store, further := number(one))
                told(further)


def _jobs(order: Order) -> tuple[tuple[Job, ...], list[Skipped]]:
    usable, skipped = countable(workloads.choose(order.workloads or WORKLOADS))
    return make_jobs(usable, PROFILE, order.params), skipped


def _try(counter: Counter, watcher: Watcher) -> None:
    """What this host does not let one count is said before anything is built or started."""
    watcher.doing(f"trying to count {counter.level.value}")
    try:
        counter.start(NO_GROUP)
    finally:
        counter.stop()


def _resources(order: Order, there: Store | None) -> Resources:
    """Those of the campaign that is there: its figures and its footprints are of the same instances."""
    if there is None:
        return conduct.resources_for(conduct.Order(cpus=order.cpus, memory_bytes=order.memory_bytes))
    return Resources(tuple(there.record.resources.cpus), there.record.resources.memory_bytes)


def _route(order: Order, ready: Sequence[Ready], jobs: tuple[Job, ...]) -> Route:
    seed = order.seed if order.seed is not None else secrets.randbelow(2**31)
    return Route(tuple(one.platform for one in ready), jobs, order.repeats, order.idle_s, seed)


def _new(
    file: Path, route: Route, ready: Sequence[Ready], left_out: Sequence[LeftOut], resources: Resources, image: Image
) -> Store:
    """A campaign of no blocks: it holds footprints alone."""
    plan = Plan(PROFILE, route.seed, route.platforms, route.jobs, resources, 0, None, replicas=1)
    return Store.create(file, conduct.record_of(plan, ready, image, left_out, (), None))


@contextlib.contextmanager
def _status(store: Store, *, new: bool) -> Iterator[None]:
    """How a new campaign stands; one that was there stands as it did."""
    if not new:
        yield
        return
    store.set_status("running")
    try:
        yield
    except BaseException:
        store.set_status("interrupted")
        raise
    store.set_status("complete")
