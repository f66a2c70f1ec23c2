"""The report as data: what ``tare report --json`` prints. Documented in docs/report-schema.md.

A field is only ever added under one ``schema``; what changes its meaning gets another number.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from tare.analysis.comparisons.verdicts import Kind, Reason, Side
from tare.analysis.trust.findings import FindingKind
from tare.model import Design, Direction, Family, Mode, Status
from tare.report.footprint.model import FootprintsReport
from tare.report.surface.model import SurfacesReport
from tare.store import SettingOutcome

SCHEMA = "tare.report/2"
SCHEMA_MANY = "tare.reports/1"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class NoiseFloorReport(_Frozen):
    """The A/A figure: overhead of the second baseline arm against the first, in percent, with its 95 % interval."""

    point_percent: float | None
    low_percent: float | None
    high_percent: float | None
    half_width_percent: float | None
    n_blocks: int
    excludes_zero: bool
    detectable_percent: float | None = None  # the smallest difference that such noise lets be found in nine of ten
    reason: str | None  # why there is no figure


class FindingReport(_Frozen):
    """A finding beside a verdict: its code and its numbers."""

    kind: FindingKind
    numbers: dict[str, float]
    text: str


class UnmarkedReport(_Frozen):
    """What a platform's figure would be without the contaminated trials, its own and the baseline's."""

    n_trials: int
    n_baseline: int
    n_blocks: int
    op_percent: float | None
    op_low_percent: float | None
    op_high_percent: float | None
    verdict: Kind
    verdict_text: str


class PlatformReport(_Frozen):
    """One platform in one metric. Overheads: positive is worse than the baseline. Intervals: 95 %."""

    platform: str
    n_blocks: int
    n_left_out: int
    n_ok: int
    n_failed: int
    n_unsupported: int
    n_contaminated: int
    mean: float | None
    sd: float | None
    median: float | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    ratio_bootstrap_low: float | None
    ratio_bootstrap_high: float | None
    op_percent: float | None
    op_low_percent: float | None
    op_high_percent: float | None
    totals_percent: float | None = None
    totals_low_percent: float | None = None
    totals_high_percent: float | None = None
    p95_percent: float | None = None
    p99_percent: float | None = None
    amount: float | None = None  # platform minus baseline, in `amount_unit`
    amount_low: float | None = None
    amount_high: float | None = None
    amount_unit: str | None = None
    variability_overhead_percent: float | None
    variability_low_percent: float | None = None
    variability_high_percent: float | None = None
    verdict: Kind
    verdict_text: str
    findings: list[FindingReport] = []
    certain: Side | None = None  # its 99 % interval lies on this side of the baseline
    verdict_reason: Reason | None = None  # why it is that; None: an older report
    cautions: list[FindingReport] = []  # what stands beside the verdict
    notes: list[str]  # the same in words alone
    contaminated_by: dict[str, int] = {}  # reason: trials
    unmarked: UnmarkedReport | None = None  # None: no trial of it or of the baseline is marked
    p_adjusted: float | None = None  # of its verdict, by Holm over the whole report
    survives_holm: bool | None = None  # p_adjusted is at most 5 %; None: there is no verdict that could


class ResultReport(_Frozen):
    """One metric of one workload over all platforms."""

    workload: str
    workload_title: str
    family: Family
    mode: Mode
    metric: str
    metric_title: str
    headline: bool  # the workload's first metric
    unit: str
    direction: Direction
    margin_percent: float
    noise_floor: NoiseFloorReport | None
    platforms: list[PlatformReport]


class FailureReport(_Frozen):
    """Trials of one workload and platform that ended alike."""

    workload: str
    platform: str
    status: Literal[Status.FAILED, Status.UNSUPPORTED]
    reason: str
    n_trials: int
    blocks: list[int]


class PlatformFacts(_Frozen):
    """A platform as it was on the day."""

    name: str
    title: str
    version: str
    details: dict[str, str]
    image_bytes: int | None
    not_honoured: list[str]
    open_by_design: dict[str, str]  # doors to the host that it leaves open: name (`*`: all), and why
    network_path: str
    daemons_share: float | None = None  # of a core: CPU time of shared daemons by the trials' time; None: not known


class DifferenceReport(_Frozen):
    """A fact in which a platform differs from the baseline; ``unfair``: what is compared then instead, if it is."""

    platform: str
    fact: str
    value: str
    baseline: str
    unfair: str | None


class LeftOutReport(_Frozen):
    """A platform that did not take part, and why."""

    platform: str
    reason: str
    fix: str | None


class SettingReport(_Frozen):
    """A setting of the host's that `tare run --tune` looked at."""

    name: str
    path: str
    outcome: SettingOutcome
    former: str | None
    value: str | None
    why: str


class Contamination(_Frozen):
    """Trials that the host or the machine below disturbed; they are marked, shown and kept."""

    steal_threshold: float  # share of the pinned CPUs' time; also in `limits`
    n_trials: int
    n_all_trials: int
    reasons: dict[str, int] = {}  # trials by reason; a trial may have several
    limits: dict[str, float] = {}  # above which a trial is marked, by reason
    told: list[str] = []  # the reasons that there are, in words
    n_ticks: int = 0  # of the telemetry; 0: only steal could be seen


