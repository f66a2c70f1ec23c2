"""The report as one file of HTML that opens without a network: tables, plots, every sample, and the raw data.

All text in it comes from a store that anyone may have made: the template escapes it, the plots' data goes in as JSON
that cannot end its script, and the page's policy forbids to fetch anything.
"""

from __future__ import annotations

import base64
import functools
import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import polars as pl
from markupsafe import Markup

from tare import outputs
from tare.analysis.grids import metric_parts
from tare.analysis.quality.contamination import other_threads, windows
from tare.model import SHOWN_COSTS, Mode
from tare.report.campaign import (
    campaign_drawings,
    campaign_figures,
    cells,
    costs,
    course,
    curve_plot,
    curve_views,
    density_curves,
)
from tare.report.campaign.campaign_figures import FloorFigure, MetricFigure, StartFigure
from tare.report.campaign.cautions import Caution, cautions_of
from tare.report.campaign.choose import Pick, picks
from tare.report.campaign.heat import Heat, heat
from tare.report.campaign.report_builder import report_on
from tare.report.campaign.use_views import FOOTPRINT_MIB, START_MS, UsesView, default_weights, uses_view
from tare.report.model import Report, ResultReport, to_json
from tare.report.parts.svg import Drawing
from tare.report.section import Place, alone, of_report, tables_of
from tare.report.sentences import (
    captions,
    curve_words,
    dimensions,
    glance_words,
    page_method,
    page_words,
    signs,
    use_words,
    word_list,
)
from tare.report.sentences.host import rights_note
from tare.report.sentences.numbers import EMPTY, day, number_of, percent, quantity, size, some, span, when
from tare.report.sentences.shown import ShownFigure
from tare.safe_text import encodable
from tare.store import CampaignRecord, Store, Telemetry, read_store

_TEMPLATES = Path(__file__).parent / "templates"
#: Folders of features, each with the templates of its own.
_FEATURES = Path(__file__).parents[2] / "features"


@dataclass(frozen=True, slots=True)
class Download:
    """A file inside the page."""

    name: str
    title: str
    bytes: int
    link: str  # a data: URL


@dataclass(frozen=True, slots=True)
class MetricView:
    """One metric as the template shows it."""

    result: ResultReport
    place: int  # among the report's results
    figure: MetricFigure
    points: str
    course: Drawing | None  # every sample by start and round, of a headline


@dataclass(frozen=True, slots=True)
class WorkloadView:
    """One workload with its metrics, and the start-up curves where it is a start."""

    name: str
    title: str
    params: Mapping[str, object]
    metrics: list[MetricView]
    start: StartFigure | None
    crowd: list[Drawing]  # curves over the number of instances at once
    order: list[str]  # platforms with their places in the curves' colours

    @property
    def first(self) -> list[MetricView]:
        """The headlines, which are not folded."""
        return [metric for metric in self.metrics if metric.result.headline]

    @property
    def more(self) -> list[MetricView]:
        """The other metrics."""
        return [metric for metric in self.metrics if not metric.result.headline]


@dataclass(frozen=True, slots=True)
class SectionView:
    """A section as the template shows it."""

    links: list[tuple[str, str]]  # ids and titles
    html: str


@dataclass(frozen=True, slots=True)
class CampaignView:
    """One campaign as the template shows it."""

    report: Report
    sentences: list[str]  # the answer
    costs: Drawing | None  # and in a picture
    costs_phone: Drawing | None  # the same for a narrow screen
    heat: Heat
    uses: UsesView | None  # what the platforms can be weighed for
    picks: list[Pick]  # the best for some questions
    planes: list[tuple[str, Drawing]]  # cost against exposure, by dimension
    cautions: list[Caution]
    sections: Mapping[Place, list[SectionView]]
    headlines: list[ResultReport]  # those of the first table
    workloads: list[WorkloadView]
    floor: FloorFigure
    telemetry: Drawing | None
    downloads: list[Download]


