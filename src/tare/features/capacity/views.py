"""How many instances fit, in the report: from the analysis to the model, to the terminal, and to a drawing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

from rich import box
from rich.table import Table
from rich.text import Text

from tare.capacity_model import CAPACITY, FILL, PRICES, BrokenFillError, Fill, read_fill
from tare.errors import UsageError
from tare.features.capacity import prices as price_files
from tare.features.capacity import words
from tare.features.capacity.analysis import PlatformCapacity, ResourceFit, capacities, room
from tare.features.capacity.model import (
    CapacityLevelReport,
    CapacityReport,
    CostReport,
    FilledReport,
    MemoryPartsReport,
    PlatformCapacityReport,
    PricedReport,
    ReserveReport,
    ResourceFitReport,
    StopReport,
)
from tare.features.capacity.prices import Cost, Prices
from tare.model import Arm, Status, TrialKey
from tare.report.campaign import curve_plot
from tare.report.parts.svg import Axis, Drawing, draw_axis, plain, row_labels
from tare.safe_text import clean
from tare.store import Store

_WIDTH, _ROW, _TOP, _BOTTOM = 400.0, 30.0, 26.0, 30.0
#: In a picture a level has at least so many times as many instances as the one before.
_STEP = 1.25
#: Characters of the terminal's bars, at most and at least.
_WIDEST, _NARROWEST = 60, 16


def capacity_of(store: Store, run_cpu_s: Mapping[str, float] | None = None) -> CapacityReport | None:
    """The section of a campaign's file; None where no fill is in it.

    ``run_cpu_s``: CPU seconds of a one-shot command, by platform, where the campaign has them.
    """
    if CAPACITY not in {workload.name for workload in store.record.workloads}:
        return None
    fills, unreadable = _fills(store)
    every = [fill for of in fills.values() for fill in of]
    if not every:
        return None
    first, prices = every[0], None
    try:
        prices = _prices(store)
    except UsageError as error:
        unreadable.append(error.what)
    reserve = first.memory_reserve / first.memory_total if first.memory_total else 0.0
    platforms = []
    for capacity in capacities(fills, store.record.baseline):
        lines = [(fit.resource, fit.lines_at, fit.most - fit.kept_back) for fit in capacity.resources]
        runs = (run_cpu_s or {}).get(capacity.platform)
        cost = None if prices is None or not capacity.counts else price_files.cost(prices, lines, reserve, runs)
        platforms.append(platform_report(capacity, cost, prices))
    report = CapacityReport(
        room=sum(map(room, every)) / len(every),
        reserve=first.memory_reserve,
        budget=first.budget,
        cpus=first.cpus,
        active=first.active,
        text="",
        platforms=platforms,
        prices=None if prices is None else PricedReport(**prices.host.model_dump()),
        host=words.host(store.record.host),
        left_out=unreadable,
    )
    return report.model_copy(update={"text": words.about(report)})


def _fills(store: Store) -> tuple[Mapping[str, list[Fill]], list[str]]:
    """The fills of trials that ended well, by platform, the baseline first; and sentences on what cannot be read."""
    fills: dict[str, list[Fill]] = {store.record.baseline: []}
    unreadable = []
    for trial in store.trials().iter_rows(named=True):
        if (str(trial["workload"]), str(trial["status"])) != (CAPACITY, Status.OK):
            continue
        arm = Arm(str(trial["platform"]), int(trial["replica"]))
        output = store.outputs(TrialKey(int(trial["block"]), CAPACITY, arm)).get(FILL)
        try:
            fills.setdefault(arm.platform, []).append(read_fill(b"" if output is None else output.data))
        except BrokenFillError as error:
            unreadable.append(words.broken(arm.platform, int(trial["block"]), str(error)))
    return {platform: of for platform, of in fills.items() if of}, unreadable


def _prices(store: Store) -> Prices | None:
    """The price file that the campaign was given last. Raises `UsageError`."""
    texts = [data.decode("utf-8", "replace") for name, data in store.attachments() if name == PRICES]
    return price_files.parse(texts[-1], PRICES) if texts else None


def platform_report(capacity: PlatformCapacity, cost: Cost | None, prices: Prices | None) -> PlatformCapacityReport:
    """Return a platform's part of the report."""
    first = capacity.first if capacity.counts else None
    memory = asdict(capacity.memory)
    explained = memory.pop("explained")
    return PlatformCapacityReport(
        platform=capacity.platform,
        text=words.answer(capacity, cost, prices),
        n_fills=capacity.n_fills,
        most_run=capacity.most_run,
        count=None if first is None else first.fits.count,
        low=None if first is None else first.fits.low,
        high=None if first is None else first.fits.high,
        first=None if first is None else first.resource,
        lift=words.lift(None if first is None else first.resource),
        resources=[_resource(fit) for fit in capacity.resources],
        memory=MemoryPartsReport(**memory, explained_percent=None if explained is None else 100 * explained),
        reserve=None
        if capacity.reserve is None
        else ReserveReport(
            **asdict(capacity.reserve),
            yaml=words.yaml(capacity.platform, capacity.reserve),
            equivalents=words.equivalents(capacity.reserve),
        ),
        cost=None if cost is None else CostReport(**asdict(cost)),
        start_median_ms=capacity.starts_ms[0],
        start_p99_ms=capacity.starts_ms[1],
        levels=[CapacityLevelReport(**asdict(level)) for level in capacity.levels],
        knee=capacity.knee,
        filled=None if capacity.filled is None else FilledReport(**asdict(capacity.filled)),
        stops=[StopReport(stop=stop, reason=reason) for stop, reason in capacity.stops],
    )


