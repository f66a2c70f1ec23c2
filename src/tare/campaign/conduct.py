"""A campaign from the order to the end, new or resumed."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import tare
from tare.campaign import same, trust
from tare.campaign.block import Watcher
from tare.campaign.faults import Faults
from tare.campaign.ground import default_cpus, prepared, quietened, sole_campaign
from tare.campaign.order import ALL, DUET_CPUS, Order
from tare.campaign.plan import Job, Plan, arms_of, make_jobs
from tare.campaign.preflight import Progress, Ready, available, try_each
from tare.campaign.runner import Runner
from tare.campaign.sampler import Sampler
from tare.campaign.slowed import extra_work, originals, slowed_copies
from tare.campaign.stopping import Widths, targets
from tare.campaign.trust import jobs_of
from tare.errors import Failed, HostError, ImageError, attempt
from tare.host import beside, facts, network, state, unremoved, volumes
from tare.host.tuning import Tuned
from tare.image import build
from tare.image.build import Image
from tare.model import Design, Resources
from tare.outputs import check_new_campaign
from tare.platforms import registry as platforms
from tare.platforms.base import Platform
from tare.store.record import CampaignRecord, LeftOut, MetricRecord, ResourceRecord, SettingRecord, WorkloadRecord
from tare.store.segments import RESUMED
from tare.store.store import Store
from tare.workloads import registry as workloads
from tare.workloads.base import Workload

#: Below this the overlays, the data and the campaign file may not fit.
LEAST_FREE_DISK = 2 << 30


def begin(order: Order, file: Path, watcher: Watcher, widths: Widths | None = None) -> None:
    """Run a new campaign into ``file``. Raises `TareError`; what is in the file by then stays."""
    # What cannot be is said before anything is done.
    order.check()
    check_new_campaign(file)
    chosen = platforms_for(order.platforms)
    asked = frozenset(() if order.offered else order.platforms)
    jobs = make_jobs(_workloads(order.workloads), order.base or order.profile, order.params, order.margins)
    resources = resources_for(order)
    with sole_campaign():
        check_host(order)
        failures: list[tuple[str, Failed]] = []  # of platforms that are left out, for a file that is not there yet

        def keep(what: str, failed: Failed) -> None:
            failures.append((what, failed))

        try:
            found, missing = available(chosen, asked=asked, progress=watcher.doing, keep=keep)
            image = image_for((job.workload for job in jobs), watcher.doing)
            with (
                quietened(resources, watcher.doing, tune=order.tune) as tuned,
                prepared(image, resources, order.subnet) as (nursery, client),
            ):
                ready, broken = try_each(found, image, nursery, asked=asked, progress=watcher.doing, keep=keep)
                plan, ready = _plan(order, ready, jobs, resources)
                record = record_of(plan, ready, image, [*order.left_out, *missing, *broken], asked, tuned)
                with Store.create(file, record, trust.mark) as store:
                    faults = Faults(store, watcher.fault)
                    for what, failed in failures:
                        faults.keep(what, failed)
                    with closing(chosen, faults):
                        _run(Runner(plan, store, nursery, client, watcher, widths, Sampler(resources.cpus)))
        finally:
            close_all(chosen)
            if file.exists():
                with Store.open(file) as store:
                    keep_unremoved(store)


def check_runs_here(names: Sequence[str], progress: Progress) -> None:
    """Try whether these platforms run here, as `begin` does. Raises `HostError` for the first that does not."""
    chosen = platforms_for(names)
    with sole_campaign():
        try:
            # There is no file yet to keep a traceback in: a fault of one that was asked for is raised.
            available(chosen, asked=frozenset(names), progress=progress, keep=lambda _what, _failed: None)
        finally:
            close_all(chosen)


def check_host(order: Order) -> None:
    """Raise `HostError` where the disk, the agent or the subnet of a new campaign are not there."""
    check_disk()
    volumes.check_size(order.data_bytes, state.home())
    build.agent_path()
    network.choose_subnet(order.subnet)


def _plan(order: Order, ready: list[Ready], jobs: tuple[Job, ...], resources: Resources) -> tuple[Plan, list[Ready]]:
    """What is decided once it is known what runs here, and all that takes part."""
    length = order.duration()
    extra = extra_work(ready, order.slowed)
    ready = [*ready, *slowed_copies(ready, order.slowed)]
    usable = tuple(one.platform for one in ready)
    # Whoever counts blocks wants that many.
    counted = length.blocks is not None or order.design is Design.SEQUENTIAL
    precision = 0 if counted and order.precision is None else order.precision
    plan = Plan(
        profile=order.profile,
        seed=order.seed if order.seed is not None else secrets.randbelow(2**31),
        platforms=usable,
        jobs=jobs,
        resources=resources,
        blocks=length.blocks,
        budget_s=length.budget(len(arms_of(usable, order.replicas))),
        targets=targets({job.workload.name: job.margin for job in jobs}, precision),
        design=order.design,
        replicas=order.replicas,
        extra=extra,
        slowed=tuple(order.slowed),
        in_order=order.in_order,
        scale=order.scale,
    )
    return plan, ready


def resume(
    file: Path,
    watcher: Watcher,
    widths: Widths | None = None,
    warn: Progress | None = None,
    agreed: str = "",
) -> None:
    """Go on with a campaign: exactly the trials that are missing. Raises `StoreError` when it cannot be the same.

    ``warn``: is told what is not as it was, and no reason to refuse; by default as what goes on. ``agreed``: of a file
    that another host wrote, what a user has agreed to (`tare.campaign.trust.digest`).
    """
    # A file that is none is told to whoever named it, whatever else runs here.
    with Store.open(file) as store, sole_campaign():
        trust.require(store, agreed)
        record = store.record
        same.check_known(store)
        same.check_cpus(record)
        check_disk()
        jobs = jobs_of(record)
        image = image_for((job.workload for job in jobs), watcher.doing)
        same.check_same(record, image, facts.gather())
        kept = record.resources
        resources = Resources(tuple(kept.cpus), kept.memory_bytes, kept.data_bytes)
        volumes.check_size(kept.data_bytes, state.home())
        chosen = platforms.choose(originals(record))
        try:
            asked = frozenset(platform.name for platform in chosen)
            faults = Faults(store, watcher.fault)
            found, missing = available(chosen, asked=asked, progress=watcher.doing, keep=faults.keep)
            with (
                quietened(resources, watcher.doing, tune=record.tuning is not None) as tuned,
                prepared(image, resources, None) as (nursery, client),
            ):
                ready, broken = try_each(found, image, nursery, asked=asked, progress=watcher.doing, keep=faults.keep)
                same.check_all_there([*missing, *broken])
                same.check_platforms(record, ready)
                plan = _plan_of(record, ready, jobs, resources)
                store.add_event("info", RESUMED)
                changes = [*_tuned_otherwise(record.tuning, tuned), *same.notes(record, facts.gather(), ready)]
                for line in changes:
                    store.add_event("warning", line)
                    (warn or watcher.doing)(line)
                with closing(chosen, faults):
                    _run(Runner(plan, store, nursery, client, watcher, widths, Sampler(resources.cpus)))
        finally:
            close_all(chosen)
            keep_unremoved(store)


def _plan_of(record: CampaignRecord, ready: Sequence[Ready], jobs: tuple[Job, ...], resources: Resources) -> Plan:
    """The plan that a record is of, with the platforms as they are now."""
    everything = [*ready, *slowed_copies(ready, record.slowed)]
    return Plan(
        profile=record.profile,
        seed=record.seed,
        platforms=tuple(one.platform for one in everything),
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
    )


def image_for(wanted: Iterable[Workload], progress: Progress) -> Image:
    """The one image for all of the campaign: with what its workloads need on top, and without where none does.

    Raises `ImageError`, also where it lacks a package that a workload needs.
    """
    every = list(wanted)
    layers = {workload.layer for workload in every if workload.layer is not None}
    image = build.ensure(build.agent_path(), progress=progress, layers=layers)
    for workload in every:
        missing = [package for package in workload.packages if package not in image.manifest.packages]
        if missing:
            raise ImageError(
                f"{workload.name} needs {', '.join(missing)}, which the image has not",
                fix="give the workload a layer with it (docs/add-a-workload.md), or leave the workload out",
            )
    return image


def resources_for(order: Order) -> Resources:
    """What every instance gets."""
    count = DUET_CPUS if order.design is Design.DUET else 1
    return Resources(order.cpus or default_cpus(count), order.memory_bytes, order.data_bytes)


def _run(runner: Runner) -> None:
    runner.store.set_status("running")
    try:
        runner.run()
    except BaseException:
        runner.store.set_status("interrupted")
        raise
    runner.store.set_status("complete")


def platforms_for(names: Sequence[str]) -> list[Platform]:
    """The platforms of these names after the baseline; without names the usual ones. Raises `UsageError`."""
    known = platforms.all_platforms()
    if not names:
        return [platform for platform in known.values() if platform.by_default]
    # There is no overhead without the baseline.
    first = [one.name for one in known.values() if one.baseline or ALL in names]
    return platforms.choose([*first, *(name for name in names if name != ALL)])


def _workloads(names: Sequence[str]) -> list[Workload]:
    if not names:
        return [one for one in workloads.all_workloads().values() if one.by_default]
    return workloads.choose(names)


def record_of(
    plan: Plan,
    ready: Sequence[Ready],
    image: Image,
    left_out: Sequence[LeftOut],
    asked: Collection[str],
    tuned: Sequence[Tuned] | None,
) -> CampaignRecord:
    """What a new campaign's file says of itself."""
    return CampaignRecord(
        id=str(uuid.uuid4()),
        created=time.time(),
        tare_version=tare.__version__,
        seed=plan.seed,
        profile=plan.profile,
        baseline=plan.baseline.name,
        arms=[(arm.platform, arm.replica) for arm in plan.arms],
        platforms=[one.record for one in ready],
        workloads=[_workload_record(job) for job in plan.jobs],
        resources=ResourceRecord.model_validate(asdict(plan.resources)),
        host=beside.completed(facts.gather(), plan.resources.cpus).model_dump(mode="json"),
        image={"hash": image.hash, **image.manifest.model_dump(mode="json")},
        agent_hash=image.agent_hash,
        fairness={one.platform.name: one.fairness for one in ready},
        blocks=plan.blocks,
        time_budget_s=plan.budget_s,
        left_out=list(left_out),
        targets=dict(plan.targets),
        asked=sorted(asked),
        design=plan.design,
        in_order=plan.in_order,
        scale=plan.scale,
        tuning=None if tuned is None else [_setting_record(one) for one in tuned],
        slowed=list(plan.slowed),
    )


