"""The table of a paper: a row a headline, the baseline's value, and each platform's overhead with its interval."""

from __future__ import annotations

from tare.report.campaign.build import timed
from tare.report.formats.documents import Cell, Document, Span
from tare.report.model import PlatformReport, Report, ResultReport
from tare.report.sentences.captions import overheads_note
from tare.report.sentences.numbers import decimals, quantity
from tare.report.sentences.wording import wording
from tare.store import Store


def overheads(store: Store) -> Document:
    """A campaign's overheads as a document, a row for each headline that any platform has.

    They are in %; of short times and sizes, what the platform adds is given instead, in its unit.
    """
    return of_report(timed(store, store.samples()))


def of_report(report: Report) -> Document:
    """As `overheads`, of a report that is there."""
    others = [platform.name for platform in report.platforms if platform.name != report.baseline]
    rows: list[list[Cell]] = []
    for result in report.results:
        if result.headline:
            places = {place.platform: place for place in result.platforms}
            cells = [_cell(result, places.get(name)) for name in others]
            if any(cell is not None for cell in cells):
                rows.append([result.workload, result.metric, _baseline(result, places.get(report.baseline)), *cells])
    heads = ["workload", "metric", report.baseline, *others]
    units = ["", "", "", *("%" for _ in others)]
    return Document(heads, units, [False, False, True, *(True for _ in others)], rows, _notes(report))


def _baseline(result: ResultReport, place: PlatformReport | None) -> Cell:
    return None if place is None or place.mean is None else quantity(place.mean, result.unit)


def _cell(result: ResultReport, place: PlatformReport | None) -> Cell:
    if place is None:
        return None
    adds = wording(result.metric, result.unit, result.direction, result.family).amount_first
    point, low, high = place.op_percent, place.op_low_percent, place.op_high_percent
    if adds and place.amount is not None:
        point, low, high = place.amount, place.amount_low, place.amount_high
    if point is None:
        return None
    unit = (place.amount_unit or "") if adds and point is place.amount else ""
    if low is None or high is None:
        return Span(signed(point, 1), unit=unit)
    digits = min(1, decimals(high - low))
    return Span(signed(point, digits), (signed(low, digits), signed(high, digits)), unit)


def signed(value: float, digits: int) -> str:
    """A number with its sign as siunitx reads it; zero has none."""
    text = f"{value:+.{digits}f}"
    return text if float(text) else text[1:]


def _notes(report: Report) -> list[str]:
    return [
        overheads_note(report.baseline, report.blocks_done),
        f"tare {report.tare_version}, campaign {report.id}, {report.file}.",
    ]
