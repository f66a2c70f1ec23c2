"""A campaign's results beside a study's published figures: both in per cent of their own baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.table import Table
from rich.text import Text

from tare.literature import Beside, Figure, StatedInWords, Study
from tare.report.model import Agreement, BesideReport, BesideRow, PlatformReport, ResultReport
from tare.report.sentences.numbers import EMPTY
from tare.report.sentences.published import NOTHING_MEASURED, legend

#: How tables name each agreement.
WORDS: dict[Agreement, str] = {
    "inside": "inside ours",
    "open": "outside; ours may be zero",
    "further": "outside; theirs larger",
    "nearer": "outside; theirs smaller",
    "other-side": "outside; of opposite sign",
    "no-figure": "no figure of ours",
}


@dataclass(frozen=True, slots=True)
class _Theirs:
    """A study's figure of a metric and platform, in per cent of its baseline."""

    what: str
    where: str
    low: float
    high: float
    sd: float | None = None
    n: int | None = None
    words: str = ""

    @property
    def point(self) -> float:
        return (self.low + self.high) / 2


def beside(study: Study, results: Sequence[ResultReport], baseline: str, shorter: str = "") -> BesideReport:
    """Every figure of the study that has a counterpart among these results.

    ``shorter``: what the campaign shortened, if it ran the study's profile. A platform stands beside that of the study
    that it replaces or resembles (`tare.literature.model.RunPlatform`).
    """
    kin = {name: theirs.study for theirs in study.run.platform for name in (*theirs.run, *theirs.like)}
    measured = {(result.workload, result.metric): result for result in results}
    rows: list[BesideRow] = []
    absent = []
    for link in study.beside:
        result = measured.get((link.workload, link.ours))
        if result is None:
            absent.append(f"{link.metric}: {link.workload} was not measured")
            continue
        for platform in result.platforms:
            if platform.platform != baseline and platform.platform in kin:
                rows += _rows(study, link, result, platform, kin[platform.platform])
    return BesideReport(
        study=study.name,
        authors=study.source.authors,
        year=study.source.year,
        baseline=study.source.baseline,
        scaled=shorter or None,
        rows=rows,
        absent=absent,
        apart=[f"{omission.what}: {omission.why}" for omission in (*study.apart, *study.run.without)],
        notes=[
            *(
                f"{theirs.study} ({', '.join(theirs.run)}): {theirs.why}"
                for theirs in study.run.platform
                if theirs.run and theirs.why
            ),
            *(f"{link.metric} ({link.workload}): {link.note}" for link in study.beside if link.note),
        ],
    )


def _rows(study: Study, link: Beside, result: ResultReport, ours: PlatformReport, name: str) -> Iterator[BesideRow]:
    for theirs in _theirs(study, link.metric, name):
        variability = theirs.what == "variability overhead"
        point, low, high = _variability(ours) if variability else _percents(ours, inverse=link.inverse)
        yield BesideRow(
            metric=link.metric,
            where=theirs.where,
            study_platform=name,
            platform=ours.platform,
            workload=result.workload,
            ours=result.metric,
            what="variability overhead" if variability else "per cent of the baseline",
            words=theirs.words,
            study_low=theirs.low,
            study_high=theirs.high,
            study_sd=theirs.sd,
            study_n=theirs.n,
            our_percent=point,
            our_low=low,
            our_high=high,
            our_blocks=ours.n_blocks,
            agreement=_agreement(theirs, point, low, high, nothing=0.0 if variability else 100.0),
        )


def _theirs(study: Study, metric: str, platform: str) -> Iterator[_Theirs]:
    """All of the study's figures of this metric and platform, in per cent: printed, derived, or stated in words."""
    for figure in study.figure:
        percent = study.percent(metric, platform) if figure.metric == metric else None
        if percent is not None:
            yield _Theirs("value", figure.where, percent, percent, _sd(study, figure, platform), figure.n)
    for derived in study.text.derived:
        if (derived.metric, derived.platform, derived.of) == (metric, platform, "variability overhead"):
            yield _Theirs(derived.of, derived.where, derived.value, derived.value)
    for statement in study.text.told:
        if (statement.metric, statement.platform) == (metric, platform) and statement.percent is not None:
            yield _stated(statement)


