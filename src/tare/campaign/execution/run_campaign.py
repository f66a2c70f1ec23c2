"""Runs a campaign from the request to its end, a new one or a resumed one."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import time
import uuid
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import tare
from tare.campaign.execution import provenance, resume_checks, sizing
from tare.campaign.execution.block import CampaignWatcher
from tare.campaign.execution.faults import Faults
from tare.campaign.execution.preflight import (
    PreparedPlatforms,
    StartedPlatform,
    available,
    close_all,
    prepare,
    require_any,
)
from tare.campaign.execution.provenance import jobs_of
from tare.campaign.execution.runner import Runner
from tare.campaign.execution.slowed import extra_work, originals, slowed_copies
from tare.campaign.host_session import HostSession, default_cpus
from tare.campaign.instances import far_client
from tare.campaign.instances.launcher import HostCpus, InstanceLauncher
from tare.campaign.plan.campaign_plan import (
    PROFILES,
    CampaignPlan,
    WorkloadJob,
    arms_of,
    families_of,
    make_jobs,
    only_in,
)
from tare.campaign.plan.campaign_request import ALL, DUET_CPUS, CampaignRequest
from tare.campaign.plan.stopping import targets
from tare.campaign.telemetry.sampler import Sampler
from tare.errors import Failed, HostError, UsageError
from tare.host import state
from tare.host.facts import machine_facts, siblings
from tare.host.filesystems import volumes
from tare.host.network import subnets
from tare.host.resources import unremoved
from tare.host.tuning.tune import Tuned
from tare.image import image_build
from tare.model import PIDS, CampaignStatus, Design, Family, Progress, Resources
from tare.outputs import check_new_campaign
from tare.platforms import platform_registry as platforms
from tare.platforms.base import Platform
from tare.store import (
    RESUMED,
    CampaignRecord,
    LeftOut,
    LevelRecord,
    MetricRecord,
    ProgramRecord,
    ResourceRecord,
    SettingRecord,
    Store,
    WorkloadRecord,
    block_durations,
    create_store,
    exists,
    open_store,
)
from tare.workloads import workload_registry as workloads
from tare.workloads.apart import FillWorkload
from tare.workloads.base import Workload

#: Of a bridge on which ever more instances are: 4,081 of them have an address.
WIDE = 20


def begin(request: CampaignRequest, file: Path, watcher: CampaignWatcher) -> None:
    """Run a new campaign into ``file``. Raises `TareError`; the trials that are in the file by then stay."""
    # Impossible requests are refused before anything is started.
    request.check()
    if request.client is not None:
        far_client.check(request.client)
    check_new_campaign(file)
    named = frozenset(() if request.offered else request.platforms)
    jobs = make_jobs(_workloads(request), request.base or request.profile, request.params, request.margins)
    chosen = platforms_for([*request.platforms, *request.second], families_of(jobs))
    asked = [platform for platform in chosen if platform.name not in request.second]
    resources = resources_for(request, jobs)
    with HostSession(watcher.doing) as host:
        check_host(request)
        host.callback(keep_unremoved_in, file)
        failures: list[tuple[str, Failed]] = []  # of platforms that are left out, until there is a file to keep them
        prepared = prepare(
            host,
            chosen,
            lambda: host.image(job.workload for job in jobs),
            resources,
            keep=lambda step, failed: failures.append((step, failed)),
            check=lambda left_out: require_any(asked, left_out) if named else None,
            tune=request.tune,
            subnet=request.subnet,
            stand_ins=request.offered,
            prefix=prefix_for(jobs),
            client=request.client,
        )
        for left_out in prepared.left_out:
            if left_out.platform in named:
                watcher.fault(f"{left_out.platform} is left out: {left_out.reason}")
        jobs = sizing.sized(jobs, request.params, prepared, watcher.doing)
        plan, ready = _plan(request, prepared.ready, jobs, resources)
        everything_left_out = [*request.left_out, *prepared.left_out, *not_meant(request.platforms)]
        launcher = prepared.launcher
        record = record_of(plan, ready, launcher, everything_left_out, named, prepared.tuned)
        with create_store(file, record, provenance.mark) as store:
            faults = Faults(store, watcher.fault)
            for step, failed in failures:
                faults.keep(step, failed)
            with closing(chosen, faults):
                _run(plan, store, prepared, watcher)


def check_runs_here(names: Sequence[str], progress: Progress) -> None:
    """Check whether these platforms run here, as `begin` does. Raises `HostError` for the first that does not."""
    chosen = platforms_for(names)
    with HostSession(progress) as host:
        host.callback(close_all, chosen)
        # There is no file to keep a traceback in.
        _, missing = available(chosen, progress=progress, keep=lambda _what, _failed: None)
        for platform in missing:
            raise HostError(f"{platform.platform} does not run here: {platform.reason}", fix=platform.fix)


def check_host(request: CampaignRequest) -> None:
    """Raise `HostError` where the host lacks the disk space, the agent or the subnet for a new campaign."""
    check_disk()
    volumes.check_size(request.data_bytes, state.home())
    image_build.agent_path()
    subnets.choose(request.subnet)


def prefix_for(jobs: Sequence[WorkloadJob]) -> int:
    """Return the length of the bridge's prefix: with an address for each of as many instances as a bridge has ports."""
    return WIDE if any(isinstance(job.workload, FillWorkload) for job in jobs) else 24


