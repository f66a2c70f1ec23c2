"""One metric over all platforms, with its verdicts and what stands beside them."""

from __future__ import annotations

from tare.analysis.bounds import BoundKind
from tare.analysis.quality.findings import FindingKind
from tare.analysis.verdicts import BaselineSide, Reason, VerdictKind
from tare.model import Direction, Family, Mode
from tare.records import Documented


class NoiseFloorReport(Documented):
    """The A/A figure: overhead of the second baseline arm against the first, in percent, with its 95 % interval."""

    point_percent: float | None
    """Overhead of the second baseline arm against the first."""
    low_percent: float | None
    """Lower end of its interval."""
    high_percent: float | None
    """Upper end of its interval."""
    half_width_percent: float | None
    """Half of the interval: the campaign's noise."""
    n_blocks: int
    """Blocks that it is from."""
    excludes_zero: bool
    """Whether the interval does not hold zero."""
    detectable_percent: float | None = None
    """The smallest difference whose 95 % interval would miss zero in nine of ten such campaigns; more than the
    half-width.
    """
    reason: str | None
    """Why there is no figure."""


class FindingReport(Documented):
    """A finding beside a verdict: its code and its numbers."""

    kind: FindingKind
    """Its code."""
    numbers: dict[str, float]
    """Its numbers by name; shares and losses are fractions. Those of `contaminated`: `marked`, `ok`, and trials by
    reason.
    """
    text: str
    """The same in words."""


class UnmarkedReport(Documented):
    """A platform's figure without the contaminated trials, its own and the baseline's."""

    n_trials: int
    """Trials of the platform that are left out."""
    n_baseline: int
    """Trials of the baseline that are left out."""
    n_blocks: int
    """Blocks that are left."""
    op_percent: float | None
    """Overhead; null where too little is left."""
    op_low_percent: float | None
    """Lower end of its interval; null where too little is left."""
    op_high_percent: float | None
    """Upper end of its interval; null where too little is left."""
    verdict: VerdictKind
    """The verdict that it would be."""
    verdict_text: str
    """That verdict in words."""


class BoundReport(Documented):
    """The bound where there is no verdict; each end at a one-sided level of 95 %, in what was seen."""

    kind: BoundKind
    """Which ends are worth saying: `between` both, `at-most` the higher, `at-least` the lower."""
    low: float
    """At least this many times worse; below 1 it is better."""
    high: float
    """At most this many times worse."""
    amount_low: float | None
    """What `low` adds to the baseline's mean, in `amount_unit`; null where there is no amount."""
    amount_high: float | None
    """What `high` adds."""


class EffectReport(Documented):
    """The figure that is shown: of the estimate that the verdict is of, with the interval that decides it."""

    times: float
    """How many times worse: the ratio where lower is better, else its inverse."""
    low: float | None
    """Lower end of its interval; null of one block alone, and where all blocks show the same."""
    high: float | None
    """Upper end of its interval."""
    level: float | None
    """The interval's level: 0.95; where that excludes zero and is no verdict, the level that decides (0.99, or 0.995
    of two looks).
    """
    whole_blocks: bool
    """Whether it is of whole blocks, as `totals_percent`, and not of the typical round, as `op_percent`."""
    value: float | None
    """What the ratio makes of the baseline's mean, in `unit`: the value that is shown beside the baseline's. `mean` is
    what the platform's own blocks average, from another estimate.
    """
    bound: BoundReport | None
    """What is known where the verdict is `inconclusive`; null where that is nothing useful, and with a verdict."""