def _stated(statement: StatedInWords) -> _Theirs:
    low, high = statement.percent if isinstance(statement.percent, list) else (statement.percent, statement.percent)
    assert low is not None
    assert high is not None
    if statement.of == "variability overhead":
        return _Theirs(statement.of, statement.where, low, high, words=statement.words)
    return _Theirs("value", statement.where, 100 + low, 100 + high, words=statement.words)


def _sd(study: Study, figure: Figure, platform: str) -> float | None:
    """The platform's printed standard deviation in per cent of the baseline's figure."""
    percent = study.percent(figure.metric, platform)
    if platform in figure.rsd and percent is not None:
        return figure.rsd[platform] * percent / 100
    if platform in figure.sd and percent is not None:
        return percent * figure.sd[platform] / figure.value[platform]
    return None


def _percents(ours: PlatformReport, *, inverse: bool) -> tuple[float | None, float | None, float | None]:
    if ours.ratio is None or ours.ratio_low is None or ours.ratio_high is None:
        return None, None, None
    if inverse:
        return 100 / ours.ratio, 100 / ours.ratio_high, 100 / ours.ratio_low
    return 100 * ours.ratio, 100 * ours.ratio_low, 100 * ours.ratio_high


def _variability(ours: PlatformReport) -> tuple[float | None, float | None, float | None]:
    return ours.variability_overhead_percent, ours.variability_low_percent, ours.variability_high_percent


def _agreement(
    theirs: _Theirs, point: float | None, low: float | None, high: float | None, *, nothing: float
) -> Agreement:
    """How their figure compares with our interval; ``nothing``: the percentage that means no difference."""
    if point is None or low is None or high is None:
        return "no-figure"
    if theirs.low <= high and theirs.high >= low:
        return "inside"
    if low <= nothing <= high:
        return "open"
    if (theirs.point - nothing) * (point - nothing) < 0:
        return "other-side"
    return "further" if abs(theirs.point - nothing) > abs(point - nothing) else "nearer"


# --- in a terminal -----------------------------------------------------------------------------------------


def lines(report: BesideReport) -> Iterator[tuple[str, ...]]:
    """The table's rows as text: their metric, the platforms, their figure, ours, and the agreement."""
    for row in report.rows:
        who = (
            row.platform if row.platform == row.study_platform.lower() else f"{row.platform} (as {row.study_platform})"
        )
        metric = f"{row.metric}, variability" if row.what == "variability overhead" else row.metric
        yield metric, who, theirs_text(row), ours_text(row), WORDS[row.agreement]


def theirs_text(row: BesideRow) -> str:
    """The study's figure with its deviation and number of runs."""
    figure = _number(row.study_low)
    if row.study_high != row.study_low:
        figure += f" … {_number(row.study_high)}"
    if row.study_sd is not None:
        figure += f" ± {_number(row.study_sd)}"
    counted = f" (n {row.study_n})" if row.study_n is not None else ""
    return f"{figure}{counted}{' (in words)' if row.words else ''}"


def ours_text(row: BesideRow) -> str:
    """Our figure with its interval and number of blocks."""
    if row.our_percent is None:
        return EMPTY
    if row.our_low is None or row.our_high is None:
        return f"{_number(row.our_percent)} (n {row.our_blocks})"
    return f"{_number(row.our_percent)} [{_number(row.our_low)} … {_number(row.our_high)}] (n {row.our_blocks})"


def render(report: BesideReport, baseline: str) -> Iterator[Table | Text]:
    """The table with its legend, for a terminal."""
    yield Text(f"\nBeside the figures of {report.study} ({report.authors}, {report.year})", style="bold")
    if report.rows:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
        for at, head in enumerate(("their metric", "platform", "theirs", "ours", "theirs is")):
            table.add_column(head, justify="right" if at in {2, 3} else "left", overflow="fold")
        for line in lines(report):
            table.add_row(*line)
        yield table
        yield Text(legend(report, baseline), style="dim")
    else:
        yield Text(f"  {NOTHING_MEASURED}")
    for head, texts in (("not measured", report.absent), ("not set beside", report.apart), ("differs", report.notes)):
        for text in texts:
            yield Text(f"  {head}: {text}", style="dim")
    if report.scaled is not None:
        yield Text(f"  scaled: {report.scaled}", style="dim")


def _number(value: float) -> str:
    size = abs(value)
    return f"{value:,.0f}" if size >= 1000 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"
