"""The plan of a campaign, as pure data, from what the user asked for and what the host has."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING

from tare.errors import Failed, UsageError, attempt
from tare.extensions import feature_modules
from tare.model import Arm, Design, Family, Mode, Resources
from tare.workloads.apart import BesideWorkload, RunDensity, SplitWorkload
from tare.workloads.base import Params, RunWorkload, SliceWorkload, Surroundings, Workload
from tare.workloads.workload_contract import require_params

if TYPE_CHECKING:
    from tare.platforms.base import Platform

#: The baseline runs twice in every block: the difference of the two is the instrument's own noise.
BASELINE_REPLICAS = 2
#: Of a campaign: years of work, and a number that a file can hold.
MAX_BLOCKS = 1_000_000


@dataclass(frozen=True, slots=True)
class RunProfile:
    """A profile's workloads, and its default length: a number of blocks, or a time.

    ``workloads``: those that it has unless the user names some; none: all that are by default.
    """

    blocks: int | None = None
    budget_s: float | None = None
    arm_s: float | None = None  # instead of a budget: for each arm, so that more platforms are not fewer blocks
    workloads: tuple[str, ...] = ()

    def budget(self, arms: int) -> float | None:
        """The time for a campaign of so many arms, in seconds; None where the length is a number of blocks."""
        return self.budget_s if self.arm_s is None else self.arm_s * arms


#: A figure for each dimension of the answer: few workloads make many short blocks, and blocks narrow intervals.
QUICK = ("startup", "memory-footprint", "primes", "stream", "sysbench-fileio-seqrd", "udp-rtt", "redis")
PROFILES: Mapping[str, RunProfile] = {"quick": RunProfile(arm_s=64.0, workloads=QUICK), "full": RunProfile(blocks=30)}


@dataclass(frozen=True, slots=True)
class Preset:
    """A campaign with a name: platforms (those that run here), workloads with `quick`'s parameters, and a length."""

    platforms: Sequence[str]
    workloads: Sequence[str]
    length: RunProfile


