"""Nothing that a guest says moves the cursor: whatever is printed, and however."""

import ast
import contextlib
import io
import os
import pty
import sys
from pathlib import Path

import pytest
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tare.cli import console
from tare.cli.console import Console, Passing, emit
from tare.safe_text import plain

#: A title, a cleared screen, C1's CSI, DEL, a carriage return, writing turned around, half of a character.
HOSTILE = "a\x1b]0;owned\x07b\x1b[2Jc\x9b31md\x7fe\rf\u202eg\u2066h\udc80i"
OBEYED = ("\x1b", "\x07", "\x9b", "\x7f", "\r", "\u202e", "\u2066", "\udc80")
KEPT = "a\N{REPLACEMENT CHARACTER}]0;owned"


def printed(show, **options):
    """What a console writes."""
    out = Console(width=200, **options)
    out.file = io.StringIO()
    show(out)
    return out.file.getvalue()


def table():
    cells = Table(HOSTILE)
    cells.add_row(HOSTILE, style="bold")
    return cells


@pytest.mark.parametrize(
    "show",
    [
        lambda out: out.print(HOSTILE, markup=False, soft_wrap=True),
        lambda out: out.print(HOSTILE, end="  "),
        lambda out: out.print(Text(HOSTILE, style="red")),
        lambda out: out.print(table()),
        lambda out: out.print(Group(table(), Text(HOSTILE))),
        lambda out: out.log(HOSTILE),
    ],
)
def test_whatever_a_console_prints_is_cleaned(show):
    output = printed(show)
    assert KEPT in output
    assert not [char for char in OBEYED if char in output]


def test_a_picture_still_moves_its_own_cursor():
    def show(out):
        out._force_terminal = True
        with Live(Text(HOSTILE), console=out, auto_refresh=False) as running:
            running.update(Text(HOSTILE), refresh=True)
            running.refresh()

    output = printed(show)
    assert "\x1b[?25l" in output, "rich's own"
    assert "\x1b[2J" not in output
    assert "\x1b]0;" not in output
    assert "\x9b" not in output


def on_a_terminal(monkeypatch, write):
    """What ``write`` writes to a standard output that is a terminal."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        write()
    received = b""
    with os.fdopen(ours, "rb", buffering=0) as screen, contextlib.suppress(OSError):  # the end, as a terminal says it
        while piece := screen.read(4096):
            received += piece
    return received.decode().replace("\r\n", "\n")


def test_data_is_cleaned_for_a_terminal(monkeypatch):
    output = on_a_terminal(monkeypatch, lambda: emit(HOSTILE))
    assert output.startswith(KEPT)
    assert not [char for char in OBEYED if char in output]


def test_a_commands_output_is_cleaned_for_a_terminal_also_where_it_is_cut(monkeypatch):
    def write():
        passing = Passing()
        for byte in HOSTILE.replace("\udc80", "ü").encode():
            passing(1, bytes([byte]))

    output = on_a_terminal(monkeypatch, write)
    assert output.startswith(KEPT)
    assert "ü" in output
    assert not [char for char in OBEYED if char in output]


def test_data_goes_into_files_as_it_is(capsysbinary):
    emit("a\x1bb")
    Passing()(1, b"\xff\x1b")
    assert capsysbinary.readouterr().out == b"a\x1bb\n\xff\x1b"


def test_a_fault_is_shown_cleaned(capsys):
    try:
        raise ValueError(HOSTILE.replace("\udc80", ""))
    except ValueError as fault:
        console.show_fault(fault)
    errors = capsys.readouterr().err
    assert "Traceback" in errors
    assert KEPT in errors
    assert not [char for char in OBEYED if char in errors]


SIGNS = (
    "\N{MINUS SIGN}1.4 % \N{PLUS-MINUS SIGN}2 \N{MICRO SIGN}s 3\N{MULTIPLICATION SIGN} ▲ ▼ △ ▽ ≈ 128 … 137 → ✓ Kärnä ▁█"
)


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("ascii", "-1.4 % +-2 us 3x A V ^ v ~ 128 ... 137 -> + Karna _@"),
        ("latin-1", "-1.4 % ±2 µs 3× A V ^ v ~ 128 ... 137 -> + Kärnä _@"),
        ("utf-8", SIGNS),
    ],
)
def test_what_an_encoding_lacks_is_written_by_what_reads_alike(encoding, shown):
    raw = io.BytesIO()
    out = Console(width=200)
    out.file = io.TextIOWrapper(raw, encoding=encoding, errors="backslashreplace")
    out.print(SIGNS, markup=False, highlight=False)
    out.file.flush()
    assert raw.getvalue().decode(encoding) == f"{shown}\n"


def test_all_that_tare_itself_prints_has_a_form_in_ascii():
    """Every character beyond ASCII in a text of what is printed; the page, its drawings and literature are UTF-8."""
    source = Path(console.__file__).parents[1]
    files = [*(source / "cli").rglob("*.py"), *(source / "report").rglob("*.py"), *(source / "analysis").rglob("*.py")]
    texts = [
        node.value
        for file in files
        if file.name != "escaping.py"  # which has ranges of characters
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    beyond = {character for text in texts for character in text if character > "\x9f" and character not in OBEYED}
    assert len(beyond) > 20
    of_docstrings = {*"├└√²½Σ"}
    assert {character for character in beyond if not plain(character, "ascii").isascii()} <= of_docstrings


def test_what_would_be_read_as_another_number_stays():
    assert plain("10² ½", "ascii") == "10² ½"
