"""What instances' lives cost: bars to scale, one a platform, and a table; drawn for the page, and as text."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import polars as pl
from markupsafe import Markup
from rich import box
from rich.table import Table
from rich.text import Text

from tare.features.life import words
from tare.model import FAILURES, Arm, Family, Status, TrialKey
from tare.report.campaign.curve_plot import Curves, Mark, PlotPoint
from tare.report.campaign.means import Mean, mean_of
from tare.report.model import ResultReport
from tare.report.parts.svg import Axis, Drawing, draw_axis, join, plain, row_labels
from tare.report.sentences import glance_words
from tare.report.sentences.numbers import EMPTY
from tare.safe_text import clean
from tare.store import Store

#: A bar that is longer than the median of all by this factor is cut, so that it does not flatten the others.
_LONG = 4.0
_ROW, _TOP, _BOTTOM, _WIDTH = 34, 4, 26, 900.0
#: A part's own interval is drawn where the part is so many units wide: two lines must not meet.
_ROOM = 14.0
#: In a terminal: a part's sign and style, in their order.
_SIGNS: Sequence[tuple[str, str]] = (
    ("\N{LIGHT SHADE}", "blue"),
    ("\N{FULL BLOCK}", "yellow"),
    ("\N{MEDIUM SHADE}", "green"),
    ("\N{DARK SHADE}", "magenta"),
    ("\N{MIDDLE DOT}", "cyan"),
)
_NARROWEST, _WIDEST = 16, 72
#: The metric that shows how many starts were tried together.
_TRIED = re.compile("ok-([1-9][0-9]{0,5})")
#: In reasons: ids of instances and containers, and addresses.
_ID = re.compile(r"[0-9a-f]{8,}(x[0-9]+)?|\b[0-9]+(\.[0-9]+){3}(:[0-9]+)?\b")


@dataclass(frozen=True, slots=True)
class LifeBar:
    """A platform's life, in ms: its parts in order, the whole, and one more command."""

    platform: str
    parts: tuple[Mean, ...]
    whole: Mean
    execute: Mean | None


@dataclass(frozen=True, slots=True)
class Bursts:
    """Starts or restores that were issued together: a table, a row a platform, and curves over their number."""

    title: str
    heads: tuple[str, ...]
    rows: Mapping[str, tuple[str, ...]]
    curves: tuple[Curves, ...]
    note: str
    key: str = ""  # what is marked on the curves


@dataclass(frozen=True, slots=True)
class Lives:
    """The section: bars by the length of the whole, and the table, a row a platform."""

    bars: tuple[LifeBar, ...]
    heads: tuple[str, ...]
    rows: Mapping[str, tuple[str, ...]]
    said: tuple[str, ...]
    bursts: tuple[Bursts, ...]
    failed: tuple[str, ...] = ()  # sentences on starts, copies and pauses that failed

    @property
    def limit(self) -> float:
        """The end of the axis, in ms."""
        ends = [max(bar.whole.high, sum(part.value for part in bar.parts)) for bar in self.bars]
        ends = [end for end in ends if 0 < end < math.inf] or [1.0]  # a stranger's file may have any figure
        return min(max(ends), _LONG * statistics.median(ends))


#: Failures by workload and platform: how many, by reason.
Failures = Mapping[tuple[str, str], Mapping[str, int]]


def failures_of(store: Store, trials: pl.DataFrame) -> Failures:
    """Return why starts, copies and pauses of trials failed, the commonest reason first."""
    reasons: dict[tuple[str, str], list[str]] = {}
    ended = trials.filter((pl.col("status") == Status.OK) & pl.col("workload").cast(pl.String).is_in(list(words.TRIED)))
    for block, workload, platform, replica in ended.select("block", "workload", "platform", "replica").iter_rows():
        key = TrialKey(block, str(workload), Arm(str(platform), replica))
        output = store.outputs(key).get(FAILURES)
        if output is not None:
            lines = output.data.decode(errors="replace").splitlines()
            reasons.setdefault((key.workload, key.arm.platform), []).extend(lines)
    return {of: _counted(lines) for of, lines in reasons.items()}


