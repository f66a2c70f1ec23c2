"""What footprints and surfaces need: a host session, platforms that start in it, and the file to store them in.

The file is that of an existing campaign, whose image, CPUs and memory are then used, or a new one of no blocks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tare.campaign.execution import conduct, preflight, same, trust
from tare.campaign.execution.preflight import Prepared, Ready
from tare.campaign.host_session import HostSession
from tare.campaign.instances.client import Client
from tare.campaign.instances.launcher import InstanceLauncher
from tare.campaign.plan.plan import Job, Plan
from tare.campaign.plan.request import DEFAULT_MEMORY, CampaignRequest, check_resources
from tare.errors import Failed
from tare.host.facts import machine
from tare.image.build import Image
from tare.model import Progress, Resources
from tare.outputs import check_new_campaign
from tare.store import LeftOut, Store, create_store, exists, open_store
from tare.workloads import registry as workloads

#: The workloads' parameters. How often a call is made depends on how long a workload runs; which ones hardly does.
PROFILE = "quick"


@dataclass(frozen=True, slots=True)
class SiteRequest:
    """What a site is asked to have. Empty and None mean the default."""

    what: str  # the kind of result, for warnings: no WHAT of PLATFORM
    file: Path
    seed: int  # for a new file's record
    platforms: Sequence[str] = ()  # the baseline always takes part
    jobs: tuple[Job, ...] = ()
    cpus: tuple[int, ...] = ()
    memory_bytes: int = DEFAULT_MEMORY
    subnet: str | None = None
    bare: bool = False  # an image of the agent alone, where no job needs more
    agreed: str = ""  # of an existing file that another host wrote: `tare.campaign.execution.trust.require_added`


@dataclass(frozen=True, slots=True)
class Site:
    """Platforms that are ready to start, the launcher and the client for them, and the file's store."""

    ready: tuple[Ready, ...]
    launcher: InstanceLauncher
    client: Client
    store: Store


@contextlib.contextmanager
def opened(
    request: SiteRequest,
    doing: Progress,
    left_out: Callable[[LeftOut], None],
    before: Callable[[], None] = lambda: None,
) -> Iterator[Site]:
    """A site for as long as the block lasts. ``before`` is called, and may raise, before anything is built or started.

    ``left_out`` is called with each platform that does not run here, which the file has too. Raises `TareError`:
    `StoreError` for a file of another image or kernel.
    """
    chosen = conduct.platforms_for(request.platforms)
    check_resources(request.cpus, request.memory_bytes)
    if not exists(request.file):
        check_new_campaign(request.file)
    with contextlib.ExitStack() as stack:
        # Before the host is locked, so that a file that is no campaign is an error at once.
        existing = stack.enter_context(open_store(request.file)) if exists(request.file) else None
        if existing is not None:
            trust.require_added(existing, request.agreed)
        host = stack.enter_context(HostSession(doing))
        before()
        conduct.check_disk()
        # Before the host is made ready: at the end this is called once that is taken off the host again.
        if existing is None:
            host.callback(conduct.keep_unremoved_in, request.file)
        else:
            host.callback(conduct.keep_unremoved, existing)
        failures: list[tuple[str, Failed]] = []  # of platforms that are left out, for a file that may not be there yet
        resources = _resources(request, existing)
        prepared = preflight.prepare(
            host,
            chosen,
            lambda: _image(request, existing, host),
            resources,
            keep=lambda step, failed: failures.append((step, failed)),
            subnet=request.subnet,
        )
        store = existing or host.enter_context(_new(request, prepared, resources))
        for step, failed in failures:
            store.add_attachment(f"traceback of {step}", failed.traceback)
        for omitted in prepared.left_out:
            store.add_event("warning", f"no {request.what} of {omitted.platform}: {omitted.reason}")
            left_out(omitted)
        # That of an existing campaign stays.
        with conduct.under_way(store) if existing is None else contextlib.nullcontext():
            yield Site(tuple(prepared.ready), prepared.launcher, prepared.client, store)


def _image(request: SiteRequest, existing: Store | None, host: HostSession) -> Image:
    """The image of the existing campaign, with the layers for its workloads and for the new ones."""
    needed = [job.workload for job in request.jobs]
    if existing is None:
        return host.image(needed, bare=request.bare)
    # Its parameters do not matter: nothing of it is run again.
    image = host.image([*needed, *(workloads.get(recorded.name) for recorded in existing.record.workloads)])
    same.check_revisions(existing.record, (job.workload for job in request.jobs))
    same.check_same(existing.record, image, machine.gather())
    return image


def _resources(request: SiteRequest, existing: Store | None) -> Resources:
    """The resources of the existing campaign, so that all of its file is of equal instances; else those requested."""
    if existing is None:
        return conduct.resources_for(
            CampaignRequest(cpus=request.cpus, memory_bytes=request.memory_bytes), request.jobs
        )
    recorded = existing.record.resources
    return Resources(tuple(recorded.cpus), recorded.memory_bytes, pids=conduct.pids_for(request.jobs))


def _new(request: SiteRequest, prepared: Prepared, resources: Resources) -> Store:
    """A new campaign without blocks: nothing is measured in it."""
    platforms = tuple(ready.platform for ready in prepared.ready)
    plan = Plan(PROFILE, request.seed, platforms, request.jobs, resources, 0, None, replicas=1)
    image = prepared.launcher.image
    record = conduct.record_of(plan, prepared.ready, image, prepared.left_out, (), None)
    return create_store(request.file, record, trust.mark)
