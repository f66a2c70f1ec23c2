"""What a campaign will do, as pure data, from what the user asked for and what the host has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tare.errors import UsageError
from tare.model import Arm, Design, Resources
from tare.platforms.base import Platform
from tare.workloads.base import Params, SliceWorkload, Workload

#: The baseline runs twice in every block: the difference of the two is the instrument's own noise.
BASELINE_REPLICAS = 2


@dataclass(frozen=True, slots=True)
class Profile:
    """How long a campaign goes on when the user does not say."""

    blocks: int | None = None
    budget_s: float | None = None
    arm_s: float | None = None  # instead of a budget: so much for each arm, that more platforms are not fewer blocks

    def budget(self, arms: int) -> float | None:
        """The time that there is for so many arms, in seconds; None where blocks are counted."""
        return self.budget_s if self.arm_s is None else self.arm_s * arms


PROFILES: Mapping[str, Profile] = {"quick": Profile(arm_s=64.0), "full": Profile(blocks=30)}


@dataclass(frozen=True, slots=True)
class Job:
    """A workload with the parameters that it will run with."""

    workload: Workload
    params: Params

    @property
    def rounds(self) -> int:
        """Rounds of slices; 0 where the workload is not sliced."""
        return int(self.params["rounds"]) if isinstance(self.workload, SliceWorkload) else 0


@dataclass(frozen=True, slots=True)
class Plan:
    """All that is decided before anything runs."""

    profile: str
    seed: int
    platforms: tuple[Platform, ...]  # the baseline first
    jobs: tuple[Job, ...]
    resources: Resources
    blocks: int | None  # None: as many as the budget holds
    budget_s: float | None
    targets: Mapping[str, float] = field(default_factory=dict)  # half-width to reach, by workload; none: not looked at
    design: Design = Design.BLOCKS
    replicas: int = BASELINE_REPLICAS  # of the baseline; more than two to compare it with itself (`tare calibrate`)
    extra: Mapping[str, Params] = field(default_factory=dict)  # more parameters of sliced work, by platform

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

    def more_blocks(self, block: int, spent_s: float, slowest_s: float) -> bool:
        """Whether block ``block`` (from 0) of a pass is to run, after so much time in it and with such blocks."""
        if self.blocks is not None:
            return block < self.blocks
        assert self.budget_s is not None
        return block == 0 or spent_s + slowest_s <= self.budget_s / len(self.passes)


def arms_of(platforms: Sequence[Platform], replicas: int = BASELINE_REPLICAS) -> tuple[Arm, ...]:
    """Every platform once, the baseline so many times."""
    return tuple(
        Arm(platform.name, replica) for platform in platforms for replica in range(replicas if platform.baseline else 1)
    )


def make_jobs(
    workloads: Sequence[Workload], profile: str, params: Mapping[str, Params] | None = None
) -> tuple[Job, ...]:
    """The workloads with the profile's parameters; ``params``: others in their place, by workload."""
    others = params or {}
    return tuple(
        Job(workload, {**workload.profiles[profile], **others.get(workload.name, {})}) for workload in workloads
    )


def how_long(profile: str, blocks: int | None, budget_s: float | None) -> Profile:
    """The profile's length, unless the user gave blocks or a time."""
    if profile not in PROFILES:
        raise UsageError(f"there is no profile {profile!r}", fix=f"use one of {', '.join(PROFILES)}")
    if blocks is not None and blocks < 1:
        raise UsageError(f"{blocks} blocks cannot be run", fix="give at least 1; 10 or more make good intervals")
    if budget_s is not None and budget_s <= 0:
        raise UsageError("a campaign needs some time", fix="give a time such as 5m")
    if blocks is None and budget_s is None:
        return PROFILES[profile]
    return Profile(blocks, budget_s if blocks is None else None)


def parse_time(text: str) -> float:
    """Seconds from ``90``, ``90s``, ``5m`` or ``1.5h``."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = (text[:-1], units[text[-1]]) if text and text[-1] in units else (text, 1.0)
    try:
        return float(number) * unit
    except ValueError:
        raise UsageError(f"{text!r} is not a time", fix="write 90s, 5m or 1.5h") from None
