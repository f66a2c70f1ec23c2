"""Tables at the widths of terminals, and in a pipe: no name is cut, no line is drawn where nobody looks."""

from __future__ import annotations

import io
import re

import pytest
from rich import box
from rich.cells import cell_len
from rich.console import Group
from rich.table import Table
from rich.text import Text

from tare.cli.console import Console

NAME = "sysbench-fileio-seqrd-and-more"
BOX = re.compile("[\N{BOX DRAWINGS LIGHT HORIZONTAL}-\N{BOX DRAWINGS LIGHT DIAGONAL CROSS}]")


def _table(**options: object) -> Table:
    table = Table(**{"box": box.SIMPLE_HEAD, "pad_edge": False, "padding": (0, 1), **options})
    for head in ("name", "family", "a title"):
        table.add_column(head)
    table.add_row(NAME, "storage", "words that go on for so long that they are broken at eighty columns, and go on")
    table.add_row("tmpfs", Text("memory"), "")
    return table


def _printed(what: object, width: int, *, terminal: bool = True) -> list[str]:
    console = Console(width=width)
    console.file = io.StringIO()
    console._force_terminal = terminal
    console.no_color = True
    console.print(what)
    return re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue()).splitlines()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_name_is_whole_and_no_line_is_longer_than_the_terminal(width: int) -> None:
    lines = _printed(Group(_table()), width)
    assert any(NAME in line for line in lines)
    assert max(map(cell_len, lines)) <= width
    assert "…" not in "".join(lines)


def test_rows_are_lists_where_names_do_not_fit_side_by_side() -> None:
    lines = _printed(_table(title="What there is"), 38)
    assert lines[:3] == ["What there is", NAME, "  family: storage"]
    assert "  a title: " not in lines  # an empty cell is not said
    assert max(map(cell_len, lines)) <= 38


def test_in_a_pipe_a_row_is_a_line_without_lines_and_without_blanks_at_its_end() -> None:
    lines = _printed(Group(_table(), Text("prose " * 40)), 80, terminal=False)
    assert lines[1].endswith("broken at eighty columns, and go on")
    assert not BOX.search("\n".join(lines))
    assert all(line == line.rstrip() for line in lines)
    assert max(map(len, lines[3:])) <= 80  # prose is broken


def test_a_table_that_is_drawn_again_has_the_width_of_that_time() -> None:
    table = _table()
    narrow = _printed(table, 70)
    assert _printed(table, 150) != narrow
    assert _printed(table, 70) == narrow


def test_a_column_that_may_not_be_broken_is_not() -> None:
    table = Table(box=None)
    table.add_column("name", no_wrap=True)
    table.add_column("text")
    table.add_row("two words", "many more words than there is room for in a line")
    assert any("two words" in line for line in _printed(table, 30))