@dataclass(frozen=True, slots=True)
class Material:
    """The material of a campaign's page: its report, and the report's own material."""

    report: Report
    samples: pl.DataFrame
    trials: pl.DataFrame
    record: CampaignRecord
    telemetry: Telemetry


def write_html(paths: Sequence[Path], out: Path, options: Mapping[str, Any] | None = None) -> list[Report]:
    """Write one page on these campaigns (each for itself) and return their reports.

    ``options``: see `tare.report.section.Source`.

    Raises `StoreError` for a file that cannot be read, `UsageError` when ``out`` cannot be written.
    """
    outputs.check_page(out, paths)
    read = materials(paths, options)
    write_page(page_text(read), out)
    return [material.report for material in read]


def materials(paths: Sequence[Path], options: Mapping[str, Any] | None = None) -> list[Material]:
    """All that a page needs of these campaigns. Raises `StoreError`."""
    return [_material(path, options or {}) for path in paths]


def write_page(text: str, out: Path) -> None:
    """Have a page take its place when it is whole. Raises `UsageError` when it cannot be written."""
    with outputs.written(out) as file:
        file.write(text)


def page_text(read: Sequence[Material]) -> str:
    """The whole page."""
    views = [_view(material, f"c{number}") for number, material in enumerate(read, 1)]
    shown = (section for material in read for section, _ in of_report(material.report))
    scripts = dict.fromkeys(str(file) for section in shown for file in section.scripts)
    return rendered("report.html", (*scripts, "tables.js"), campaigns=views)


def rendered(template: str, scripts: Sequence[str] = (), **values: object) -> str:
    """A page from one of our templates, with our style and these of our scripts; all of it can be encoded.

    ``scripts``: names in the folder of templates, or whole paths.
    """
    # Markup: our own style and script go in as they are.
    style, script = Markup(_own("report.css")), Markup("".join(map(_own, scripts)))  # noqa: S704
    return encodable(environment().get_template(template).render(style=style, script=script, **values))


def part(template: str, **values: object) -> Markup:
    """Render a part of a page from one of our templates, which escapes the values."""
    return Markup(environment().get_template(template).render(**values))  # noqa: S704


@functools.cache
def environment() -> jinja2.Environment:
    """Our templates: one for all pages of a process, since to compile them takes longer than to fill them in."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader([_TEMPLATES, *_FEATURES.glob("*/"), *_FEATURES.glob("*/templates/")]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,  # an included part ends with its line
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"percent": _percent, "number": _number, "when": when, "day": day, "size": size, "span": span}
    templates.filters |= {"some": some, "number_of": number_of}
    templates.globals |= {
        "alone": alone,
        "captions": captions,
        "method": page_method,
        "meanings_of_words": word_list.meanings,
        "page": page_words,
        "rights_note": rights_note,
        "cell": cells.cell,
        "baseline_cell": cells.baseline_cell,
        "marks": signs.MARKS,
        "uses": use_words,
        "start_ms": START_MS,
        "footprint_mib": FOOTPRINT_MIB,
        "sign_of": signs.sign_of,
        "figure_of": ShownFigure.of,
        "meanings": signs.MEANINGS,
        "together": signs.together,
        "drawn": campaign_drawings.drawn,
        "curve_key": campaign_drawings.curve_key,
        "curve_drawings": curve_views.drawings,
        "curve_words": curve_words,
        "heat_note": dimensions.heat_note,
        "unsure_note": signs.unsure_note,
        "heat_words": dimensions.WORDS,
        "heat_marks": dimensions.MARKS,
    }
    return templates


def _material(path: Path, options: Mapping[str, Any]) -> Material:
    with read_store(path) as store, store.snapshot():
        return material_of(store, store.name, options)


def material_of(store: Store, name: str, options: Mapping[str, Any] | None = None) -> Material:
    """Return what the page of an open store's campaign is made of. ``name``: of the file, as the page has it."""
    samples = store.samples()
    report = report_on(store, samples, options).model_copy(update={"file": name})
    return Material(report, samples, store.trials(), store.record, store.telemetry())