def _plan(
    request: CampaignRequest, ready: list[StartedPlatform], jobs: tuple[WorkloadJob, ...], resources: Resources
) -> tuple[CampaignPlan, list[StartedPlatform]]:
    """Return the plan for the platforms that run here, and all that take part, slowed copies included."""
    length = request.duration()
    extra = extra_work(ready, request.slowed)
    ready = [*ready, *slowed_copies(ready, request.slowed)]
    usable = tuple(entry.platform for entry in ready)
    # Where blocks are counted, all of them are run: there is no look at the intervals.
    counted = length.blocks is not None or request.design is Design.SEQUENTIAL
    precision = 0 if counted and request.precision is None else request.precision
    plan = CampaignPlan(
        profile=request.profile,
        seed=request.seed if request.seed is not None else secrets.randbelow(2**31),
        platforms=usable,
        jobs=jobs,
        resources=resources,
        blocks=length.blocks,
        budget_s=length.budget(
            len(arms_of([platform for platform in usable if platform.name not in request.second], request.replicas))
        ),
        targets=targets({job.workload.name: job.margin for job in jobs}, precision),
        design=request.design,
        replicas=request.replicas,
        extra=extra,
        slowed=tuple(request.slowed),
        in_order=request.in_order,
        scale=request.scale,
        only_in=only_in(usable, () if request.offered else request.platforms),
    )
    return plan, ready


def resume(
    file: Path,
    watcher: CampaignWatcher,
    warn: Progress | None = None,
    agreed: str = "",
    more_s: float | None = None,
) -> None:
    """Run exactly the missing trials of a campaign. Raises `StoreError` when it would not be the same campaign.

    ``more_s``: and then so many seconds more of it, in blocks where they help.

    ``warn``: called with a line for each change since the campaign began that is no reason to refuse; by default the
    watcher's ``doing``. ``agreed``: for a file that another host wrote, the digest of the record that the user has
    agreed to (`tare.campaign.execution.provenance.digest`).
    """
    # The file first: that it is no campaign's is reported even where another session has the host.
    with open_store(file) as store, HostSession(watcher.doing) as host:
        provenance.require(store, agreed)
        record = store.record
        if more_s is not None and record.design is Design.SEQUENTIAL:
            raise UsageError("a sequential campaign is one pass for each platform", fix="run a new one that is longer")
        resume_checks.check_known(store)
        resume_checks.check_cpus(record)
        check_disk()
        jobs = jobs_of(record)
        resume_checks.check_revisions(record, [job.workload for job in jobs])
        image = host.image(job.workload for job in jobs)
        resume_checks.check_same(record, image, machine_facts.gather())
        limits = record.resources
        pids = pids_for(jobs)
        resources = Resources(tuple(limits.cpus), limits.memory_bytes, limits.data_bytes, limits.cpu_quota, pids)
        volumes.check_size(limits.data_bytes, state.home())
        chosen = platforms.choose(originals(record))
        host.callback(keep_unremoved, store)
        faults = Faults(store, watcher.fault)
        prepared = prepare(
            host,
            chosen,
            lambda: image,
            resources,
            keep=faults.keep,
            check=resume_checks.check_all_there,
            tune=record.tuning is not None,
            prefix=prefix_for(jobs),
            client=None if record.client is None else record.client.client,
        )
        resume_checks.check_client(record, prepared.launcher.client)
        resume_checks.check_platforms(record, prepared.ready)
        plan = _plan_of(record, prepared.ready, jobs, resources)
        if more_s is not None:
            plan = _extended(plan, store, more_s)
            store.add_event("info", f"goes on for {more_s:g} s more (tare run --more)")
        store.add_event("info", RESUMED)
        changes = [
            *_tuned_otherwise(record.tuning, prepared.tuned),
            *resume_checks.notes(record, machine_facts.gather(), prepared.ready),
        ]
        for line in changes:
            store.add_event("warning", line)
            (warn or watcher.doing)(line)
        with closing(chosen, faults):
            _run(plan, store, prepared, watcher)


