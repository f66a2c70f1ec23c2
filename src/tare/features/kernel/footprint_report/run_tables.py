"""The tables that `tare footprint` prints at its end, one per workload, of the footprints of this run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from tare.features.kernel.analysis.footprint_sets import Exposure, PooledFootprints, View
from tare.features.kernel.footprint_report import instructions_terminal, stacks_terminal
from tare.features.kernel.footprint_report.footprint_parts import exposures
from tare.features.kernel.footprint_report.instruction_parts import instructions_report
from tare.features.kernel.footprint_report.stack_parts import stacks_report
from tare.features.kernel.words import footprint_words as words
from tare.footprint_model import IDLE, Footprint, Phase, Scope
from tare.model import Level
from tare.safe_text import clean

#: The first platform of tables.
_FIRST = "native"
#: Most names in one line below a table.
_SHOWN = 40
_COLUMNS = ("in the start", "in the work", "hits a second", "everybody's", "hits a second", "lost")


@dataclass(frozen=True, slots=True)
class FootprintRow:
    """A row of a table: a platform's start and one workload on it; None where that was not counted."""

    platform: str  # or IDLE
    start: PooledFootprints | None  # of the instance, as is ``steady``
    steady: PooledFootprints | None
    everybody: PooledFootprints | None  # of the whole host during the workload
    #: what no other platform of the table ran, in the start or the workload; empty where instances were not separated
    only: tuple[str, ...]

    @property
    def lost(self) -> int:
        """The number of events that were lost."""
        return sum(pool.lost for pool in (self.start, self.everybody) if pool)


def render(footprints: Iterable[Footprint]) -> Iterator[RenderableType]:
    """The tables of these footprints, one per level and workload; of the starts alone where there is no workload."""
    counted = list(footprints)
    # The footprints are in random order; the tables are not.
    for exposure in exposures(
        counted, dict.fromkeys([_FIRST, *(footprint.platform for footprint in counted)])
    ).values():
        if exposure.level is Level.STACKS:
            yield from stacks_terminal.render(stacks_report(exposure))
            yield Text()
        elif exposure.level is Level.INSTRUCTIONS:
            yield from instructions_terminal.render(instructions_report(exposure))
        else:
            yield from _tables(exposure)


def _tables(exposure: Exposure) -> Iterator[RenderableType]:
    for workload in exposure.workloads or (None,):
        yield from _table(exposure, workload)
        yield Text()
    if exposure.left is not None:
        yield Text(words.taken_off(len(exposure.left)))


def rows(exposure: Exposure, workload: str | None) -> list[FootprintRow]:
    """A row per platform, in their order in ``exposure``; last the idle host, if it was counted.

    ``workload`` None: all together, or the start alone where no workload was counted.
    """
    table = [_row(exposure, platform, workload) for platform in exposure.platforms]
    return [*table, FootprintRow(IDLE, None, None, exposure.idle, ())] if exposure.idle else table


def _row(exposure: Exposure, platform: str, workload: str | None) -> FootprintRow:
    sets = {name: exposure.things(name, View.INSTANCE, None, workload) for name in exposure.platforms}
    elsewhere = frozenset[str]().union(*(members for name, members in sets.items() if name != platform))
    return FootprintRow(
        platform=platform,
        start=exposure.pool(platform, Scope.INSTANCE, Phase.START),
        steady=exposure.pool(platform, Scope.INSTANCE, Phase.STEADY, workload),
        everybody=exposure.pool(platform, Scope.HOST, Phase.STEADY, workload),
        only=tuple(sorted(sets[platform] - elsewhere)),
    )


def _table(exposure: Exposure, workload: str | None) -> Iterator[RenderableType]:
    title = workload or "no workload"
    table = Table(box=None, pad_edge=False, title=title, title_justify="left", title_style="bold")
    table.add_column(words.LEVELS[exposure.level].lower())
    for name in _COLUMNS:
        table.add_column(name, justify="right")
    table_rows = rows(exposure, workload)
    for row in table_rows:
        label = "idle host" if row.platform == IDLE else row.platform
        pools = (row.start, row.steady, row.everybody)
        start, steady, everybody = ("" if pool is None else words.count(len(pool.hits)) for pool in pools)
        rates = ["" if pool is None else words.count(pool.whole_rate) for pool in pools[1:]]
        table.add_row(Text(clean(label)), start, steady, rates[0], everybody, rates[1], words.count(row.lost))
    yield table
    for row in table_rows:
        if row.only:
            more = f" and {len(row.only) - _SHOWN} more" if len(row.only) > _SHOWN else ""
            yield Text(clean(f"only {row.platform}: {', '.join(row.only[:_SHOWN])}{more}"))
