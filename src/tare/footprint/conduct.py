"""Footprints from the order to the file."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tare.campaign.plan import Job, make_jobs
from tare.footprint.counters import counter_of
from tare.footprint.model import Counter, Footprint
from tare.footprint.order import WORKLOADS, Order
from tare.footprint.record import numbered_after
from tare.footprint.site import PROFILE, Wish, opened
from tare.footprint.walk import NO_GROUP, Missed, Route, Skipped, Walk, Watcher, countable
from tare.store import LeftOut, Store
from tare.workloads import registry as workloads

#: What a walk brought, as it comes.
Told = Callable[[Footprint | Missed | LeftOut | Skipped], None]


def begin(order: Order, file: Path, watcher: Watcher, told: Told) -> None:
    """Count into ``file``, and tell everything once it is in there. What is in it by an interrupt stays.

    Raises `TareError`: `HostError` where this host does not let one count, with the fix.
    """
    order.check()
    jobs, skipped = _jobs(order)
    for workload in skipped:
        told(workload)
    counter = counter_of(order.level)
    wish = _wish(order, file, jobs)
    with opened(wish, watcher.doing, told, before=partial(_try, counter, watcher)) as site:
        route = Route(tuple(one.platform for one in site.ready), jobs, order.repeats, order.idle_s, wish.seed)
        warn = partial(site.store.add_event, "warning")
        _walk(Walk(route, counter, site.nursery, site.client, watcher, warn), site.store, told)


def _walk(walk: Walk, store: Store, told: Told) -> None:
    number = numbered_after(store.footprints())
    with contextlib.closing(walk.run()) as brought:
        for one in brought:
            if isinstance(one, Missed):
                store.add_event("warning", str(one))
                told(one)
            else:
                store.add_footprint(further := number(one))
                told(further)


def _jobs(order: Order) -> tuple[tuple[Job, ...], list[Skipped]]:
    usable, skipped = countable(workloads.choose(order.workloads or WORKLOADS))
    return make_jobs(usable, PROFILE, order.params), skipped


def _wish(order: Order, file: Path, jobs: tuple[Job, ...]) -> Wish:
    seed = order.seed if order.seed is not None else secrets.randbelow(2**31)
    return Wish("footprint", file, seed, order.platforms, jobs, order.cpus, order.memory_bytes, order.subnet)


def _try(counter: Counter, watcher: Watcher) -> None:
    """What this host does not let one count is said before anything is built or started."""
    watcher.doing(f"trying to count {counter.level.value}")
    try:
        counter.start(NO_GROUP)
    finally:
        counter.stop()