def _sections(report: Report, place: Place, prefix: str) -> list[SectionView]:
    views = []
    for section, model in of_report(report, place):
        anchor = f"{prefix}-{section.name.replace(':', '-')}"
        if html := section.page(model, anchor):
            views.append(SectionView(section.links_of(model, anchor), html))
    return views


def _view(of: Material, prefix: str) -> CampaignView:
    report, samples = of.report, of.samples
    parts = metric_parts(samples)
    empty = samples.clear()
    workloads = []
    for name in dict.fromkeys(result.workload for result in report.results):
        results = [result for result in report.results if result.workload == name]
        frames = {result.metric: parts.get((name, result.metric), empty) for result in results}
        workloads.append(_workload(report, results, frames))
    headlines = [result for result in report.results if result.headline or result.metric in SHOWN_COSTS]
    stem = Path(report.file).stem
    more = [text for section, model in of_report(report) for text in section.downloads(model, stem)]
    more += [(f"{name.replace(':', '-')}.csv.gz", name, frame.write_csv()) for name, frame in tables_of(report).items()]
    downloads = _downloads(report, samples, of.trials) + [_packed(*table) for table in more]
    weighing = uses_view(report)
    answer = (
        glance_words.sentences(report.answers, glance_words.own_words(report)),
        costs.costs(report),
        costs.costs(report, phone=True),
        heat(report, None if weighing is None else default_weights(weighing.chosen)),
        weighing,
        picks(report),
        campaign_drawings.trade_off(report),
        cautions_of(report),
        {place: _sections(report, place, prefix) for place in Place},
    )
    cpus = of.record.resources.cpus
    meanwhile = windows(of.telemetry, cpus, other_threads(of.record.host, cpus))
    happened = course.telemetry(meanwhile, of.trials, report.segments)
    floor = campaign_figures.floor_figure(report)
    return CampaignView(report, *answer, headlines, workloads, floor, happened, downloads)


def _workload(report: Report, results: list[ResultReport], frames: Mapping[str, pl.DataFrame]) -> WorkloadView:
    views = []
    for result in results:
        figure = campaign_figures.metric_figure(report, result, frames[result.metric])
        happened = course.course(result, frames[result.metric]) if result.headline else None
        note = captions.samples_note(figure.shown, figure.total)
        views.append(MetricView(result, report.results.index(result), figure, note, happened))
    first = results[0]
    start = campaign_figures.start_figure(results, frames) if first.mode is Mode.START else None
    params = report.workload_params[first.workload]
    order = [platform.platform for platform in first.platforms]
    crowds = [curve_plot.draw(plot, order) for plot in density_curves.curves_of(results)]
    return WorkloadView(first.workload, first.workload_title, params, views, start, crowds, order)


# --- raw data ----------------------------------------------------------------------------------------------


def _downloads(report: Report, samples: pl.DataFrame, trials: pl.DataFrame) -> list[Download]:
    stem = Path(report.file).stem
    return [
        _packed(f"{stem}-samples.csv.gz", page_words.DOWNLOADS["samples"], samples.write_csv()),
        _packed(f"{stem}-trials.csv.gz", page_words.DOWNLOADS["trials"], trials.write_csv()),
        _packed(f"{stem}-report.json.gz", page_words.DOWNLOADS["report"], to_json([report])),
    ]


def _packed(name: str, title: str, text: str) -> Download:
    data = gzip.compress(text.encode(), compresslevel=4, mtime=0)
    link = "data:application/gzip;base64," + base64.b64encode(data).decode()
    return Download(name, title, len(data), link)


# --- filters -----------------------------------------------------------------------------------------------


def _own(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _percent(value: float | None) -> str:
    return EMPTY if value is None else percent(value / 100)


def _number(value: float | None, unit: str) -> str:
    return EMPTY if value is None else quantity(value, unit)
