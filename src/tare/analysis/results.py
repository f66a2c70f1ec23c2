"""The results of analysing a campaign: plain figures, one `MetricResult` for each workload and metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from tare.analysis.effects import Effect
from tare.analysis.trust.findings import Finding
from tare.analysis.verdicts import Kind, Reason, Verdict
from tare.estimates.grid import BlockRatios
from tare.estimates.intervals import Amount, Floats, Interval
from tare.estimates.looks import Looks
from tare.model import Direction

_NOTHING = Verdict(Kind.NO_DATA, Reason.NO_DATA)


class FloorReason(StrEnum):
    """Why there is no A/A figure though there are two baseline arms."""

    UNFIT = "unfit"  # samples without a ratio
    TOO_FEW_BLOCKS = "too-few-blocks"


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """What no difference looks like: the overhead of the second baseline arm against the first, a fraction.

    ``interval`` is None below two blocks.
    """

    interval: Interval | None
    n_blocks: int
    reason: FloorReason | None = None  # why there is no interval
    excludes_zero: bool = False
    detectable: float | None = None  # the smallest difference that nine of ten campaigns with such noise find


@dataclass(frozen=True, slots=True)
class Counts:
    """How many trials of a platform and workload there are, by how they ended."""

    ok: int = 0
    failed: int = 0
    unsupported: int = 0
    contaminated: int = 0  # ok, but the host disturbed them; see `contamination`
    reasons: Mapping[str, int] = field(default_factory=dict)  # of these, by reason; a trial may have several


@dataclass(frozen=True, slots=True)
class Description:
    """Over block values, in the metric's unit; a block's value is the median over its rounds."""

    n: int
    mean: float | None
    sd: float | None  # None below two values
    median: float | None

    @classmethod
    def of(cls, values: Floats) -> Description:
        """No figures where there are no values, or where any of them is not finite."""
        if not values.size or not np.isfinite(values).all():
            return cls(int(values.size), None, None, None)
        deviation = float(values.std(ddof=1)) if values.size > 1 else None
        return cls(int(values.size), float(values.mean()), deviation, float(np.median(values)))


@dataclass(frozen=True, slots=True)
class Tails:
    """How slow the slowest rounds are beside the baseline's slowest, as overheads; None where rounds are too few."""

    p95: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class Unmarked:
    """What a platform's figure would be without the trials that are marked as contaminated."""

    n_trials: int  # of the platform, left out here
    n_baseline: int  # of the baseline
    n_blocks: int  # that are left
    overhead: Interval | None  # 95 %; None where too little is left
    verdict: Verdict
    effect: Effect | None = None


@dataclass(frozen=True, slots=True)
class Lone:
    """The figures of a single block, which has no interval."""

    ratio: float
    overhead: float


@dataclass(frozen=True, slots=True)
class PlatformResult:
    """One platform against the baseline in one metric; overheads are fractions, positive is worse."""

    platform: str
    n_blocks: int  # in which platform and baseline both have samples
    n_left_out: int  # blocks of the campaign in which they do not
    counts: Counts
    described: Description
    ratio: Interval | None = None  # 95 %
    lone: Lone | None = None  # of the only block that there is, where there is only one
    amount: Amount | None = None  # what it adds, in the metric's unit; also where there can be no ratio
    effect: Effect | None = None  # the figure that is shown; None: there is no ratio
    bootstrap: Interval | None = None  # of the ratio, 95 %
    overhead: Interval | None = None  # 95 %, of the typical round
    totals: Interval | None = None  # 95 %, of work over time of whole blocks; equal to it where a block has one round
    tails: Tails | None = None  # None: a block has one round
    variability_overhead: float | None = None
    variability: Interval | None = None  # the same with its 95 % interval; from five blocks on
    verdict: Verdict = _NOTHING
    findings: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()  # what stands beside the verdict, in that order
    unmarked: Unmarked | None = None  # None: neither its trials nor the baseline's are marked
    looks: Looks | None = None  # None: fewer than two blocks, or no ratio
    pairs: BlockRatios | None = field(default=None, compare=False)  # None: nothing is paired
    p: float | None = None  # of its verdict, adjusted for all of a report; see `multiplicity`
    survives_holm: bool | None = None  # None: no verdict to correct, or not corrected yet


@dataclass(frozen=True, slots=True)
class MetricResult:
    """One metric of one workload over all platforms, the baseline first."""

    workload: str
    metric: str
    unit: str
    direction: Direction
    margin: float
    noise_floor: NoiseFloor | None  # None where the campaign has one baseline arm
    platforms: tuple[PlatformResult, ...]
