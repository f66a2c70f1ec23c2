"""The only way to standard output and error: control sequences from a guest or a file never reach a terminal.

`tests/test_architecture.py` checks that there is no other. Consoles clean all text, tables and progress included;
`emit` and `emitting` write data (JSON, CSV, a command's output): as it is into files and pipes, cleaned to a terminal.
"""

from __future__ import annotations

import codecs
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from rich import console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from tare.cli.fitting import fitted
from tare.cli.standard_streams import write_whole
from tare.safe_text import clean, plain

_BLANKS = re.compile(r"[ \t]+(?=\n)")


class Console(console.Console):
    """rich's console, with text cleaned after layout, and as its encoding has it; rich's own cursor movements pass."""

    def __init__(self, *, stderr: bool = False, width: int | None = None) -> None:
        super().__init__(stderr=stderr, width=width, highlight=False)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print; lines are cut at the width of a terminal only."""
        super().print(*objects, **{"crop": self.is_terminal, **options})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """A renderable's segments, cleaned; tables have no lines where there is no terminal, and cut no name."""
        if isinstance(renderable, Table):
            renderable, options = fitted(renderable, self, options or self.options)
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=plain(clean(segment.text), self.encoding))

    def _render_buffer(self, buffer: Iterable[Segment]) -> str:
        """The text of segments; blanks at the ends of lines are for terminals alone."""
        text = super()._render_buffer(buffer)
        return text if self.is_terminal else _BLANKS.sub("", text)


class _Cleaned:
    """A text stream that cleans what it passes to a terminal."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal

    def write(self, text: str) -> int:
        self._terminal.write(clean(text))
        return len(text)

    def flush(self) -> None:
        self._terminal.flush()


def emit(text: str, *, end: str = "\n") -> None:
    """Write data to standard output, followed by ``end``."""
    with emitting() as out:
        out.write(text + end)


@contextmanager
def emitting() -> Iterator[TextIO]:
    """Standard output, to write data to piece by piece."""
    out = sys.stdout
    yield cast("TextIO", _Cleaned(out)) if out.isatty() else out
    out.flush()


def show_fault(fault: BaseException) -> None:
    """Print a traceback, cleaned."""
    sys.stderr.write(clean("".join(traceback.format_exception(fault))))


class Passing:
    """Passes a lab command's bytes on to standard output (channel 1) and standard error (2) as they come."""

    def __init__(self) -> None:
        # A character may be split between two pieces.
        decoder = codecs.getincrementaldecoder("utf-8")
        self._decoders = {1: decoder("replace"), 2: decoder("replace")}

    def __call__(self, channel: int, data: bytes) -> None:
        """Write a piece of output."""
        stream = sys.stdout if channel == 1 else sys.stderr
        if stream.isatty():
            stream.write(clean(self._decoders[channel].decode(data)))
        else:
            write_whole(stream, data)
        stream.flush()
