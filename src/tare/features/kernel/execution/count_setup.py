"""Set-up for footprints and surfaces: a host session, platforms that start in it, and the file to store them in.

The file is either an existing campaign's, whose image, CPUs and memory are then used, or a new one without blocks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tare.campaign.execution import preflight, provenance, resume_checks, run_campaign
from tare.campaign.execution.preflight import PreparedPlatforms, StartedPlatform
from tare.campaign.host_session import HostSession
from tare.campaign.instances.client import LoadClient
from tare.campaign.instances.launcher import InstanceLauncher
from tare.campaign.plan.campaign_plan import CampaignPlan, WorkloadJob
from tare.campaign.plan.campaign_request import DEFAULT_MEMORY, CampaignRequest, check_resources
from tare.errors import Failed
from tare.host.facts import machine_facts
from tare.image.image_build import Image
from tare.model import Progress, Resources
from tare.outputs import check_new_campaign
from tare.store import LeftOut, Store, create_store, exists, open_store
from tare.workloads import workload_registry as workloads

#: Parameters of the workloads. A run's length changes how often a call is made, but hardly which calls are made.
PROFILE = "quick"


@dataclass(frozen=True, slots=True)
class SiteRequest:
    """Options of a site. Empty and None mean the default."""

    what: str  # The kind of result, for warnings: no WHAT of PLATFORM
    file: Path
    seed: int  # For a new file's record.
    platforms: Sequence[str] = ()  # The baseline always takes part.
    jobs: tuple[WorkloadJob, ...] = ()
    cpus: tuple[int, ...] = ()
    memory_bytes: int = DEFAULT_MEMORY
    subnet: str | None = None
    bare: bool = False  # An image of the agent alone, unless a job needs more.
    agreed: str = ""  # For an existing file from another host: `tare.campaign.execution.provenance.require_added`


@dataclass(frozen=True, slots=True)
class CountSetup:
    """Platforms that are ready to start, their launcher and client, and the file's store."""

    ready: tuple[StartedPlatform, ...]
    launcher: InstanceLauncher
    client: LoadClient
    store: Store


@contextlib.contextmanager
def opened(
    request: SiteRequest,
    doing: Progress,
    left_out: Callable[[LeftOut], None],
    before: Callable[[], None] = lambda: None,
) -> Iterator[CountSetup]:
    """Yield a site for the duration of the block.

    Calls ``before``, which may raise, before anything is built or started.

    Calls ``left_out`` with each platform that does not run here, and records it in the file. Raises `TareError`;
    `StoreError` for a file of another image or kernel.
    """
    chosen = run_campaign.platforms_for(request.platforms)
    check_resources(request.cpus, request.memory_bytes)
    if not exists(request.file):
        check_new_campaign(request.file)
    with contextlib.ExitStack() as stack:
        # Open the file before the host is locked, so that a file that is no campaign fails at once.
        existing = stack.enter_context(open_store(request.file)) if exists(request.file) else None
        if existing is not None:
            provenance.require_added(existing, request.agreed)
        host = stack.enter_context(HostSession(doing))
        before()
        run_campaign.check_disk()
        # Register this before the host is set up: callbacks run in reverse order, so it runs after the host is cleaned
        # up.
        if existing is None:
            host.callback(run_campaign.keep_unremoved_in, request.file)
        else:
            host.callback(run_campaign.keep_unremoved, existing)
        # Of platforms that are left out. Kept here because the file may not exist yet.
        failures: list[tuple[str, Failed]] = []
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
        # Keep the state of an existing campaign.
        with run_campaign.under_way(store) if existing is None else contextlib.nullcontext():
            yield CountSetup(tuple(prepared.ready), prepared.launcher, prepared.client, store)


def _image(request: SiteRequest, existing: Store | None, host: HostSession) -> Image:
    """Return the image of the existing campaign, with the layers for its workloads and for the new ones."""
    needed = [job.workload for job in request.jobs]
    if existing is None:
        return host.image(needed, bare=request.bare)
    # Its parameters do not matter, because it is not run again.
    image = host.image([*needed, *(workloads.get(recorded.name) for recorded in existing.record.workloads)])
    resume_checks.check_revisions(existing.record, (job.workload for job in request.jobs))
    resume_checks.check_same(existing.record, image, machine_facts.gather())
    return image


def _resources(request: SiteRequest, existing: Store | None) -> Resources:
    """Return the existing campaign's resources, so that all instances in its file are equal, or the requested ones."""
    if existing is None:
        return run_campaign.resources_for(
            CampaignRequest(cpus=request.cpus, memory_bytes=request.memory_bytes), request.jobs
        )
    recorded = existing.record.resources
    return Resources(tuple(recorded.cpus), recorded.memory_bytes, pids=run_campaign.pids_for(request.jobs))


def _new(request: SiteRequest, prepared: PreparedPlatforms, resources: Resources) -> Store:
    """Create a campaign without blocks, in which nothing is measured."""
    platforms = tuple(ready.platform for ready in prepared.ready)
    plan = CampaignPlan(PROFILE, request.seed, platforms, request.jobs, resources, 0, None, replicas=1)
    record = run_campaign.record_of(plan, prepared.ready, prepared.launcher, prepared.left_out, (), None)
    return create_store(request.file, record, provenance.mark)