class MultiplicityReport(_Frozen):
    """All verdicts of the report together: what chance alone would give, and what survives Holm's correction."""

    n_rows: int  # figures with an interval that could have been given any verdict
    n_different: int  # slower or faster
    by_chance: float  # so many of these were to be expected if no platform differed at all
    n_different_sure: int  # that survive
    n_equivalent: int
    n_equivalent_sure: int


class DependenceReport(_Frozen):
    """Lag-1 autocorrelation of the blocks' log ratios, pooled over the report's figures."""

    n_series: int
    n_blocks: int
    correlation: float  # the bias of independent blocks is taken off
    low: float  # about 95 %
    high: float
    p: float  # that blocks in random order show as much or more
    too_narrow: float  # the factor by which intervals may be so
    note: str | None  # in words; null where blocks look independent


class EventReport(_Frozen):
    """Something worth knowing that happened while the campaign ran."""

    at: float
    level: str
    text: str


#: How a study's figure lies to our interval: inside; or outside, where ours may be no difference at all, theirs lies on
#: the same side of the baseline and further from it, nearer to it, or on the other side.
Agreement = Literal["inside", "open", "further", "nearer", "other-side", "no-figure"]


class BesideRow(_Frozen):
    """A study's figure and ours, both in per cent: of the own baseline's figure, or overhead of standard deviations."""

    metric: str  # the study's
    where: str  # its table, figure or section
    study_platform: str
    platform: str
    workload: str
    ours: str  # our metric
    what: Literal["per cent of the baseline", "variability overhead"]
    words: str  # the study's, where it has no figure
    study_low: float
    study_high: float  # differs from `study_low` where the words say between two
    study_sd: float | None
    study_n: int | None
    our_percent: float | None
    our_low: float | None
    our_high: float | None
    our_blocks: int
    agreement: Agreement


class BesideReport(_Frozen):
    """A campaign beside a study's published figures (`tare report --beside`)."""

    study: str
    authors: str
    year: int
    baseline: str  # the study's
    scaled: str | None  # in what the campaign was shorter than the study
    rows: list[BesideRow]
    absent: list[str]  # what could be set beside and was not measured
    apart: list[str]  # what the study has and is not set beside, and why
    notes: list[str]  # in what its platforms and metrics differ from ours


class SegmentReport(_Frozen):
    """A stretch in which the campaign was at work, in UNIX seconds."""

    began: float
    ended: float
    boot: str | None  # the kernel's id of that boot; None: not known


class Report(_Frozen):
    """One campaign."""

    schema_: str
    id: str
    file: str
    created: float  # UNIX time, seconds
    tare_version: str
    seed: int
    profile: str
    status: str
    baseline: str
    blocks_done: int
    blocks_planned: int | None
    time_budget_s: float | None
    resources: dict[str, Any]
    host: dict[str, Any]
    image: dict[str, Any]
    agent_hash: str
    fairness: dict[str, Any]
    differences: list[DifferenceReport] = []
    design: Design = Design.BLOCKS
    scale: str | None = None  # of a study's profile
    beside: BesideReport | None = None
    footprints: FootprintsReport | None = None  # None: the file has none
    surfaces: SurfacesReport | None = None  # the same
    platforms: list[PlatformFacts]
    plugins: dict[str, list[str]] = {}  # packages with their versions, and what of the campaign each has registered
    workload_params: dict[str, dict[str, int | float | str | bool]]
    results: list[ResultReport]
    failures: list[FailureReport]
    left_out: list[LeftOutReport]
    contaminated: Contamination
    events: list[EventReport]
    tuning: list[SettingReport] | None = None  # None: the campaign ran without --tune
    active_s: float = 0.0  # seconds of work, without what lay between the segments
    segments: list[SegmentReport] = []
    unknown_fields: list[str] = []  # of the file's record, which a newer tare wrote: nothing of them is in here
    multiplicity: MultiplicityReport | None = None  # None: an older report
    dependence: DependenceReport | None = None  # None: too few blocks

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=lambda name: name.rstrip("_"), populate_by_name=True
    )

    def host_title(self) -> str:
        """What names the host: its name where the campaign recorded one, or its CPU."""
        cpu = self.host.get("cpu")
        model = cpu.get("model") if isinstance(cpu, dict) else None
        return str(self.host.get("name") or model or "this host")

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

    schema_: str = SCHEMA_MANY
    pooled: Literal[False] = False
    reports: list[Report]

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=lambda name: name.rstrip("_"), populate_by_name=True
    )


def to_json(reports: list[Report]) -> str:
    """One campaign: its report. Several: a `ManyReports` of them."""
    whole = reports[0] if len(reports) == 1 else ManyReports(reports=reports)
    return whole.model_dump_json(indent=2, by_alias=True)
