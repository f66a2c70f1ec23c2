"""Tables as wide as they may be: no name is cut, and where there is no terminal no lines are drawn.

rich shrinks columns in proportion and cuts what is longer than its column. Here a column keeps its longest word; where
all of them do not fit side by side, each row is shown as a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

#: Wider than any table: where no terminal wraps lines, a row is a line.
_ENDLESS = 100_000


def fitted(table: Table, console: Any, options: ConsoleOptions) -> tuple[RenderableType, ConsoleOptions]:
    """The table with widths for its columns, or as lists, and the options to draw it with.

    ``console``: tare's (`tare.cli.console`), which alone prints.
    """
    if not console.is_terminal:
        plain = _copy(table)
        plain.box = None
        return plain, options.update(width=_ENDLESS, no_wrap=False)
    sizes = [_size(console, options, column) for column in table.columns]
    room = options.max_width - _around(table)
    if sum(most for _, most in sizes) <= room:
        return table, options
    if sum(least for least, _ in sizes) > room:
        return _lists(table), options
    narrow = _copy(table)
    for column, width in zip(narrow.columns, _widths(sizes, room), strict=True):
        column.width = width
    return narrow, options


def _copy(table: Table) -> Table:
    """A table of its own: one that is drawn again may have another width then."""
    twin = Table.grid()
    twin.__dict__.update(table.__dict__)
    twin.columns = [column.copy() for column in table.columns]
    for column, original in zip(twin.columns, table.columns, strict=True):
        column._cells = original._cells
    return twin


def _size(console: Any, options: ConsoleOptions, column: Column) -> tuple[int, int]:
    """A column's longest word, and its longest line."""
    wide = options.update(width=_ENDLESS)
    sizes = [Measurement.get(console, wide, _shown(cell)) for cell in (column.header, *column.cells)]
    most = max(size.maximum for size in sizes)
    least = most if column.no_wrap else max(size.minimum for size in sizes)
    return max(least, column.min_width or 0), max(most, column.min_width or 0)


def _shown(cell: RenderableType) -> RenderableType:
    return Text.from_markup(cell) if isinstance(cell, str) else cell


def _around(table: Table) -> int:
    """Return what the columns' padding and the table's edges take."""
    _, right, _, left = table.padding
    between = max(left, right) if table.collapse_padding else left + right
    drawn = 0 if table.box is None else len(table.columns) + 1
    return between * len(table.columns) + drawn


def _widths(sizes: Sequence[tuple[int, int]], room: int) -> list[int]:
    """Each column at least its longest word; those that need little more get it first."""
    widths = [least for least, _ in sizes]
    left = room - sum(widths)
    open_columns = sorted(range(len(sizes)), key=lambda at: sizes[at][1] - sizes[at][0])
    for number, at in enumerate(open_columns):
        least, most = sizes[at]
        more = min(most - least, left // (len(open_columns) - number))
        widths[at] += more
        left -= more
    return widths


def _lists(table: Table) -> Group:
    """Each row as its first cell, and below it the others with their heads."""
    heads = [Text(" ").join(_text(column.header).split()) for column in table.columns]
    parts: list[RenderableType] = [Text(str(table.title), style="bold")] if table.title else []
    for row in zip(*(column.cells for column in table.columns), strict=True):
        parts.append(Text.assemble(_one_line(row[0]), style="bold"))
        for head, cell in zip(heads[1:], row[1:], strict=True):
            shown = _one_line(cell)
            if shown.plain.strip():
                parts.append(Text.assemble("  ", head, ": " if head.plain else "", shown))
    return Group(*parts)


def _text(cell: RenderableType) -> Text:
    shown = _shown(cell)
    return shown if isinstance(shown, Text) else Text(str(cell))


def _one_line(cell: RenderableType) -> Text:
    return Text("; ").join(line for line in _text(cell).split("\n") if line.plain.strip())
