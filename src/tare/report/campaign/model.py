"""The report as data: what ``tare report --json`` prints. Documented in docs/report-schema.md.

A field is only ever added under one ``schema``; what changes its meaning gets another number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

from tare.analysis.answers import Dimension, State
from tare.analysis.comparisons.verdicts import Kind, Reason, Side
from tare.analysis.trust.findings import FindingKind
from tare.model import Design, Direction, Family, Mode, Status
from tare.report.footprint.model import FootprintsReport
from tare.report.surface.model import SurfacesReport
from tare.store import SettingOutcome

SCHEMA: Final = "tare.report/2"
SCHEMA_MANY: Final = "tare.reports/1"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def host_title(host: Mapping[str, Any]) -> str:
    """What names a host: its name where the campaign recorded one, or its CPU."""
    cpu = host.get("cpu")
    model = cpu.get("model") if isinstance(cpu, dict) else None
    return str(host.get("name") or model or "this host")


class NoiseFloorReport(_Frozen):
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


class FindingReport(_Frozen):
    """A finding beside a verdict: its code and its numbers."""

    kind: FindingKind
    """Its code."""
    numbers: dict[str, float]
    """Its numbers by name; shares and losses are fractions. Those of `contaminated`: `marked`, `ok`, and trials by
    reason.
    """
    text: str
    """The same in words."""


class UnmarkedReport(_Frozen):
    """What a platform's figure would be without the contaminated trials, its own and the baseline's."""

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
    verdict: Kind
    """The verdict that it would be."""
    verdict_text: str
    """That verdict in words."""


class PlatformReport(_Frozen):
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
    """Platform minus baseline, in `amount_unit`; positive is more, whichever way the metric is better. Also where there
    can be no ratio; null for the baseline.
    """
    amount_low: float | None = None
    """Lower end of its interval; null below two blocks."""
    amount_high: float | None = None
    """Upper end of its interval; null below two blocks."""
    amount_unit: str | None = None
    """The metric's unit; of the rate of a kernel service, ns a call."""
    variability_overhead_percent: float | None
    """Overhead of standard deviations, at least 0."""
    variability_low_percent: float | None = None
    """Lower end of its interval (Bonett, 2006), from five blocks on."""
    variability_high_percent: float | None = None
    """Upper end of its interval."""
    verdict: Kind
    """The verdict."""
    verdict_text: str
    """The verdict in words, with the interval."""
    findings: list[FindingReport] = []
    """What was noticed: `stalls`, `unseen`, `failures`, `resolution`, `no-spread`."""
    certain: Side | None = None
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
    `floor-excludes-zero`, `unmarked`, `headline-differs`.
    """
    notes: list[str]
    """The texts of the cautions, in the same order, and then the remark."""
    remark: str | None = None
    """What the platform itself said of its figures of this family (`PlatformFacts.remarks`)."""
    contaminated_by: dict[str, int] = {}
    """Trials of `n_contaminated` by reason."""
    unmarked: UnmarkedReport | None = None
    """The figure without the contaminated trials; null where neither its own nor the baseline's are marked."""
    p_adjusted: float | None = None
    """p of slower and faster (of equivalent: that of equivalence), adjusted by Holm over the whole report."""
    survives_holm: bool | None = None
    """Whether `p_adjusted` is at most 5 %; null where there is no such verdict."""


class ResultReport(_Frozen):
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


class DimensionReport(_Frozen):
    """A platform in one dimension, shown by the worst of its headline figures; nothing is pooled."""

    dimension: Dimension
    """The dimension."""
    state: State
    """How the platform stands: `worse`, `better`, `alike`, `open`, `once` (seen in one block), `none`."""
    workload: str
    """The workload whose figure is shown."""
    metric: str
    """Its metric."""
    n_figures: int
    """Of so many figures it is the worst."""
    felt: float
    """How much a user may feel of it: 1 is as much as a doubled time; below 0 it is better."""
    op_percent: float | None
    """Its overhead; null where there is no ratio."""
    value: float | None = None
    """The platform's mean of that figure, in `unit`."""
    unit: str = ""
    """The figure's unit."""
    figure: str
    """The difference in words: "+4.1 %", "+132 ms"."""
    text: str
    """The same as a clause, with the platform's value and the baseline's."""


class SettlingReport(_Frozen):
    """A campaign that would tell what is open of a platform."""

    workloads: list[str]
    """The workloads that an hour would settle; empty where none."""
    blocks: int
    """How many blocks they need."""
    seconds: float
    """What that takes."""
    command: str
    """The command; "" where there are no such workloads."""
    beyond: list[str]
    """The workloads that would take longer, on this host as it was."""
    beyond_seconds: float
    """What these would take."""


