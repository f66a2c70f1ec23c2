"""Execution of footprint requests on this host, which may be a lab."""

from __future__ import annotations

import contextlib
import secrets
from functools import partial
from pathlib import Path

from tare.campaign.plan.campaign_plan import WorkloadJob, make_jobs
from tare.features.kernel.counters.level_counters import counter_of
from tare.features.kernel.exchange.count_request import FootprintRequest, workloads_of
from tare.features.kernel.exchange.repeats import numbered_after
from tare.features.kernel.exchange.result import FootprintResult, Missed
from tare.features.kernel.execution.count_setup import PROFILE, SiteRequest, opened
from tare.features.kernel.execution.walk import NO_GROUP, Route, Walk, WalkWatcher, countable
from tare.footprint_model import Counter, Footprint
from tare.host.cgroup import path_of
from tare.model import Level
from tare.store import LeftOut, Store
from tare.workloads import workload_registry as workloads


def carry_out(request: FootprintRequest, file: Path, watcher: WalkWatcher, agreed: str = "") -> FootprintResult:
    """Store footprints in ``file``, each as soon as it is counted, so an interrupt keeps those counted before it.

    ``agreed``: see `tare.campaign.execution.provenance.require_added`. Raises `TareError`; `HostError`, with the fix,
    if this host does not allow counting.
    """
    request.check()
    usable, skipped = countable(workloads.choose(workloads_of(request)))
    jobs = make_jobs(usable, PROFILE, request.params)
    counter = counter_of(request.level)
    site_request = _site_request(request, file, jobs, agreed)
    left_out: list[LeftOut] = []
    warnings: list[str] = []
    with opened(site_request, watcher.doing, left_out.append, before=partial(_try, counter, watcher)) as site:

        def warn(text: str) -> None:
            site.store.add_event("warning", text)
            warnings.append(text)

        route = Route(
            tuple(ready.platform for ready in site.ready), jobs, request.repeats, request.idle_s, site_request.seed
        )
        counted, missed = _walk(Walk(route, counter, site.launcher, site.client, watcher, warn), site.store)
    return FootprintResult(
        footprints=tuple(counted),
        missed=tuple(missed),
        skipped=tuple(skipped),
        left_out=tuple(left_out),
        warnings=tuple(warnings),
    )


def _walk(walk: Walk, store: Store) -> tuple[list[Footprint], list[Missed]]:
    """Run the walk, and store each footprint as it is counted."""
    number = numbered_after(store.footprints())
    counted: list[Footprint] = []
    missed: list[Missed] = []
    with contextlib.closing(walk.run()) as outcomes:
        for outcome in outcomes:
            if isinstance(outcome, Missed):
                store.add_event("warning", str(outcome))
                missed.append(outcome)
            else:
                numbered = number(outcome)
                store.add_footprint(numbered)
                counted.append(numbered)
    return counted, missed


def _site_request(request: FootprintRequest, file: Path, jobs: tuple[WorkloadJob, ...], agreed: str) -> SiteRequest:
    seed = request.seed if request.seed is not None else secrets.randbelow(2**31)
    return SiteRequest(
        "footprint", file, seed, request.platforms, jobs, request.cpus, request.memory_bytes, request.subnet,
        # Emulation is slow, so engines import the agent alone: the image's size does not change what is counted.
        bare=request.level is Level.INSTRUCTIONS,
        agreed=agreed,
    )  # fmt: skip


def _try(counter: Counter, watcher: WalkWatcher) -> None:
    """Raise `HostError` before anything is built or started if this host does not allow counting."""
    watcher.doing(f"trying to count {counter.level.value}")
    try:
        counter.start(path_of(NO_GROUP))
    finally:
        counter.stop()
