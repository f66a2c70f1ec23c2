"""The one way to standard output and standard error: nothing of what a guest or a file says is obeyed by a terminal.

`tests/test_architecture.py` holds that there is no other. Consoles clean whatever is printed, tables and progress too;
`emit` and `emitting` write data (JSON, CSV, a command's output): as it is into files and pipes, cleaned to a terminal.
"""

from __future__ import annotations

import codecs
import io
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TextIO, cast

from rich import console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from tare.clean import clean


class Console(console.Console):
    """rich's console, whose text is cleaned after it was laid out; rich's own movements of the cursor pass."""

    def __init__(self, *, stderr: bool = False, width: int | None = None) -> None:
        super().__init__(stderr=stderr, width=width, highlight=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """What a renderable consists of, cleaned."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=clean(segment.text))


class _Cleaned:
    """A text stream in front of a terminal."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal

    def write(self, text: str) -> int:
        self._terminal.write(clean(text))
        return len(text)

    def flush(self) -> None:
        self._terminal.flush()


def emit(text: str, *, end: str = "\n") -> None:
    """Write data to standard output, with a line's end."""
    with emitting() as out:
        out.write(text + end)


@contextmanager
def emitting() -> Iterator[TextIO]:
    """Standard output, to write data to piece by piece."""
    out = sys.stdout
    yield cast("TextIO", _Cleaned(out)) if out.isatty() else out
    out.flush()


def mend_streams() -> None:
    """Faults are shown cleaned too, and what the terminal's encoding has not is escaped: printing never fails."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.excepthook = _show_fault


def _show_fault(kind: type[BaseException], fault: BaseException, trace: TracebackType | None) -> None:
    sys.stderr.write(clean("".join(traceback.format_exception(kind, fault, trace))))


class Passing:
    """Bytes of a command that runs elsewhere, to standard output (1) and standard error (2) as they come."""

    def __init__(self) -> None:
        # A character that is cut between two pieces is still one.
        decoder = codecs.getincrementaldecoder("utf-8")
        self._decoders = {1: decoder("replace"), 2: decoder("replace")}

    def __call__(self, channel: int, data: bytes) -> None:
        """Write these."""
        stream = sys.stdout if channel == 1 else sys.stderr
        if stream.isatty():
            stream.write(clean(self._decoders[channel].decode(data)))
        else:
            stream.buffer.write(data)
        stream.flush()