class AnswerReport(_Frozen):
    """What the campaign says of a platform, what matters most first."""

    platform: str
    """The platform."""
    sentences: list[str]
    """In words: what is worse, what is like the baseline, what is better, and last what is open; where the last ends
    with a colon, `settling.command` follows it.
    """
    dimensions: list[DimensionReport]
    """Where it stands, the most felt first."""
    daemon: bool
    """Whether a daemon that its instances share works for it."""
    needs_root: bool | None = None
    """Whether only root, or a daemon of root's, can do what it does; null: the campaign does not say."""
    calls: int | None
    """System calls of the host's kernel that its tenant may make; null: `tare surface` did not read it."""
    baseline_calls: int | None
    """Those of the baseline's tenant."""
    settling: SettlingReport | None
    """What would settle what is open; null where nothing is, or nobody can predict it."""


class FailureReport(_Frozen):
    """Trials of one workload and platform that ended alike."""

    workload: str
    """The workload."""
    platform: str
    """The platform."""
    status: Literal[Status.FAILED, Status.UNSUPPORTED]
    """How they ended."""
    reason: str
    """Why."""
    n_trials: int
    """How many trials."""
    blocks: list[int]
    """The blocks that they were in."""


class PlatformFacts(_Frozen):
    """A platform as it was on the day."""

    name: str
    """Its name."""
    title: str
    """The name in words."""
    version: str
    """What answered on the host."""
    details: dict[str, str]
    """Further facts by name."""
    image_bytes: int | None
    """Size of its image on disk, bytes; null where not known."""
    not_honoured: list[str]
    """What of the common settings it could not honour."""
    open_by_design: dict[str, str]
    """Doors to the host that it leaves open, `*` for all, each with the reason (docs/doors.md)."""
    network_path: str
    """How its packets go."""
    remarks: dict[str, str] = {}
    """What its figures of a family of workloads are to be read with, by the family, as its first instance showed."""
    daemon: str | None = None
    """The program on the host that its instances share, such as `dockerd`; "": there is none; null: the campaign does
    not say.
    """
    needs_root: bool | None = None
    """Whether only root, or a daemon of root's, can do what it does; null: the campaign does not say."""
    daemons_share: float | None = None
    """CPU time of its shared daemons, such as dockerd, by its trials' time, as a share of a core; not in any figure.
    Null where there are none or it cannot be read.
    """


class DifferenceReport(_Frozen):
    """A fact in which a platform differs from the baseline."""

    platform: str
    """The platform."""
    fact: str
    """The fact of the fairness manifest."""
    value: str
    """What it is there."""
    baseline: str
    """What it is on the baseline."""
    unfair: str | None
    """What is compared then instead of the platform, such as "other bits"; null where the fact is a part of the
    platform.
    """


class LeftOutReport(_Frozen):
    """A platform that did not take part, and why."""

    platform: str
    """The platform."""
    reason: str
    """Why."""
    fix: str | None
    """How to have it."""


class SettingReport(_Frozen):
    """A setting of the host's that `tare run --tune` looked at."""

    name: str
    """The setting."""
    path: str
    """Its file; empty where the host has none such."""
    outcome: SettingOutcome
    """What became of it."""
    former: str | None
    """The value before the campaign; null where there is none."""
    value: str | None
    """The value during it; null where there is none."""
    why: str
    """Why it is wanted so, or why it was not changed."""


class Contamination(_Frozen):
    """Trials that the host or the machine below disturbed; they are marked, shown and kept."""

    steal_threshold: float
    """The limit of steal, a share of the pinned CPUs' time; also in `limits`."""
    n_trials: int
    """Trials that are marked."""
    n_all_trials: int
    """All trials."""
    reasons: dict[str, int] = {}
    """Trials by reason: `steal`, `foreign-cpu`, `sibling`, `throttled`, `swap`, `memory-pressure`; a trial may have
    several.
    """
    limits: dict[str, float] = {}
    """Above which a trial is marked, by reason: shares of time, periods or pages a second."""
    told: list[str] = []
    """The reasons that there are, in words."""
    n_ticks: int = 0
    """Readings of the telemetry; 0: only steal could be seen."""


class MultiplicityReport(_Frozen):
    """All verdicts of the report together: what chance alone would give, and what survives Holm's correction."""

    n_rows: int
    """Figures with an interval that could have been given any verdict."""
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


class DependenceReport(_Frozen):
    """Lag-1 autocorrelation of the blocks' log ratios, pooled over the report's figures."""

    n_series: int
    """Figures that it is from."""
    n_blocks: int
    """Blocks that it is from."""
    correlation: float
    """At lag 1; the bias of independent blocks is taken off."""
    low: float
    """Lower end of its interval, of about 95 %."""
    high: float
    """Upper end of it."""
    p: float
    """The chance that blocks in random order show as much or more."""
    too_narrow: float
    """The factor by which intervals may be too narrow."""
    note: str | None
    """The same in words; null where blocks look independent."""