def _resource(fit: ResourceFit) -> ResourceFitReport:
    return ResourceFitReport(
        resource=fit.resource,
        once=fit.line.once,
        each=fit.line.each,
        most=fit.most,
        kept_back=fit.kept_back,
        count=_finite(fit.fits.count),
        low=fit.fits.low,
        high=_finite(fit.fits.high),
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


# --- terminal ----------------------------------------------------------------------------------------------


def render_capacity(report: CapacityReport, width: int, *, picture: bool = True) -> Iterator[Table | Text]:
    """A sentence a platform, the picture, and the table. ``picture``: whether to draw, which is for eyes alone."""
    yield Text(words.TITLE, "bold")
    for platform in report.platforms:
        yield Text(clean(platform.text), "bold")
    yield Text()
    if picture:
        yield from _bars(report.platforms, width)
    yield _table(report.platforms, width)
    yield from (Text(clean(line)) for line in map(words.cliff, report.platforms) if line)
    yield Text(clean(report.text), "dim")
    for line in report.left_out:
        yield Text(clean(line), "yellow")
    yield Text()


def _bars(platforms: Sequence[PlatformCapacityReport], width: int) -> Iterator[Text]:
    """A bar a platform: as many as fit, by the logarithm, with the interval."""
    shown = [platform for platform in platforms if platform.count is not None and platform.count >= 1]
    if not shown:
        return
    names = max(len(platform.platform) for platform in shown)
    across = min(_WIDEST, width - names - 12)
    if across < _NARROWEST:
        return
    most = max(platform.high or platform.count or 1.0 for platform in shown)
    for platform in shown:
        assert platform.count is not None
        length = max(1, round(across * platform.count / most))
        line = ["█"] * length + [" "] * (across - length)
        if platform.low is not None:
            low, high = (round(across * end / most) for end in (platform.low, platform.high or platform.count))
            for place in range(max(0, min(low, across - 1)), min(across, max(high, low + 1))):
                line[place] = "▒"
        bar = ("".join(line).rstrip(), "cyan")
        yield Text.assemble(f"{clean(platform.platform):<{names}}  ", bar, f" {words.count(platform.count)}")


def _table(platforms: Sequence[PlatformCapacityReport], width: int) -> Table:
    """The table; a narrow terminal gets less of it, and the page has all."""
    lines = [HEADS, *map(row, platforms)]
    chosen = [at for at, head in enumerate(HEADS) if width >= _WIDE or head not in _LESS]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True)
    for at in chosen:
        table.add_column(Text(lines[0][at]), justify="right" if at else "left", overflow="fold")
    for line in lines[1:]:
        table.add_row(*(Text(clean(line[at])) for at in chosen))
    return table


#: Of the table: the platform, how many fit, and of each instance MiB with its parts, thousandths of a CPU, threads, ms.
HEADS = ("platform", "fit", "MiB each", "own", "kernel", "engine", "rest", "m CPU", "threads", "start ms", "p99")
#: What a terminal of fewer characters leaves out.
_WIDE, _LESS = 90, frozenset({"threads", "p99"})


