"""Footprints in a terminal: a row a platform, a table a level."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tare.clean import clean
from tare.report.campaign.cells import EMPTY
from tare.report.footprint import stacks_terminal, words
from tare.report.footprint.model import FootprintsReport, LevelReport


def render(found: FootprintsReport) -> Iterator[RenderableType]:
    """A table a level with what it means, and what else is in the other forms of the report."""
    for level in found.levels:
        yield Text()
        known = "" if level.known is None else f" (this kernel has {words.count(level.known)})"
        yield Text(f"{words.LEVELS[level.level]} that ran{known}", style="bold")
        yield _table(level)
        for note in words.notes(level):
            yield Text(f"  {clean(note)}", style="dim")
    if found.levels:
        yield Text()
        yield Text(_legend(found), style="dim")
    if found.stacks:
        yield from stacks_terminal.render(found.stacks)


def _table(level: LevelReport) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    table.add_column("platform", no_wrap=True)
    others = [view for view in level.views if view != level.view]
    best = words.VIEWS[level.view] if level.view else ""
    for phase in level.phases:
        table.add_column(f"{best}\n{words.PHASES[phase]}", justify="right")
    for view in others:
        table.add_column(f"{words.VIEWS[view]}\n{words.PHASES[level.phases[-1]]}", justify="right")
    table.add_column("repeats\nshare", justify="right")
    table.add_column("there are\nat least", justify="right", no_wrap=True)
    for platform in level.platforms:
        found = [level.set_of(platform, str(level.view), phase) for phase in level.phases]
        cells = [
            EMPTY if one is None else f"{words.count(one.things)}\n{words.share(one.share_percent)}" for one in found
        ]
        for view in others:
            one = level.set_of(platform, view, level.phases[-1])
            cells.append(EMPTY if one is None else words.count(one.things))
        whole = found[-1]
        cells += [EMPTY, EMPTY] if whole is None else [words.stability(whole), words.unseen(whole)]
        table.add_row(clean(platform), *cells)
    return table


def _legend(found: FootprintsReport) -> str:
    views = list(dict.fromkeys(view for level in found.levels for view in level.views))
    told = "; ".join(f"{words.VIEWS[view]}: {words.MEANINGS[view]}" for view in views)
    return (
        f"Different things that ran at least once, all repeats together, as the union over workloads. {told}."
        " Repeats share: of two repeats, what both have of what either has. There are at least: what no repeat saw"
        " included (Chao 2, 95 % interval). What they share, where, and what differs most: --html or --json."
    )