class EventReport(_Frozen):
    """Something worth knowing that happened while the campaign ran."""

    at: float
    """When, UNIX seconds."""
    level: str
    """How grave: `info`, `warning` ..."""
    text: str
    """What happened."""


#: How a study's figure lies to our interval: inside; or outside, where ours may be no difference at all, theirs lies on
#: the same side of the baseline and further from it, nearer to it, or on the other side.
Agreement = Literal["inside", "open", "further", "nearer", "other-side", "no-figure"]


class BesideRow(_Frozen):
    """A study's figure and ours, both in per cent: of the own baseline's figure, or overhead of standard deviations."""

    metric: str
    """The study's metric."""
    where: str
    """Its table, figure or section."""
    study_platform: str
    """The study's platform."""
    platform: str
    """Our platform."""
    workload: str
    """Our workload."""
    ours: str
    """Our metric."""
    what: Literal["per cent of the baseline", "variability overhead"]
    """What both figures are; both in per cent."""
    words: str
    """The study's words, where it has no figure."""
    study_low: float
    """The study's figure."""
    study_high: float
    """The same; it differs from `study_low` where the text says "between"."""
    study_sd: float | None
    """Its standard deviation in per cent of its baseline; null where not printed."""
    study_n: int | None
    """Its runs; null where not printed."""
    our_percent: float | None
    """Our figure."""
    our_low: float | None
    """Lower end of its interval."""
    our_high: float | None
    """Upper end of its interval."""
    our_blocks: int
    """Our blocks."""
    agreement: Agreement
    """`inside`: theirs lies in our interval; else `open` (ours may be no difference), `further` or `nearer` (theirs
    lies on our side of the baseline, further from it than ours, or nearer to it or on it), `other-side`; `no-figure` of
    ours.
    """


class BesideReport(_Frozen):
    """A campaign beside a study's published figures (`tare report --beside`)."""

    study: str
    """The study."""
    authors: str
    """Its authors."""
    year: int
    """When it appeared."""
    baseline: str
    """The platform that it compares with."""
    scaled: str | None
    """In words, in what the campaign was shorter than the study; null where it was not, or ran another profile."""
    rows: list[BesideRow]
    """One entry a metric of the study's and platform of ours."""
    absent: list[str]
    """What could be set beside and was not measured."""
    apart: list[str]
    """What the study has and is not set beside, and why."""
    notes: list[str]
    """In what its platforms and metrics differ from ours."""


class EstimateReport(_Frozen):
    """What a curve shows, with its 95 % interval over blocks."""

    point: float | None
    """The figure; null where the curve shows none."""
    low: float | None
    """Lower end; null below three blocks."""
    high: float | None
    """Upper end."""


class PointReport(_Frozen):
    """A level of a platform's curve: means over blocks."""

    load: float
    """The load, in the curve's unit."""
    n_blocks: int
    """Blocks with a figure."""
    rate: float | None
    """The rate; null where no trial ended well."""
    low: float | None
    """Lower end of its 95 % band; null below two blocks."""
    high: float | None
    """Upper end."""
    latency: float | None
    """The latency."""


class PlatformCurveReport(_Frozen):
    """A platform's curve."""

    platform: str
    """The platform."""
    points: list[PointReport]
    """One entry a level, by rising load."""
    knee: EstimateReport
    """The load beyond which more of it gives less and less."""
    saturation: EstimateReport
    """The least load that gives 95 % of the highest rate."""
    best: EstimateReport
    """The highest rate of a level whose latency is at most `limit`; null where none keeps to it."""


class CurveReport(_Frozen):
    """A rate over the load: a concurrency sweep."""

    name: str
    """Its name; its levels are the workloads `NAME-LOAD`."""
    unit: str
    """Of the load."""
    rate: str
    """The metric that is drawn."""
    rate_unit: str
    """Its unit."""
    latency: str
    """The metric that has a limit."""
    latency_unit: str
    """Its unit."""
    limit: float
    """The limit."""
    platforms: list[PlatformCurveReport]
    """One entry a platform, the baseline first."""


class SegmentReport(_Frozen):
    """A stretch in which the campaign was at work, in UNIX seconds."""

    began: float
    """When work began."""
    ended: float
    """When it ended."""
    boot: str | None
    """The kernel's id of that boot; null where not known."""


