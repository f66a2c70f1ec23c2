"""The sections of the report on studies: the score sheet, and the results beside published figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl
from markupsafe import Markup
from pydantic import PrivateAttr
from rich.console import RenderableType

from tare.analysis.refusals import NoAnswer
from tare.features.studies import literature
from tare.features.studies.analysis import profile as evaluation_profiles
from tare.features.studies.analysis.sheet import score as scored
from tare.features.studies.model import BesideReport
from tare.features.studies.views import beside_table
from tare.features.studies.views.score_page import ScoreView, score_view
from tare.features.studies.views.score_tables import doubt_of
from tare.features.studies.words import published_words, score_words
from tare.model import Scale
from tare.report.formats.html import part
from tare.report.model import ResultReport
from tare.report.section import Place, Screen, Section, Source
from tare.safe_text import clean
from tare.store import CampaignRecord


@dataclass(frozen=True, slots=True)
class ScoreSection:
    """The material of a campaign's score sheet. The sheet is made for a page, which alone shows it."""

    record: CampaignRecord
    samples: pl.DataFrame
    trials: pl.DataFrame
    results: Sequence[ResultReport]

    def sheet(self) -> ScoreView | None:
        """Return the score sheet, or None if there are no points."""
        profile = evaluation_profiles.load()
        try:
            sheet = scored(self.record, self.samples, self.trials, profile, doubt_of(self.results))
        except NoAnswer:  # a figure that no share can be made of
            return None
        return score_view(sheet.points, profile)


class StudyBeside(BesideReport):
    """A study's figures beside those of a campaign, with the campaign's baseline for the tables."""

    _our_baseline: str = PrivateAttr("")

    @property
    def our_baseline(self) -> str:
        """The baseline of the campaign."""
        return self._our_baseline


def _score(source: Source) -> ScoreSection | None:
    record = source.store.record
    measured = {
        (name, metric.name)
        for workload in record.workloads
        for name in (workload.name, workload.level.curve if workload.level else "")
        for metric in workload.metrics
    }
    features = evaluation_profiles.load().feature
    if not any((name, feature.metric) in measured for feature in features for name in feature.workloads):
        return None
    return ScoreSection(record, source.samples, source.trials, source.results)


def _print_nothing(_model: ScoreSection, _screen: Screen) -> Iterator[RenderableType]:
    return iter(())


def _score_page(shown: ScoreSection, anchor: str) -> Markup:
    sheet = shown.sheet()
    if sheet is None:
        return Markup()
    return part("score.html", score=sheet, baseline=shown.record.baseline, anchor=anchor, scores=score_words)


def _beside(source: Source) -> StudyBeside | None:
    record, asked = source.store.record, source.options.get("beside")
    if asked is None and record.profile not in literature.names():
        return None
    study = literature.load(asked or record.profile)
    shorter = ""
    if record.scale is not None and study.name == record.profile:
        shorter = study.run.shorter(Scale(record.scale), record.blocks)
    beside = StudyBeside.model_construct(**dict(beside_table.beside(study, source.analysed, record.baseline, shorter)))
    beside._our_baseline = record.baseline
    return beside


def _print_beside(report: StudyBeside, _screen: Screen) -> Iterator[RenderableType]:
    return beside_table.render(report, clean(report.our_baseline))


def _beside_page(report: StudyBeside, anchor: str) -> Markup:
    return part(
        "beside.html",
        study=report,
        baseline=report.our_baseline,
        anchor=anchor,
        beside_lines=beside_table.lines,
        beside_legend=published_words.legend,
        nothing_measured=published_words.NOTHING_MEASURED,
    )


def _beside_links(report: StudyBeside, anchor: str) -> Iterator[tuple[str, str]]:
    yield anchor, f"Beside {report.study}"


SECTIONS = (
    Section("score", score_words.TITLE, _score, _print_nothing, _score_page, place=Place.HEADLINES),
    Section(
        "beside",
        published_words.TITLE,
        _beside,
        _print_beside,
        _beside_page,
        place=Place.HEADLINES,
        printed=BesideReport,
        description="The results beside a study's published figures: when the profile is a study's, or with"
        " `--beside STUDY`.",
        links=_beside_links,
    ),
)
