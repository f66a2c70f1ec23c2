"""A campaign from the order to the end, new or resumed."""

from __future__ import annotations

import os
import secrets
import shutil
import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import tare
from tare.campaign.ground import default_cpus, prepared, quietened, sole_campaign
from tare.campaign.plan import BASELINE_REPLICAS, Job, Plan, Profile, arms_of, how_long, make_jobs
from tare.campaign.preflight import Progress, Ready, available, try_each
from tare.campaign.runner import Runner, Watcher
from tare.campaign.sampler import Sampler
from tare.campaign.slowed import extra_work, slowed_copies
from tare.campaign.stopping import Widths, targets
from tare.errors import HostError, StoreError, UsageError
from tare.host import facts, state
from tare.host.tuning import Tuned
from tare.image import build
from tare.image.build import Image
from tare.model import Design, Resources
from tare.platforms import registry as platforms
from tare.platforms.base import Platform
from tare.store.record import CampaignRecord, LeftOut, MetricRecord, ResourceRecord, SettingRecord, WorkloadRecord
from tare.store.store import Store
from tare.workloads import registry as workloads
from tare.workloads.base import Params, Workload

DEFAULT_MEMORY = 1 << 30
#: In place of a platform's name: all that there are. What does not run here is left out, and the report says why.
ALL = "all"
LEAST_MEMORY = 256 << 20
DUET_CPUS = 2
#: Below this the overlays, the data and the campaign file may not fit.
LEAST_FREE_DISK = 2 << 30


@dataclass(frozen=True, slots=True)
class Order:
    """What the user asked for; empty and None mean the default."""

    platforms: Sequence[str] = ()
    workloads: Sequence[str] = ()
    profile: str = "quick"
    blocks: int | None = None
    budget_s: float | None = None
    seed: int | None = None
    cpus: tuple[int, ...] = ()
    memory_bytes: int = DEFAULT_MEMORY
    subnet: str | None = None
    tune: bool = False
    design: Design = Design.BLOCKS
    replicas: int = BASELINE_REPLICAS
    params: Mapping[str, Params] = field(default_factory=dict)  # in place of the profile's, by workload
    margins: Mapping[str, float] = field(default_factory=dict)  # the user's own (`plan.make_jobs`)
    slowed: Sequence[float] = ()  # every platform also with so much more sliced work, a share of it
    precision: float | None = None  # half-width to reach, a fraction; None: half of each margin; 0: all of the time
    base: str | None = None  # the workloads' own profile where ``profile`` is a study's (`tare.campaign.study`)
    length: Profile | None = None  # such a profile's
    scale: str | None = None  # such a profile's
    offered: bool = False  # the platforms are a profile's: one that does not run here is left out
    left_out: Sequence[LeftOut] = ()  # known beforehand
    in_order: bool = False  # a block's workloads run as they are listed


def begin(order: Order, file: Path, watcher: Watcher, widths: Widths | None = None) -> None:
    """Run a new campaign into ``file``. Raises `TareError`; what is in the file by then stays."""
    _length(order)  # what is wrong with it is said before anything is done
    chosen = platforms_for(order.platforms)
    asked = frozenset(() if order.offered else order.platforms)
    jobs = make_jobs(_workloads(order.workloads), order.base or order.profile, order.params, order.margins)
    resources = resources_for(order)
    _check_design(order, resources)
    if file.exists():
        raise StoreError(f"{file} exists and is never overwritten", fix="give another name, or --resume it")
    with sole_campaign():
        check_disk()
        image = image_for(jobs, watcher.doing)
        try:
            found, missing = available(chosen, asked=asked, progress=watcher.doing)
            with (
                quietened(resources, watcher.doing, tune=order.tune) as tuned,
                prepared(image, resources, order.subnet) as (nursery, client),
            ):
                ready, broken = try_each(found, image, nursery, asked=asked, progress=watcher.doing)
                plan, ready = _plan(order, ready, jobs, resources)
                record = record_of(plan, ready, image, [*order.left_out, *missing, *broken], asked, tuned)
                with Store.create(file, record) as store:
                    _run(Runner(plan, store, nursery, client, watcher, widths, Sampler(resources.cpus)))
        finally:
            close_all(chosen)


def _plan(order: Order, ready: list[Ready], jobs: tuple[Job, ...], resources: Resources) -> tuple[Plan, list[Ready]]:
    """What is decided once it is known what runs here, and all that takes part."""
    length = _length(order)
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
        in_order=order.in_order,
        scale=order.scale,
    )
    return plan, ready


def _length(order: Order) -> Profile:
    return how_long(order.profile, order.blocks, order.budget_s, order.length)


