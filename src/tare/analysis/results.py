"""Results of analysing a campaign: plain figures, one `MetricResult` for each workload and metric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from tare.analysis.effects import Effect
from tare.analysis.quality.findings import Finding
from tare.analysis.verdicts import Reason, Verdict, VerdictKind
from tare.estimates.grid import BlockRatios
from tare.estimates.intervals import Amount, Floats, Interval
from tare.estimates.looks import Looks
from tare.model import Direction

_NOTHING = Verdict(VerdictKind.NO_DATA, Reason.NO_DATA)


class FloorReason(StrEnum):
    """Reason why there is no A/A figure although there are two baseline arms."""

    UNFIT = "unfit"  # Samples without a ratio.
    TOO_FEW_BLOCKS = "too-few-blocks"


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """Noise floor: the overhead of the second baseline arm against the first, a fraction.

    ``interval`` is None below two blocks.
    """

    interval: Interval | None
    n_blocks: int
    reason: FloorReason | None = None  # The reason for no interval.
    excludes_zero: bool = False
    detectable: float | None = None  # The smallest difference that nine of ten campaigns with such noise find.


@dataclass(frozen=True, slots=True)
class TrialCounts:
    """Numbers of trials of a platform and workload by status."""

    ok: int = 0
    failed: int = 0
    unsupported: int = 0
    contaminated: int = 0  # Successful, but the host disturbed them; see `contamination`.
    reasons: Mapping[str, int] = field(default_factory=dict)  # Contaminated trials by reason; a trial may have several.


@dataclass(frozen=True, slots=True)
class Description:
    """Summary of block values in the metric's unit; a block's value is the median over its rounds."""

    n: int
    mean: float | None
    sd: float | None  # None below two values.
    median: float | None

    @classmethod
    def of(cls, values: Floats) -> Description:
        """Describe values. Without values, or with any that is not finite, there are no figures."""
        if not values.size or not np.isfinite(values).all():
            return cls(int(values.size), None, None, None)
        deviation = float(values.std(ddof=1)) if values.size > 1 else None
        return cls(int(values.size), float(values.mean()), deviation, float(np.median(values)))


@dataclass(frozen=True, slots=True)
class Tails:
    """Overheads of the slowest rounds against the baseline's slowest; None with too few rounds."""

    p95: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class Unmarked:
    """A platform's figure without the contaminated trials."""

    n_trials: int  # Of the platform, left out here.
    n_baseline: int  # Of the baseline.
    n_blocks: int  # Remaining blocks.
    overhead: Interval | None  # 95 %; None if too little remains.
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
    n_blocks: int  # Blocks in which platform and baseline both have samples.
    n_left_out: int  # Other blocks of the campaign.
    counts: TrialCounts
    described: Description
    ratio: Interval | None = None  # 95 %.
    lone: Lone | None = None  # Of the only block, if there is only one.
    amount: Amount | None = None  # The added amount, in the metric's unit; also without a ratio.
    effect: Effect | None = None  # The figure to show; None: there is no ratio.
    bootstrap: Interval | None = None  # Of the ratio, 95 %.
    overhead: Interval | None = None  # 95 %, of the typical round.
    # 95 %, of work over time of whole blocks; equal to ``overhead`` if a block has one round.
    totals: Interval | None = None
    tails: Tails | None = None  # None: a block has one round.
    variability_overhead: float | None = None
    variability: Interval | None = None  # With its 95 % interval; from five blocks on.
    verdict: Verdict = _NOTHING
    findings: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()  # Findings beside the verdict, in this order.
    unmarked: Unmarked | None = None  # None: neither its trials nor the baseline's are marked.
    looks: Looks | None = None  # None: fewer than two blocks, or no ratio.
    pairs: BlockRatios | None = field(default=None, compare=False)  # None: nothing is paired.
    p: float | None = None  # Of its verdict, adjusted for all of a report; see `multiplicity`.
    survives_holm: bool | None = None  # None: no verdict to correct, or not corrected yet.


@dataclass(frozen=True, slots=True)
class MetricResult:
    """One metric of one workload over all platforms, the baseline first."""

    workload: str
    metric: str
    unit: str
    direction: Direction
    margin: float
    noise_floor: NoiseFloor | None  # None if the campaign has one baseline arm.
    platforms: tuple[PlatformResult, ...]