def row(platform: PlatformCapacityReport) -> list[str]:
    """The cells of a platform."""
    memory, by = platform.memory, {fit.resource.value: fit for fit in platform.resources}
    tasks = by.get("tasks")
    return [
        platform.platform,
        words.fitting(platform),
        words.mebibytes(by["memory"].each),
        words.mebibytes(memory.own),
        words.mebibytes(memory.kernel),
        words.mebibytes(memory.engine),
        words.rest(memory),
        words.milli(max(0.0, by["cpu"].each)),
        f"{tasks.each:.1f}" if tasks is not None else "–",
        f"{platform.start_median_ms:,.0f}",
        f"{platform.start_p99_ms:,.0f}",
    ]


# --- drawings ----------------------------------------------------------------------------------------------


def drawings(report: CapacityReport) -> list[Drawing]:
    """How many fit, with intervals; and the memory that one takes, by their number: level where the line holds."""
    order = [platform.platform for platform in report.platforms]
    memory = {
        platform.platform: [
            curve_plot.PlotPoint(level.count, each, each, each)
            for level in _apart(platform.levels)
            for each in (level.memory / level.count / 2**20,)
        ]
        for platform in report.platforms
    }
    drawn = [_counts(report.platforms)] if any(platform.count for platform in report.platforms) else []
    drawn.append(curve_plot.draw(curve_plot.Curves("memory of each, MiB", "instances", memory), order))
    return [*drawn, *_cliffs(report, order)]


def _apart(levels: Sequence[CapacityLevelReport]) -> Iterator[CapacityLevelReport]:
    """Yield the levels that are far enough from the one before for a picture."""
    drawn = 0
    for level in levels:
        if level.count >= _STEP * drawn:
            drawn = level.count
            yield level


def _cliffs(report: CapacityReport, order: Sequence[str]) -> Iterator[Drawing]:
    """The work that one keeps, and how late it begins, by the number of instances."""
    for label, scale, name in (("work kept, %", 100.0, "kept"), ("begins late, ms", 1.0, "late_ms")):
        points: dict[str, list[curve_plot.PlotPoint]] = {}
        for platform in report.platforms:
            for level in platform.levels:
                if (value := getattr(level, name)) is not None:
                    shown = scale * value
                    points.setdefault(platform.platform, []).append(
                        curve_plot.PlotPoint(level.count, shown, shown, shown)
                    )
        if points:
            knees = {p.platform: [curve_plot.Mark("knee", p.knee, p.knee, p.knee)] for p in report.platforms if p.knee}
            marks = {platform: mark for platform, mark in knees.items() if platform in points}
            yield curve_plot.draw(curve_plot.Curves(label, "instances", points, marks), order)


def _counts(platforms: Sequence[PlatformCapacityReport]) -> Drawing:
    """Draw a row for each platform whose number is known, in the colour of its place among all."""
    shown = [(at, platform) for at, platform in enumerate(platforms) if platform.count is not None]
    height = _TOP + _ROW * len(shown) + _BOTTOM
    drawing = Drawing(_WIDTH, height, "; ".join(platform.text for _, platform in shown))
    left = row_labels(drawing, [platform.platform for _, platform in shown], _TOP, _ROW)
    most = max(max(platform.count or 0.0, platform.high or 0.0) for _, platform in shown)
    axis = Axis(0.0, most * 1.08, left, _WIDTH - 14)
    drawing.text(left, 10, "instances that fit", "soft")
    draw_axis(drawing, axis, _TOP, height - _BOTTOM, plain)
    for row_at, (at, platform) in enumerate(shown):
        assert platform.count is not None
        y, end = _TOP + _ROW * (row_at + 0.5), axis.at(platform.count)
        colour = f"span-of held curve-{at % 7}"
        drawing.add("rect", title=platform.text, x=left, y=y - 8, width=end - left, height=16.0, class_=colour)
        if platform.low is not None:
            low, high = axis.at(platform.low), axis.at(platform.high or most)
            whiskers = f"M{low:.1f} {y}H{high:.1f}M{low:.1f} {y - 5}v10M{high:.1f} {y - 5}v10"
            drawing.add("path", d=whiskers, class_="bar baseline")
        if platform.filled is not None:
            held = axis.at(platform.filled.count)
            drawing.add("path", d=f"M{held:.1f} {y - 12}v24", class_="median", title=words.held(platform.filled.count))
    return drawing