PRESETS: Mapping[str, Preset] = {
    "apps-small": Preset(
        ("native", "runc", "docker", "gvisor", "qemu"),
        (
            "redis", "redis-connections-1", "redis-connections-100", "redis-connections-1000", "memcached",
            "nginx", "nginx-connections-1", "nginx-connections-100", "nginx-connections-1000", "nginx-ab",
            "mariadb-read", "mariadb-write", "mariadb-read-write", "postgresql", "build-pipeline",
            "site", "site-users-100", "site-users-400", "site-users-1600", "site-split",
        ),
        RunProfile(arm_s=380.0),  # six arms, the baseline's two among them, in 38 minutes
    ),
    "life": Preset(
        ("native", "runc", "docker", "podman", "gvisor", "qemu"),
        ("startup", "whole-life", "exec", "pause", "kill", "burst", "snapshot-64"),
        RunProfile(arm_s=120.0),  # seven arms in 14 minutes; platforms are looked for in the 15th
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class WorkloadJob:
    """A workload with the parameters that it will run with."""

    workload: Workload
    params: Params
    own_margin: float | None = None  # in place of the workload's

    @property
    def margin(self) -> float:
        """Relative difference below which a platform counts as equal, stated before the data."""
        return self.workload.margin if self.own_margin is None else self.own_margin

    @property
    def rounds(self) -> int:
        """Rounds of slices, or of several runs in turn; 0 where a block has one run of an arm."""
        if isinstance(self.workload, SliceWorkload):
            return int(self.params["rounds"]) + int(self.params.get("long_rounds", 0))
        runs = int(self.params.get("rounds", 1)) if isinstance(self.workload, RunWorkload) else 1
        return runs if runs > 1 else 0

    @property
    def has_client(self) -> bool:
        """True if a client calls the instance: whether its plan is another one where the address and port are.

        What cannot be planned beforehand is taken to have one.
        """
        inner, params = self.workload, self.params
        if isinstance(self.workload, RunDensity | BesideWorkload):
            inner, params = self.workload.inner, self.workload.inner_params(params)
        elif isinstance(self.workload, SplitWorkload):
            inner = self.workload.inner
        if not isinstance(inner, RunWorkload):
            return False
        plans = []
        for address, port in (("192.0.2.1", 1), ("192.0.2.2", 2)):  # RFC 5737's, for examples
            around = Surroundings(1 << 30, 1, 1 << 40, address, port, 3, ping="192.0.2.3")
            planned = attempt(partial(inner.plan, params, around))
            if isinstance(planned, Failed):
                return True
            plans.append(planned)
        return plans[0] != plans[1]


@dataclass(frozen=True, slots=True)
class CampaignPlan:
    """All decisions that are made before the first block."""

    profile: str
    seed: int
    platforms: tuple[Platform, ...]  # the baseline first
    jobs: tuple[WorkloadJob, ...]
    resources: Resources
    blocks: int | None  # None: as many as the budget holds
    budget_s: float | None
    targets: Mapping[str, float] = field(default_factory=dict)  # half-width to reach, by workload; empty: no looks
    design: Design = Design.BLOCKS
    replicas: int = BASELINE_REPLICAS  # of the baseline; more than two to compare it with itself (`tare calibrate`)
    extra: Mapping[str, Params] = field(default_factory=dict)  # more parameters of sliced work, by platform
    slowed: tuple[float, ...] = ()  # the shares of more work that ``extra`` comes from
    in_order: bool = False  # a block's workloads run as they are listed
    scale: str | None = None  # of a study's profile
    #: by platform, the only families in which it runs: a second baseline that was not named
    only_in: Mapping[str, frozenset[Family]] = field(default_factory=dict)
    look_at: int | None = None  # a block before which the intervals are looked at, besides the usual looks

    @property
    def baseline(self) -> Platform:
        """The platform that the others are compared with."""
        return self.platforms[0]

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The treatments of a block: every platform once, the baseline twice."""
        return arms_of(self.platforms, self.replicas)

    @property
    def passes(self) -> tuple[tuple[Arm, ...], ...]:
        """The arms of each pass over the blocks: one pass with all of them, or one for each arm after the other.

        One after the other, the baseline's second arm comes last: what it differs by from the first is what the
        machine drifted by while the others ran.
        """
        if self.design is not Design.SEQUENTIAL:
            return (self.arms,)
        return tuple((arm,) for arm in sorted(self.arms, key=lambda arm: arm.replica))

    def takes_part(self, workload: Workload, arm: Arm) -> bool:
        """Return True if an arm runs a workload; starts are measured of all arms that a block has.

        A second baseline of applications differs from the first by the network: it runs those with a client.
        """
        families = self.only_in.get(arm.platform)
        if families is None or workload.mode is Mode.START:
            return True
        return workload.family in families and (workload.family is not Family.APPLICATION or self._has_client(workload))

    def _has_client(self, workload: Workload) -> bool:
        return any(job.has_client for job in self.jobs if job.workload.name == workload.name)

    def more_blocks(self, block: int, spent_s: float, takes_s: float) -> bool:
        """Return True if block ``block`` (from 0) of a pass is to run.

        ``spent_s``: seconds that the pass has taken so far; ``takes_s``: that the block is expected to take.
        """
        if self.blocks is not None:
            return block < self.blocks
        assert self.budget_s is not None
        return block == 0 or spent_s + takes_s <= self.budget_s / len(self.passes)


def only_in(platforms: Sequence[Platform], asked: Collection[str]) -> dict[str, frozenset[Family]]:
    """By platform, the families of the second baselines that were not asked for by name."""
    return {
        platform.name: frozenset(platform.second_baseline)
        for platform in platforms
        if platform.second_baseline and platform.name not in asked
    }


def families_of(jobs: Sequence[WorkloadJob]) -> set[Family]:
    """The families of these jobs for which a second baseline may take part: of applications, those with a client."""
    return {job.workload.family for job in jobs if job.workload.family is not Family.APPLICATION or job.has_client}


def arms_of(platforms: Sequence[Platform], replicas: int = BASELINE_REPLICAS) -> tuple[Arm, ...]:
    """The arms of these platforms: one of each, and ``replicas`` of the baseline."""
    return tuple(
        Arm(platform.name, replica) for platform in platforms for replica in range(replicas if platform.baseline else 1)
    )


def make_jobs(
    workloads: Sequence[Workload],
    profile: str,
    params: Mapping[str, Params] | None = None,
    margins: Mapping[str, float] | None = None,
) -> tuple[WorkloadJob, ...]:
    """The workloads with the profile's parameters. ``params``, by workload, replace those of the profile.

    ``margins``: the user's own, by workload, by family, or for all (the empty name); the most specific applies. Raises
    `UsageError` for a margin of none of these, and for parameters that a workload does not have.
    """
    own_params, own_margins = params or {}, margins or {}
    jobs = []
    for workload in workloads:
        names = (workload.name, workload.family.value, "")
        margin = next((own_margins[name] for name in names if name in own_margins), None)
        jobs.append(job_of(workload, {**workload.profiles[profile], **own_params.get(workload.name, {})}, margin))
    valid_names = {"", *(workload.name for workload in workloads), *(family.value for family in Family)}
    for name in own_margins.keys() - valid_names:
        raise UsageError(
            f"no margin can be given for {name!r}", fix="name a workload of the campaign, or a family: cpu"
        )
    return tuple(jobs)


def job_of(workload: Workload, params: Params, margin: float | None) -> WorkloadJob:
    """The workload with these parameters. Raises `UsageError` for parameters that it does not have."""
    require_params(workload, params)
    return WorkloadJob(workload, params, margin)


def feature_profiles() -> dict[str, ModuleType]:
    """Return the profiles that features add, by name, with the feature's module (`tare.campaign.plan.presets`)."""
    return {name: module for module in feature_modules("profiles") for name in module.names()}


def how_long(profile: str, blocks: int | None, budget_s: float | None, own: RunProfile | None = None) -> RunProfile:
    """The campaign's length: the user's blocks or time, or else the profile's. Raises `UsageError`.

    ``own``: the length of a feature's profile.
    """
    if own is None and profile not in PROFILES:
        profiles = [*PROFILES, *PRESETS, *feature_profiles()]
        raise UsageError(f"there is no profile {profile!r}", fix=f"use one of {', '.join(profiles)}")
    if blocks is not None and blocks < 1:
        raise UsageError(f"{blocks} blocks cannot be run", fix="give at least 1; 10 or more make good intervals")
    if blocks is not None and blocks > MAX_BLOCKS:
        raise UsageError(f"{blocks} blocks would never end", fix=f"give at most {MAX_BLOCKS}, or a time such as 5m")
    if budget_s is not None and budget_s <= 0:
        raise UsageError("a campaign needs some time", fix="give a time such as 5m")
    if blocks is None and budget_s is None:
        return own or PROFILES[profile]
    return RunProfile(blocks, budget_s if blocks is None else None)
