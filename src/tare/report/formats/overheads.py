"""The table of a paper: a row a headline, the baseline's value, and each platform's overhead with its interval."""

from __future__ import annotations

from dataclasses import astuple

from tare.analysis.verdicts import VerdictKind
from tare.report.campaign.report_builder import timed
from tare.report.formats.documents import Cell, Document, Span
from tare.report.formats.selection import EVERYTHING, Selection
from tare.report.model import PlatformReport, Report, ResultReport
from tare.report.sentences.captions import overheads_note
from tare.report.sentences.numbers import decimals, quantity
from tare.report.sentences.scale import USUAL_LEVEL, is_factor
from tare.report.sentences.scale import overheads as overheads_of
from tare.report.sentences.shown import ShownFigure
from tare.report.sentences.signs import Open, sign_of
from tare.store import Store


def overheads(store: Store, selection: Selection = EVERYTHING) -> Document:
    """A campaign's overheads as a document, a row for each headline that any platform has.

    They are in %, or factors beyond twice; of short times and sizes, what the platform adds is given instead, in its
    unit. Where there is no verdict the cell says what is known: "at most +6 %".
    """
    return of_report(selection.report(timed(store, store.samples())), every=bool(selection.metrics))


def compared(report: Report) -> list[str]:
    """The platforms beside the baseline, without those that isolate nothing and that nobody asked for."""
    answered = {answer.platform for answer in report.answers}
    return [
        platform.name
        for platform in report.platforms
        if platform.name != report.baseline and (platform.name in answered or "*" not in platform.open_by_design)
    ]


def of_report(report: Report, *, every: bool = False) -> Document:
    """As `overheads`, of a report that is there. ``every``: not only of headlines."""
    others = compared(report)
    rows: list[list[Cell]] = []
    for result in report.results:
        if result.headline or every:
            places = {place.platform: place for place in result.platforms}
            cells = [_cell(result, places.get(name)) for name in others]
            if any(cell is not None for cell in cells):
                rows.append([result.workload, result.metric, _baseline(result, places.get(report.baseline)), *cells])
    heads = ["workload", "metric", report.baseline, *others]
    return Document(
        heads, ["" for _ in heads], [False, False, True, *(True for _ in others)], rows, _notes(report), stacked=True
    )


def _baseline(result: ResultReport, place: PlatformReport | None) -> Cell:
    return None if place is None or place.mean is None else quantity(place.mean, result.unit)


def _cell(result: ResultReport, place: PlatformReport | None) -> Cell:
    if place is None:
        return None
    figure = ShownFigure.of(result, place)
    sure = place.verdict in {VerdictKind.SLOWER, VerdictKind.FASTER}
    if sign_of(place) is Open.BOUNDED:
        return figure.bounded()
    if figure.words.amount_first and place.amount is not None:
        return _span((place.amount, place.amount_low, place.amount_high), place.amount_unit or "", sure=sure)
    if figure.times is None:
        return None
    times, level = figure.times, figure.level
    note = "" if level is None or level == USUAL_LEVEL else f" ({100 * level:.3g} %)"
    if is_factor(times):
        better = times.high < 1
        point, low, high = (1 / times.point, 1 / times.high, 1 / times.low) if better else astuple(times)
        unit = f"\N{MULTIPLICATION SIGN}{' better' if better else ''}{note}"
        return Span(f"{point:.1f}", None if level is None else (f"{low:.1f}", f"{high:.1f}"), unit, sure=sure)
    over = [100 * value for value in astuple(overheads_of(times, result.direction))]
    return _span((over[0], None, None) if level is None else (over[0], over[1], over[2]), f"%{note}", sure=sure)


def _span(ends: tuple[float, float | None, float | None], unit: str, *, sure: bool) -> Span:
    point, low, high = ends
    if low is None or high is None:
        return Span(signed(point, 1), unit=unit, sure=sure)
    digits = min(1, decimals(high - low))
    return Span(signed(point, digits), (signed(low, digits), signed(high, digits)), unit, sure=sure)


def signed(value: float, digits: int) -> str:
    """A number with its sign as siunitx reads it; zero has none."""
    text = f"{value:+.{digits}f}"
    return text if float(text) else text[1:]


def _notes(report: Report) -> list[str]:
    return [
        overheads_note(report.baseline, report.blocks_done),
        f"tare {report.tare_version}, campaign {report.id}, {report.file}.",
    ]