def _plan_of(
    record: CampaignRecord, ready: Sequence[StartedPlatform], jobs: tuple[WorkloadJob, ...], resources: Resources
) -> CampaignPlan:
    """Return the plan that a record was made from, with the platforms as they are now."""
    everything = [*ready, *slowed_copies(ready, record.slowed)]
    return CampaignPlan(
        profile=record.profile,
        seed=record.seed,
        platforms=tuple(entry.platform for entry in everything),
        jobs=jobs,
        resources=resources,
        blocks=record.blocks,
        budget_s=record.time_budget_s,
        targets=record.targets,
        design=record.design,
        replicas=sum(arm.platform == record.baseline for arm in record.all_arms()),
        extra=extra_work(ready, record.slowed),
        slowed=tuple(record.slowed),
        in_order=record.in_order,
        scale=record.scale,
        only_in=only_in([entry.platform for entry in everything], record.asked),
    )


def _extended(plan: CampaignPlan, store: Store, more_s: float) -> CampaignPlan:
    """Return the plan with so many seconds of work more, which looks at the intervals before its first new block."""
    spent = sum(block_durations(store.trials()).values())
    blocks = 1 + max((key.block for key in store.schedule()), default=-1)
    wanted = plan.targets or targets({job.workload.name: job.margin for job in plan.jobs}, None)
    return replace(plan, blocks=None, budget_s=spent + more_s, targets=wanted, look_at=blocks)


def resources_for(request: CampaignRequest, jobs: Sequence[WorkloadJob]) -> Resources:
    """Return the CPUs, memory, data volume and processes of every instance."""
    count = DUET_CPUS if request.design is Design.DUET else None
    cpus = request.cpus or default_cpus(count)
    return Resources(cpus, request.memory_bytes, request.data_bytes, request.cpu_quota, pids_for(jobs))


def pids_for(jobs: Sequence[WorkloadJob]) -> int:
    """Return processes and threads that an instance may have at once: as many as the workload needs that needs most."""
    return max([PIDS, *(job.workload.pids for job in jobs)])


def _run(plan: CampaignPlan, store: Store, prepared: PreparedPlatforms, watcher: CampaignWatcher) -> None:
    sampler = Sampler(plan.resources.cpus, seen=watcher.tick)
    with under_way(store):
        Runner(plan, store, prepared.launcher, prepared.client, watcher, sampler).run()


@contextlib.contextmanager
def under_way(store: Store) -> Iterator[None]:
    """Keep the campaign's status: running within the context, then complete, or interrupted if it raises."""
    store.set_status(CampaignStatus.RUNNING)
    try:
        yield
    except BaseException:
        store.set_status(CampaignStatus.INTERRUPTED)
        raise
    store.set_status(CampaignStatus.COMPLETE)


def platforms_for(names: Sequence[str], families: Collection[Family] = ()) -> list[Platform]:
    """Return the platforms of these names, the baseline first; without names the default ones. Raises `UsageError`.

    ``families``: of the workloads; some have a second baseline among the default platforms.
    """
    registered = platforms.all_platforms()
    if not names:
        return [
            platform
            for platform in registered.values()
            if platform.by_default or any(family in families for family in platform.second_baseline)
        ]
    # Overheads are relative to the baseline, so it always takes part.
    of_all = [platform.name for platform in registered.values() if not platform.only_named] if ALL in names else []
    first = [*(platform.name for platform in registered.values() if platform.baseline), *of_all]
    return platforms.choose([*first, *(name for name in names if name != ALL)])


def not_meant(names: Sequence[str]) -> list[LeftOut]:
    """Platforms that these names do not mean though they have "all" among them, each with the reason."""
    if ALL not in names:
        return []
    return [
        LeftOut(platform=name, reason=platform.only_named, fix=f"name it as well: -p all -p {name}")
        for name, platform in platforms.all_platforms().items()
        if platform.only_named and name not in names
    ]


def _workloads(request: CampaignRequest) -> list[Workload]:
    own = PROFILES[request.profile].workloads if request.profile in PROFILES and not request.programs else ()
    names = request.workloads or own
    if not names and not request.programs:
        return [workload for workload in workloads.all_workloads().values() if workload.by_default]
    return [*request.programs, *workloads.choose(names)]


