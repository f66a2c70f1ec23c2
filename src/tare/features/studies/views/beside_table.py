"""A campaign's results beside a study's published figures: both in per cent of their own baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from tare.analysis.results import MetricResult
from tare.features.studies.analysis.beside import Position, Quantity, StudyRow, set_beside
from tare.features.studies.literature import Study
from tare.features.studies.model import BesideReport, BesideRow
from tare.features.studies.words.published_words import NOTHING_MEASURED, legend
from tare.report.sentences.numbers import EMPTY

#: How tables name each agreement.
WORDS: dict[Position, str] = {
    Position.INSIDE: "inside ours",
    Position.OPEN: "outside; ours may be zero",
    Position.FURTHER: "outside; theirs larger",
    Position.NEARER: "outside; theirs smaller",
    Position.OTHER_SIDE: "outside; of opposite sign",
    Position.NO_INTERVAL: "ours has no interval",
    Position.NO_FIGURE: "no figure of ours",
}


def beside(study: Study, results: Sequence[MetricResult], baseline: str, shorter: str = "") -> BesideReport:
    """The study's figures beside these results (`set_beside`), and what cannot be set beside.

    ``shorter``: what the campaign shortened, if it ran the study's profile.
    """
    measured = {(result.workload, result.metric) for result in results}
    return BesideReport(
        study=study.name,
        authors=study.source.authors,
        year=study.source.year,
        baseline=study.source.baseline,
        scaled=shorter or None,
        rows=[_row(row) for row in set_beside(study, results, baseline)],
        absent=[
            f"{link.metric}: {link.workload} was not measured"
            for link in study.beside
            if (link.workload, link.ours) not in measured
        ],
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


def _row(row: StudyRow) -> BesideRow:
    theirs, ours = row.theirs, row.ours
    return BesideRow(
        metric=row.link.metric,
        where=theirs.where,
        study_platform=row.study_platform,
        platform=row.platform,
        workload=row.link.workload,
        ours=row.link.ours,
        what=theirs.what,
        words=theirs.words,
        study_low=theirs.low,
        study_high=theirs.high,
        study_sd=theirs.sd,
        study_n=theirs.n,
        our_percent=ours.point,
        our_low=ours.low,
        our_high=ours.high,
        our_blocks=row.n_blocks,
        agreement=row.agreement,
    )


# --- in a terminal -----------------------------------------------------------------------------------------


def lines(report: BesideReport) -> Iterator[tuple[str, ...]]:
    """The table's rows as text: their metric, the platforms, their figure, ours, and the agreement."""
    for row in report.rows:
        who = (
            row.platform if row.platform == row.study_platform.lower() else f"{row.platform} (as {row.study_platform})"
        )
        metric = f"{row.metric}, variability" if row.what is Quantity.VARIABILITY else row.metric
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