def resume(file: Path, watcher: Watcher, widths: Widths | None = None) -> None:
    """Go on with a campaign: exactly the trials that are missing. Raises `StoreError` when it cannot be the same."""
    # A file that is none is told to whoever named it, whatever else runs here.
    with Store.open(file) as store, sole_campaign():
        record = store.record
        check_disk()
        jobs = jobs_of(record)
        image = image_for(jobs, watcher.doing)
        check_same(record, image)
        resources = Resources(tuple(record.resources.cpus), record.resources.memory_bytes)
        chosen = platforms.choose([platform.name for platform in record.platforms])
        length = (record.blocks, record.time_budget_s, record.targets, record.design)
        replicas = sum(arm.platform == chosen[0].name for arm in record.all_arms())
        plan = Plan(record.profile, record.seed, tuple(chosen), jobs, resources, *length, replicas)
        plan = replace(plan, in_order=record.in_order, scale=record.scale)
        try:
            asked = frozenset(platform.name for platform in chosen)
            available(chosen, asked=asked, progress=watcher.doing)
            with (
                quietened(resources, watcher.doing, tune=record.tuning is not None) as tuned,
                prepared(image, resources, None) as (nursery, client),
            ):
                for platform in chosen:
                    platform.prepare(image)
                store.add_event("info", "resumed")
                for line in _tuned_otherwise(record.tuning, tuned):
                    store.add_event("warning", line)
                _run(Runner(plan, store, nursery, client, watcher, widths, Sampler(resources.cpus)))
        finally:
            close_all(chosen)


def jobs_of(record: CampaignRecord) -> tuple[Job, ...]:
    """The workloads of a campaign that is there. Raises `UsageError` for one that this tare does not know."""
    return tuple(Job(workloads.get(one.name), one.params, one.margin) for one in record.workloads)


def image_for(jobs: Sequence[Job], progress: Progress) -> Image:
    """The one image for all of the campaign: with what its workloads need on top, and without where none does."""
    layers = {job.workload.layer for job in jobs} - {""}
    return build.ensure(build.agent_path(), progress=progress, layers=layers)


def resources_for(order: Order) -> Resources:
    """What every instance gets. Raises `UsageError` for what this host or an instance cannot do with."""
    usable = os.sched_getaffinity(0)
    for cpu in order.cpus:
        if cpu not in usable:
            shown = ",".join(str(one) for one in sorted(usable))
            raise UsageError(f"CPU {cpu} cannot be used here", fix=f"give --cpus out of {shown}")
    if order.memory_bytes < LEAST_MEMORY:
        raise UsageError(
            f"{order.memory_bytes >> 20} MiB are too little for an instance",
            fix=f"give --memory {LEAST_MEMORY >> 20} or more",
        )
    return Resources(order.cpus or _cpus(order, usable), order.memory_bytes)


def _cpus(order: Order, usable: Collection[int]) -> tuple[int, ...]:
    return tuple(sorted(usable)[-2:]) if order.design is Design.DUET else default_cpus()


def _check_design(order: Order, resources: Resources) -> None:
    if order.design is Design.DUET and len(resources.cpus) < DUET_CPUS:
        raise UsageError("a duet plays on two CPUs", fix="give --cpus with two of them, or leave --design duet out")
    if order.design is Design.SEQUENTIAL and order.precision:
        raise UsageError(
            "one platform after the other, nothing is known of a difference until the last has begun",
            fix="leave --precision out, or give --design blocks",
        )


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
        resources=ResourceRecord(cpus=list(plan.resources.cpus), memory_bytes=plan.resources.memory_bytes),
        host=facts.gather().model_dump(mode="json"),
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
    )


def check_same(record: CampaignRecord, image: Image) -> None:
    """Raise `StoreError` where the campaign ran other bits, or on another kernel."""
    if record.image.get("hash") != image.hash:
        before = str(record.image.get("hash"))[:16]
        raise StoreError(
            f"the campaign ran image {before}, and now there is {image.hash[:16]}: other bits, other figures",
            fix=f"resume with tare {record.tare_version}, or begin a new campaign",
        )
    kernel = facts.gather().kernel
    if record.host.get("kernel") != kernel:
        raise StoreError(
            f"the campaign ran on kernel {record.host.get('kernel')}, and this is {kernel}", fix="begin a new campaign"
        )


def check_disk() -> None:
    """Raise `HostError` where there is too little space for instances."""
    free = shutil.disk_usage(state.home()).free
    if free < LEAST_FREE_DISK:
        raise HostError(
            f"only {free / 2**30:.1f} GiB are free below {state.home()}, {LEAST_FREE_DISK / 2**30:.0f} GiB are needed",
            fix="free some space, or set TARE_HOME to a larger disk",
        )


def close_all(chosen: Sequence[Platform]) -> None:
    """Give back what platforms held."""
    for platform in chosen:
        platform.close()