def record_of(
    plan: CampaignPlan,
    ready: Sequence[StartedPlatform],
    launcher: InstanceLauncher,
    left_out: Sequence[LeftOut],
    asked: Collection[str],
    tuned: Sequence[Tuned] | None,
) -> CampaignRecord:
    """Return the record of a new campaign's file."""
    image = launcher.image
    return CampaignRecord(
        id=str(uuid.uuid4()),
        created=time.time(),
        tare_version=tare.__version__,
        seed=plan.seed,
        profile=plan.profile,
        baseline=plan.baseline.name,
        arms=[(arm.platform, arm.replica) for arm in plan.arms],
        platforms=[entry.record for entry in ready],
        workloads=[_workload_record(job) for job in plan.jobs],
        resources=_resource_record(plan.resources, launcher.host_cpus),
        host=siblings.completed(machine_facts.gather(), plan.resources.cpus).model_dump(mode="json"),
        image={"hash": image.hash, **image.manifest.model_dump(mode="json")},
        agent_hash=image.agent_hash,
        fairness={entry.platform.name: entry.fairness for entry in ready},
        blocks=plan.blocks,
        time_budget_s=plan.budget_s,
        left_out=list(left_out),
        targets=dict(plan.targets),
        asked=sorted(asked),
        design=plan.design,
        in_order=plan.in_order,
        scale=plan.scale,
        tuning=None if tuned is None else [_setting_record(setting) for setting in tuned],
        slowed=list(plan.slowed),
        client=launcher.client,
    )


def _resource_record(resources: Resources, cpus: HostCpus) -> ResourceRecord:
    given = {name: value for name, value in asdict(resources).items() if name != "pids"}  # the workloads' (`pids_for`)
    more = {
        "probe_cpu": resources.probe_cpu,
        "harness_cpus": cpus.harness,
        "client_cpus": [] if cpus.client == cpus.harness else cpus.client,
    }
    return ResourceRecord.model_validate({**given, **more})


def _setting_record(tuned: Tuned) -> SettingRecord:
    setting, changed = tuned.setting, tuned.outcome == "changed"
    return SettingRecord(
        name=setting.name,
        path=setting.path,
        outcome=tuned.outcome,
        former=setting.present,
        value=setting.wanted if changed else setting.present,
        why=tuned.reason or setting.why,
    )


def _tuned_otherwise(before: Sequence[SettingRecord] | None, tuned: Sequence[Tuned] | None) -> Iterator[str]:
    """Yield a sentence for each setting whose value differs from what it was when the campaign began."""
    values = {setting.name: setting.value for setting in before or ()}
    for now in map(_setting_record, tuned or ()):
        if now.name in values and values[now.name] != now.value:
            yield f"{now.name} is {now.value} since the campaign was resumed, and was {values[now.name]}"


def _workload_record(job: WorkloadJob) -> WorkloadRecord:
    workload = job.workload
    return WorkloadRecord(
        name=workload.name,
        title=workload.title,
        family=workload.family,
        mode=workload.mode,
        margin=job.margin,
        work_unit=workload.work_unit,
        params=dict(job.params),
        metrics=[MetricRecord.model_validate(asdict(metric)) for metric in workload.all_metrics],
        package=workloads.package(workload.name),
        revision=workload.revision,
        level=None if workload.level is None else LevelRecord.model_validate(asdict(workload.level)),
        program=None if workload.program is None else ProgramRecord.model_validate(asdict(workload.program)),
        origin=workload.origin,
    )


def check_disk() -> None:
    """Raise `HostError` where there is too little space for instances."""
    free = shutil.disk_usage(state.home()).free
    if free < volumes.MIN_FREE:
        raise HostError(
            f"only {free / 2**30:.1f} GiB are free below {state.home()}, {volumes.MIN_FREE / 2**30:.0f} GiB are needed",
            fix="free some space, or set TARE_HOME to a larger disk",
        )


@contextlib.contextmanager
def closing(chosen: Sequence[Platform], faults: Faults) -> Iterator[None]:
    """Close the platforms at the end, while the file is still open to keep their failures."""
    try:
        yield
    finally:
        for platform, failed in close_all(chosen):
            faults.keep(f"the end of {platform.name}", failed)


def keep_unremoved_in(file: Path) -> None:
    """As `keep_unremoved`, for a campaign's file that is not open; nothing where there is no such file."""
    if exists(file):
        with open_store(file) as store:
            keep_unremoved(store)


def keep_unremoved(store: Store) -> None:
    """Record in the file what could not be removed from this host, each resource once."""
    noted = {event.text for event in store.events()}
    for resource in unremoved.still_there():
        if not noted & {str(resource), resource.why}:
            store.add_event("warning", str(resource))