class Report(_Frozen):
    """One campaign."""

    schema_: Literal["tare.report/2"]
    """Name and number of this form."""
    id: str
    """The campaign's UUID."""
    file: str
    """Its file's name."""
    created: float
    """When it began, UNIX seconds."""
    tare_version: str
    """The tare that measured."""
    seed: int
    """Of the schedule."""
    profile: str
    """`quick`, `full`, `apps-small` or a study."""
    status: str
    """As the runner left it: `planned`, `running`, `interrupted`, `complete` ..."""
    baseline: str
    """The platform that the others are compared with."""
    blocks_done: int
    """Whole blocks in the file."""
    blocks_planned: int | None
    """The plan; null where time decides."""
    time_budget_s: float | None
    """The plan in seconds; null where blocks decide."""
    resources: dict[str, Any]
    """Of every instance: `cpus` (host CPU numbers), `memory_bytes`, `data_bytes`, `cpu_quota` (CPUs' worth of time,
    null for all); `probe_cpu`, the CPU on which probes worked, and `harness_cpus`, where tare and the client ran.
    """
    host: dict[str, Any]
    """Facts as the campaign recorded them; nested, no fixed form."""
    image: dict[str, Any]
    """The same of the root filesystem."""
    agent_hash: str
    """The agent that measured."""
    fairness: dict[str, Any]
    """The fairness manifest; nested, no fixed form."""
    differences: list[DifferenceReport] = []
    """Facts of the fairness manifest in which a platform differs from the baseline."""
    design: Design = Design.BLOCKS
    """In which order was run what is compared (docs/method.md)."""
    scale: str | None = None
    """`scaled` or `full` where the profile is a study's, else null."""
    beside: BesideReport | None = None
    """The results beside a study's published figures: when the profile is a study's, or with `--beside STUDY`."""
    footprints: FootprintsReport | None = None
    """What ran of the host's kernel; null where the file has none."""
    surfaces: SurfacesReport | None = None
    """What tenants may ask of the host's kernel; null where the file has none."""
    platforms: list[PlatformFacts]
    """The platforms as they were on the day."""
    plugins: dict[str, list[str]] = {}
    """What is not tare's own: names of platforms and workloads by the package that registered them, with its version.
    """
    workload_params: dict[str, dict[str, int | float | str | bool]]
    """The parameters of each workload, by name."""
    answers: list[AnswerReport] = []
    """One entry a platform but the baseline; empty where the file has no trials."""
    results: list[ResultReport]
    """One entry a workload and metric; empty where the file has no trials."""
    curves: list[CurveReport] = []
    """One entry a curve with two levels or more."""
    failures: list[FailureReport]
    """Trials without a result, those of a kind together."""
    left_out: list[LeftOutReport]
    """Platforms that did not take part."""
    contaminated: Contamination
    """Trials that the host disturbed, all kept."""
    events: list[EventReport]
    """What happened meanwhile."""
    tuning: list[SettingReport] | None = None
    """Every setting that `--tune` looked at; null without it."""
    active_s: float = 0.0
    """Seconds of work, without what lay between the segments."""
    segments: list[SegmentReport] = []
    """When that was: one entry for each start, resume and sleep of the machine. Of a file of version 1 or 2: estimated
    from its trials.
    """
    unknown_fields: list[str] = []
    """Fields of the file's record that a newer tare wrote and this one does not know, as `platforms.0.colour`; nothing
    of them is in the report.
    """
    multiplicity: MultiplicityReport | None = None
    """All verdicts together; null in older reports."""
    dependence: DependenceReport | None = None
    """Whether neighbouring blocks are alike; null with too few."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=lambda name: name.rstrip("_"), populate_by_name=True
    )

    def host_title(self) -> str:
        """What names the host."""
        return host_title(self.host)

    def alone(self) -> str | None:
        """What a file of no campaign's trials holds, in words; None where it has trials, or is to have them."""
        parts = {"surfaces": self.surfaces, "footprints": self.footprints}
        names = [name for name, part in parts.items() if part is not None]
        return None if self.results or not names else " and ".join(names)

    def headlines(self) -> list[ResultReport]:
        """Each workload's first metric."""
        return [result for result in self.results if result.headline]


class ManyReports(_Frozen):
    """Several campaigns side by side. Nothing is pooled: each stands for itself."""

    schema_: Literal["tare.reports/1"] = SCHEMA_MANY
    """Name and number of this form."""
    pooled: Literal[False] = False
    """Nothing is pooled over campaigns."""
    reports: list[Report]
    """Each campaign for itself."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=lambda name: name.rstrip("_"), populate_by_name=True
    )


def to_json(reports: list[Report]) -> str:
    """One campaign: its report. Several: a `ManyReports` of them."""
    whole = reports[0] if len(reports) == 1 else ManyReports(reports=reports)
    return whole.model_dump_json(indent=2, by_alias=True)