def _counted(reasons: Sequence[str]) -> dict[str, int]:
    """Count reasons that differ in ids alone as one, by the first of them."""
    alike: dict[str, list[str]] = {}
    for reason in reasons:
        alike.setdefault(_ID.sub("", reason), []).append(reason)
    return {of[0]: len(of) for of in sorted(alike.values(), key=len, reverse=True)}


def lives(
    all_results: Sequence[ResultReport], names: Sequence[str], failures: Failures = MappingProxyType({})
) -> Lives | None:
    """The section of a campaign; None where no part of a life was measured. ``names``: the platforms, in order."""
    results = {(result.workload, result.metric): result for result in all_results if result.family is Family.LIFE}
    columns = [
        (head, cells) for workload, metric, head in words.COLUMNS if (cells := _cells(results.get((workload, metric))))
    ]
    bursts = (*_bursts(all_results), *_copies(all_results))
    if not columns and not bursts:
        return None
    rows = {name: tuple(cells.get(name, EMPTY) for _, cells in columns) for name in names}
    rows = {name: cells for name, cells in rows.items() if any(cell != EMPTY for cell in cells)}
    bars = sorted(_bars(names, results), key=lambda bar: bar.whole.value)
    sentences = tuple(glance_words.life(all_results))
    failed = tuple(words.failed(platform, workload, why) for (workload, platform), why in failures.items())
    return Lives(tuple(bars), tuple(head for head, _ in columns), rows, sentences, bursts, failed)


def _means(result: ResultReport | None) -> dict[str, Mean]:
    platforms = () if result is None else result.platforms
    return {figures.platform: mean for figures in platforms if (mean := mean_of(figures)) is not None}


def _cells(result: ResultReport | None) -> dict[str, str]:
    """By platform, what a table shows: the figure, or why there is none."""
    platforms = () if result is None else result.platforms
    cells = {
        figures.platform: words.figure(mean.value, mean.half) if (mean := mean_of(figures)) else figures.unseen
        for figures in platforms
    }
    return {name: cell for name, cell in cells.items() if cell}


def _bars(names: Sequence[str], results: Mapping[tuple[str, str], ResultReport]) -> Iterator[LifeBar]:
    parts = [_means(results.get(("whole-life", part))) for part in words.PARTS]
    wholes, entered = _means(results.get(("whole-life", "whole"))), _means(results.get(("exec", "return")))
    for name in names:
        if name in wholes and all(name in means for means in parts):
            yield LifeBar(name, tuple(means[name] for means in parts), wholes[name], entered.get(name))


def _bursts(results: Sequence[ResultReport]) -> Iterator[Bursts]:
    for workload, title in words.BURSTS.items():
        by_metric = {result.metric: result for result in results if result.workload == workload}
        counts = _counts(by_metric)
        if not counts:
            continue
        most = counts[-1]
        heads = {f"p50-{count}": f"{words.MEDIAN if count == 1 else ''} {count}".strip() for count in counts}
        heads |= {f"p95-{most}": words.of_most("p95", most), f"total-{most}": words.of_most("all", most)}
        heads |= {f"ok-{most}": words.of_most("ok, %", most), f"cpu-{most}": words.of_most("CPU, s", most)}
        heads[words.KNEE] = words.KNEE
        curves = tuple(_curves(by_metric, counts, words.CURVES, words.BURST_AXIS))
        yield Bursts(title, *_table_of(by_metric, heads), curves, words.BURST_NOTE, words.KNEE)


def _copies(results: Sequence[ResultReport]) -> Iterator[Bursts]:
    for workload, title in words.COPIES.items():
        by_metric = {result.metric: result for result in results if result.workload == workload}
        counts = _counts(by_metric)
        heads = {f"{kind}-{count}": f"{head} {count}" for kind, head in words.COPY_HEADS.items() for count in counts}
        if counts:
            curves = tuple(_curves(by_metric, counts, words.COPY_CURVES, words.COPY_AXIS))
            yield Bursts(title, *_table_of(by_metric, heads), curves, words.COPY_NOTE)


