"""The report as data: what ``tare report --json`` prints. Documented in docs/report-schema.md.

A field is only ever added under one ``schema``; what changes its meaning gets another number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

from tare.model import CampaignStatus, Design
from tare.records import Documented
from tare.report.model.answer_models import AnswerReport, DimensionReport, SettlingReport
from tare.report.model.curve_models import CurveReport, EstimateReport, PlatformCurveReport, PointReport
from tare.report.model.fact_models import (
    ClientFacts,
    Contamination,
    DifferenceReport,
    EventReport,
    FailureReport,
    LeftOutReport,
    PlatformFacts,
    SegmentReport,
    SettingReport,
    host_title,
)
from tare.report.model.ranking_models import RankingReport, RankReport
from tare.report.model.result_models import (
    BoundReport,
    DependenceReport,
    EffectReport,
    FindingReport,
    MultiplicityReport,
    NoiseFloorReport,
    PlatformReport,
    ResultReport,
    UnmarkedReport,
)

SCHEMA: Final = "tare.report/2"
SCHEMA_MANY: Final = "tare.reports/1"

__all__ = [
    "SCHEMA",
    "SCHEMA_MANY",
    "AnswerReport",
    "BoundReport",
    "ClientFacts",
    "Contamination",
    "CurveReport",
    "DependenceReport",
    "DifferenceReport",
    "DimensionReport",
    "EffectReport",
    "EstimateReport",
    "EventReport",
    "FailureReport",
    "FindingReport",
    "LeftOutReport",
    "ManyReports",
    "MultiplicityReport",
    "NoiseFloorReport",
    "PlatformCurveReport",
    "PlatformFacts",
    "PlatformReport",
    "PointReport",
    "RankReport",
    "RankingReport",
    "Report",
    "ResultReport",
    "SegmentReport",
    "SettingReport",
    "SettlingReport",
    "UnmarkedReport",
    "host_title",
    "to_json",
]


class Report(Documented):
    """One campaign. Sections (`tare.report.section`) are further fields, under their names."""

    model_config = ConfigDict(extra="allow")

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
    """`quick`, `full`, `apps-small`, `life` or a study."""
    status: CampaignStatus
    """As the runner left it; `unknown` where the file does not say."""
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
    null for all); `probe_cpu`, the CPU on which probes worked, and `harness_cpus`, where tare and the client ran;
    `client_cpus`, where the client ran if it had others than tare.
    """
    client: ClientFacts | None = None
    """The machine that loaded the servers in instances; null: the host itself."""
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
    platforms: list[PlatformFacts]
    """The platforms as they were on the day."""
    plugins: dict[str, list[str]] = {}
    """What is not tare's own: names of platforms and workloads by the package that registered them, with its version.
    """
    workload_params: dict[str, dict[str, int | float | str | bool]]
    """The parameters of each workload, by name."""
    answers: list[AnswerReport] = []
    """One entry a platform but the baseline; empty where the file has no trials."""
    settling: SettlingReport | None = None
    """More of this campaign that would answer what is open of any platform that isolates; null where nothing is."""
    settling_text: str = ""
    """The same in words; where it ends with a colon, `settling.command` follows it."""
    results: list[ResultReport]
    """One entry a workload and metric; empty where the file has no trials."""
    rankings: list[RankingReport] = []
    """One entry for each command of the user's own: how the platforms rank for it."""
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
    """When that was: one entry for each start, resume and sleep of the machine. Estimated from the trials where no
    segment was recorded.
    """
    unknown_fields: list[str] = []
    """Fields of the file's record that a newer tare wrote and this one does not know, as `platforms.0.colour`; nothing
    of them is in the report.
    """
    multiplicity: MultiplicityReport | None = None
    """All verdicts together; null in older reports."""
    dependence: DependenceReport | None = None
    """Whether neighbouring blocks are alike; null with too few."""

    def sections(self) -> Mapping[str, Any]:
        """Return the models of sections, by name."""
        return self.model_extra or {}

    def host_title(self) -> str:
        """Return the title of the host."""
        return host_title(self.host)

    def headlines(self) -> list[ResultReport]:
        """Each workload's first metric."""
        return [result for result in self.results if result.headline]


class ManyReports(Documented):
    """Several campaigns side by side. Nothing is pooled: each stands for itself."""

    schema_: Literal["tare.reports/1"] = SCHEMA_MANY
    """Name and number of this form."""
    pooled: Literal[False] = False
    """Nothing is pooled over campaigns."""
    reports: list[Report]
    """Each campaign for itself."""


def to_json(reports: list[Report]) -> str:
    """One campaign: its report. Several: a `ManyReports` of them. Only those sections that are pydantic models."""
    left_out = [{name for name, model in report.sections().items() if _only_shown(model)} for report in reports]
    if len(reports) == 1:
        return reports[0].model_dump_json(indent=2, by_alias=True, exclude=left_out[0])
    nested = {"reports": dict(enumerate(left_out))}
    return ManyReports(reports=reports).model_dump_json(indent=2, by_alias=True, exclude=nested)


def _only_shown(model: object) -> bool:
    return model is not None and not isinstance(model, BaseModel)
