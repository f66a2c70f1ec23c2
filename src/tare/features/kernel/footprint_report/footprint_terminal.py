"""Footprints in a terminal: a table per level, a row per platform."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tare.features.kernel.footprint_report import instructions_terminal, stacks_terminal
from tare.features.kernel.models.footprint_models import FootprintsReport, LevelReport
from tare.features.kernel.words import footprint_words as words
from tare.report.sentences.numbers import EMPTY
from tare.safe_text import clean


def render(report: FootprintsReport) -> Iterator[RenderableType]:
    """A table per level with its notes, then a legend and the sampled stacks."""
    for level in report.levels:
        yield Text()
        total = "" if level.known is None else f" (this kernel has {words.count(level.known)})"
        yield Text(f"{words.LEVELS[level.level]} that ran{total}", style="bold")
        yield _table(level)
        for note in words.notes(level):
            yield Text(f"  {clean(note)}", style="dim")
    if report.levels:
        yield Text()
        yield Text(words.legend(report), style="dim")
    if report.stacks:
        yield from stacks_terminal.render(report.stacks)
    if report.instructions:
        yield from instructions_terminal.render(report.instructions)


def _table(level: LevelReport) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("platform", no_wrap=True)
    other_views = [view for view in level.views if view != level.view]
    best = words.VIEWS[level.view] if level.view else ""
    for phase in level.phases:
        table.add_column(f"{best}\n{words.PHASES[phase]}", justify="right")
    for view in other_views:
        table.add_column(f"{words.VIEWS[view]}\n{words.PHASES[level.phases[-1]]}", justify="right")
    table.add_column("repeats\nshare", justify="right")
    table.add_column("there are\nat least", justify="right", no_wrap=True)
    for platform in level.platforms:
        sets = [level.set_of(platform, str(level.view), phase) for phase in level.phases]
        cells = [
            EMPTY if counted is None else f"{words.count(counted.things)}\n{words.share(counted.share_percent)}"
            for counted in sets
        ]
        for view in other_views:
            counted = level.set_of(platform, view, level.phases[-1])
            cells.append(EMPTY if counted is None else words.count(counted.things))
        whole = sets[-1]
        cells += [EMPTY, EMPTY] if whole is None else [words.stability(whole), words.unseen(whole)]
        table.add_row(clean(platform), *cells)
    return table