def _counts(by_metric: Mapping[str, ResultReport]) -> list[int]:
    """The numbers of starts that were tried; a stranger's file may name anything."""
    return sorted(int(match[1]) for name, of in by_metric.items() if (match := _TRIED.fullmatch(name)) and _means(of))


def _table_of(
    by_metric: Mapping[str, ResultReport], heads: Mapping[str, str]
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """The heads of columns with a figure, and a row a platform. ``heads``: by metric."""
    cells = {head: of for metric, head in heads.items() if (of := _cells(by_metric.get(metric)))}
    names = dict.fromkeys(name for of in cells.values() for name in of)
    return tuple(cells), {name: tuple(of.get(name, EMPTY) for of in cells.values()) for name in names}


def _curves(
    by_metric: Mapping[str, ResultReport], counts: Sequence[int], kinds: Mapping[str, str], axis: str
) -> Iterator[Curves]:
    """Figures over the number of starts, and knees on the medians. ``kinds``: titles by a metric's first part."""
    knees = _means(by_metric.get(words.KNEE))
    for kind, label in kinds.items():
        points: dict[str, list[PlotPoint]] = {}
        for count in counts:
            for name, mean in _means(by_metric.get(f"{kind}-{count}")).items():
                points.setdefault(name, []).append(PlotPoint(count, mean.value, mean.low, mean.high))
        marks = {
            name: [Mark(words.KNEE, *(max(1.0, end) for end in (knee.value, knee.low, knee.high)))]
            for name, knee in knees.items()
            if kind == "p50" and name in points
        }
        if any(len(of) > 1 for of in points.values()):
            yield Curves(label, axis, points, marks, log=True)


# --- the page ----------------------------------------------------------------------------------------------


def draw(shown: Lives) -> Markup:
    """The bars, with a key of the parts above them."""
    names = [bar.platform for bar in shown.bars]
    height = _TOP + _ROW * len(names) + _BOTTOM
    drawing = Drawing(_WIDTH, height, words.label(names))
    left = row_labels(drawing, names, _TOP - 3, _ROW)
    axis = Axis(0.0, 1.04 * shown.limit, left, _WIDTH - 150)
    draw_axis(drawing, axis, _TOP, height - _BOTTOM, lambda value: f"{plain(value)} ms" if value else "0")
    for row, bar in enumerate(shown.bars):
        _draw_bar(drawing, axis, _TOP + _ROW * row, bar, shown.limit)
    keys = join(
        *(
            Markup('<span class="key"><i class="swatch-part part-{}"></i> {}</span>').format(at, name)
            for at, name in enumerate([*words.PARTS.values(), words.EXEC])
        )
    )
    return join(Markup('<p class="small keys">{}</p>').format(keys), drawing)


def _draw_bar(drawing: Drawing, axis: Axis, y: float, bar: LifeBar, limit: float) -> None:
    begin, middle = 0.0, y + 12
    for at, (name, part) in enumerate(zip(words.PARTS.values(), bar.parts, strict=True)):
        x, end = axis.at(begin), begin + part.value
        title = f"{bar.platform}, {name}: {words.about(part.value, part.half, 'ms')}"
        if begin < limit:
            width = max(0.8, axis.at(min(end, limit)) - x)
            drawing.add("rect", x=x, y=y + 5, width=width, height=14, class_=f"part part-{at}", title=title)
            if 0 < part.half <= part.value and width >= _ROOM and end <= limit:
                _whisker(drawing, axis, y + 9, begin + part.low, begin + part.high, 2.5)
        if name == words.PARTS["execute"] and bar.execute is not None and begin < limit:
            width = max(0.8, axis.at(min(begin + bar.execute.value, limit)) - x)
            title = f"{bar.platform}, {words.EXEC}: {words.about(bar.execute.value, bar.execute.half, 'ms')}"
            exec_at = f"part part-{len(words.PARTS)}"
            drawing.add("rect", x=x, y=y + 21, width=width, height=4, class_=exec_at, title=title)
        begin = end
    shown = words.about(bar.whole.value, bar.whole.half, "ms")
    cut = bar.whole.value > limit
    if bar.whole.half and not cut:
        _whisker(drawing, axis, y + 15, bar.whole.low, min(bar.whole.high, 1.04 * limit), 4)
    end = limit if cut else min(max(bar.whole.high, begin), 1.04 * limit)
    drawing.text(axis.at(end) + 6, middle, f"{words.CUT} {shown}" if cut else shown, "soft")


def _whisker(drawing: Drawing, axis: Axis, y: float, low: float, high: float, tall: float) -> None:
    ends = axis.at(max(low, 0.0)), axis.at(high)
    path = f"M{ends[0]:.1f} {y}H{ends[1]:.1f}" + "".join(f"M{x:.1f} {y - tall}v{2 * tall}" for x in ends)
    drawing.add("path", d=path, class_="bar baseline")


# --- the terminal ------------------------------------------------------------------------------------------


def render(shown: Lives, width: int) -> Iterator[Text | Table]:
    """The section for so many characters: bars of signs, a key, and the table in as many parts as it takes."""
    yield Text(words.TITLE, "bold")
    for sentence in shown.said:
        yield Text(clean(sentence))
    if shown.bars:
        yield from _bars_of_text(shown, width)
    if shown.heads:
        yield from _tables(shown.heads, shown.rows, width)
        yield Text(f"{words.TABLE} {words.LACKING if words.EXEC in shown.heads else ''}".rstrip(), "dim")
    for burst in shown.bursts:
        yield Text(f"\n{burst.title}", "bold")
        yield from _tables(burst.heads, burst.rows, width)
        yield Text(burst.note, "dim")
    for sentence in shown.failed:
        yield Text(clean(sentence))


def _bars_of_text(shown: Lives, width: int) -> Iterator[Text]:
    names = max(len(bar.platform) for bar in shown.bars)
    figures = [words.about(bar.whole.value, bar.whole.half, "ms") for bar in shown.bars]
    across = min(width - names - max(map(len, figures)) - 4, _WIDEST)
    if across < _NARROWEST:
        return
    for bar, figure in zip(shown.bars, figures, strict=True):
        line = Text(f"{clean(bar.platform):<{names}} ")
        begin, drawn = 0.0, 0
        for part, (sign, style) in zip(bar.parts, _SIGNS, strict=True):
            begin += part.value
            end = max(round(min(max(0.0, begin), shown.limit) / shown.limit * across), drawn)
            line.append(sign * (end - drawn), style)
            drawn = end
        if begin > shown.limit:
            line.append(words.CUT)
        yield line.append(f" {figure}")
    key = Text(" " * (names + 1))
    for (sign, style), name in zip(_SIGNS, words.PARTS.values(), strict=True):
        key.append(sign * 2, style).append(f" {name}  ", "dim")
    yield key


def _tables(heads: Sequence[str], rows: Mapping[str, Sequence[str]], width: int) -> Iterator[Table]:
    """Rows of platforms, in groups of columns that fit."""
    columns = list(zip(heads, *rows.values(), strict=True))
    first = (words.PLATFORM, *map(clean, rows))
    room = width - max(map(len, first))
    group: list[tuple[str, ...]] = []
    for column in columns:
        if group and sum(max(map(len, each)) + 2 for each in [*group, column]) > room:
            yield _table(first, group)
            group = []
        group.append(column)
    yield _table(first, group)


def _table(first: Sequence[str], columns: Sequence[Sequence[str]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True)
    table.add_column(first[0])
    for column in columns:
        table.add_column(column[0], justify="right")
    for row in zip(first[1:], *(column[1:] for column in columns), strict=True):
        table.add_row(*(Text(cell) for cell in row))
    return table