class PlatformReport(Documented):
    """One platform in one metric. Overheads: positive is worse than the baseline. Intervals: 95 %."""

    platform: str
    """Its name."""
    n_blocks: int
    """Blocks in which it and the baseline both have samples."""
    n_left_out: int
    """Blocks of the campaign in which not."""
    n_ok: int
    """Trials that ended ok."""
    n_failed: int
    """Trials that failed."""
    n_unsupported: int
    """Trials that the platform cannot do."""
    n_contaminated: int
    """Of the ok ones, trials that the host disturbed; see `contaminated`."""
    mean: float | None
    """Mean over block values, in `unit`. A block's value is work over time of all its rounds; the baseline's two arms
    together.
    """
    instead: str | None = None
    """Of a start's first mark, which it cannot have: the metric that is its headline in its place; else null."""
    sd: float | None
    """Standard deviation over block values, in `unit`."""
    median: float | None
    """Median over block values, in `unit`."""
    n_values: int = 0
    """Block values that `mean`, `sd` and `median` are of: two a block of the baseline's two arms; of other platforms
    also those of blocks in which the baseline has no samples.
    """
    unseen: str | None = None
    """Why a metric of a life has no figure, as its last trial said; null where there is one, or nothing was said."""
    ratio: float | None
    """To the mean of the baseline's arms; null for the baseline."""
    ratio_low: float | None
    """Lower end of its interval; null of one block alone."""
    ratio_high: float | None
    """Upper end of its interval; null of one block alone."""
    ratio_bootstrap_low: float | None
    """Lower end of the same interval by bootstrap (BCa), from 10 blocks on: a check."""
    ratio_bootstrap_high: float | None
    """Upper end of it."""
    effect: EffectReport | None = None
    """The figure that tables, page and exports show; null where there is no ratio."""
    op_percent: float | None
    """Performance overhead; positive is worse, whichever way the metric is better."""
    op_low_percent: float | None
    """Lower end of its interval; null of one block alone."""
    op_high_percent: float | None
    """Upper end of its interval; null of one block alone."""
    totals_percent: float | None = None
    """The same of work over time of whole blocks, stalls included; equal to it where a block has one round."""
    totals_low_percent: float | None = None
    """Lower end of its interval."""
    totals_high_percent: float | None = None
    """Upper end of its interval."""
    p95_percent: float | None = None
    """Overhead of the 95th percentile of slowness over rounds; null where rounds are too few."""
    p99_percent: float | None = None
    """The same of the 99th."""
    amount: float | None = None
    """What the ratio of `effect` adds to the baseline's mean, in `amount_unit`; positive is more, whichever way the
    metric is better. Where there can be no ratio, platform minus baseline; null for the baseline.
    """
    amount_low: float | None = None
    """Lower end of its interval, from that of `effect`; null where that has none."""
    amount_high: float | None = None
    """Upper end of its interval."""
    amount_unit: str | None = None
    """The metric's unit; of the rate of a kernel service, ns a call."""
    variability_overhead_percent: float | None
    """Overhead of standard deviations, at least 0."""
    variability_low_percent: float | None = None
    """Lower end of its interval (Bonett, 2006), from five blocks on."""
    variability_high_percent: float | None = None
    """Upper end of its interval."""
    verdict: VerdictKind
    """The verdict."""
    verdict_text: str
    """The verdict in words, with the interval."""
    findings: list[FindingReport] = []
    """What was noticed: `stalls`, `unseen`, `failures`, `resolution`, `no-spread`."""
    certain: BaselineSide | None = None
    """Where the 99 % interval (99.5 % where there are two looks) leaves no doubt of the side, whatever the verdict;
    else null. With the verdict `inconclusive`: there is a difference, and whether it is beyond the margin is open (△,
    ▽); null there: nobody can tell (?).
    """
    verdict_reason: Reason | None = None
    """What the verdict rests on. slower, faster: `typical-round`, `whole-blocks`; equivalent, typical: `within-margin`;
    inconclusive: `too-few-blocks`, `one-block`, `unreliable`, `chance`, `looks-differ`, `blocks-wider`,
    `failed-beyond`, `size-open`, `wide-interval`, `wide-floor`; invalid: `baselines-differ`, `baselines-drift`,
    `drift`; no-data: `no-data`, `unsupported`, `all-failed`, `not-shown`, `no-baseline`, `all-marked`, and where a
    figure is refused `unfit`, `unfit-baseline`, `not-alike`; `baseline`. Null in older reports.
    """
    cautions: list[FindingReport] = []
    """All that stands beside the verdict: the findings but `unseen`, and `contaminated`, `blocks-left-out`,
    `single-baseline`, `bootstrap`, `after-each-other`, `drift`, `one-baseline`, `no-floor`, `wide-floor`,
    `floor-excludes-zero`, `unmarked`, `client-limited`, `client-near`, `client-dearer`, `clock-off`, `clock-open`,
    `disk-limited`, `headline-differs`, `shared-pages`.
    """
    notes: list[str]
    """The texts of the cautions, in the same order, and then the remark."""
    remark: str | None = None
    """What its figures of this family are to be read with: what the platform itself said (`PlatformFacts.remarks`), and
    of network and application figures another MTU than the baseline's.
    """
    contaminated_by: dict[str, int] = {}
    """Trials of `n_contaminated` by reason."""
    unmarked: UnmarkedReport | None = None
    """The figure without the contaminated trials; null where neither its own nor the baseline's are marked."""
    p_adjusted: float | None = None
    """p of slower and faster (of equivalent: that of equivalence), adjusted by Holm over headlines and CPU costs; null
    of any other metric.
    """
    survives_holm: bool | None = None
    """Whether `p_adjusted` is at most 5 %; null where there is no such verdict."""


class ResultReport(Documented):
    """One metric of one workload over all platforms."""

    workload: str
    """The workload's name."""
    workload_title: str
    """The workload in words."""
    family: Family
    """Its family."""
    mode: Mode
    """How it is scheduled within a block."""
    metric: str
    """The metric's name."""
    metric_title: str
    """The metric in words."""
    headline: bool
    """Whether it is the workload's first metric, or of a start the first that some platform can have."""
    unit: str
    """Its unit."""
    direction: Direction
    """Which way is better."""
    margin_percent: float
    """The margin of the verdicts, stated before the data."""
    noise_floor: NoiseFloorReport | None
    """The A/A figure; null with one baseline arm."""
    platforms: list[PlatformReport]
    """One entry a platform, the baseline first."""


class MultiplicityReport(Documented):
    """Headlines and CPU costs together: what chance alone would give, and what survives Holm's correction."""

    n_rows: int
    """Headlines and CPU costs with an interval that could have been given any verdict."""
    n_different: int
    """Of these, slower or faster."""
    by_chance: float
    """So many of these were to be expected if no platform differed at all."""
    n_different_sure: int
    """Of the different ones, those that survive Holm's correction over all rows."""
    n_equivalent: int
    """Of `n_rows`, equivalent."""
    n_equivalent_sure: int
    """Of these, those that survive it."""


class DependenceReport(Documented):
    """Lag-1 autocorrelation of the blocks' log ratios, pooled over the figures of a report or a calibration."""

    n_series: int
    """Number of figures."""
    n_blocks: int
    """Blocks of the longest series."""
    correlation: float
    """At lag 1, without `bias`."""
    low: float
    """Lower end of its interval, of about 95 %."""
    high: float
    """Upper end of it."""
    bias: float
    """The estimate for blocks in random order; about -1/n."""
    p: float
    """The chance that blocks in random order show as much or more."""
    too_narrow: float
    """The factor by which intervals may be too narrow."""
    note: str | None
    """The same in words; null where blocks look independent."""