def _setting_record(one: Tuned) -> SettingRecord:
    setting, changed = one.setting, one.outcome == "changed"
    return SettingRecord(
        name=setting.name,
        path=setting.path,
        outcome=one.outcome,
        former=setting.present,
        value=setting.wanted if changed else setting.present,
        why=one.reason or setting.why,
    )


def _tuned_otherwise(before: Sequence[SettingRecord] | None, tuned: Sequence[Tuned] | None) -> Iterator[str]:
    """Settings that a resumed campaign has otherwise than it had when it began."""
    values = {one.name: one.value for one in before or ()}
    for now in map(_setting_record, tuned or ()):
        if now.name in values and values[now.name] != now.value:
            yield f"{now.name} is {now.value} since the campaign was resumed, and was {values[now.name]}"


def _workload_record(job: Job) -> WorkloadRecord:
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
    )


def check_disk() -> None:
    """Raise `HostError` where there is too little space for instances."""
    free = shutil.disk_usage(state.home()).free
    if free < LEAST_FREE_DISK:
        raise HostError(
            f"only {free / 2**30:.1f} GiB are free below {state.home()}, {LEAST_FREE_DISK / 2**30:.0f} GiB are needed",
            fix="free some space, or set TARE_HOME to a larger disk",
        )


@contextlib.contextmanager
def closing(chosen: Sequence[Platform], faults: Faults) -> Iterator[None]:
    """Let platforms give back what they hold while the file is still there that keeps what fails of it."""
    try:
        yield
    finally:
        for platform, failed in close_all(chosen):
            faults.keep(f"the end of {platform.name}", failed)


def close_all(chosen: Sequence[Platform]) -> list[tuple[Platform, Failed]]:
    """Give back what platforms held; an error with one keeps no other. Returns what failed."""
    ends = [(platform, attempt(platform.close)) for platform in chosen]
    return [(platform, end) for platform, end in ends if isinstance(end, Failed)]


def keep_unremoved(store: Store) -> None:
    """Keep in the file what could not be removed from this host, each thing once."""
    kept = {event.text for event in store.events()}
    for thing in unremoved.still_there():
        if not kept & {str(thing), thing.why}:
            store.add_event("warning", str(thing))
