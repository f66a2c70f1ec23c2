"""What `tare footprint` does: counts what of the host's kernel platforms reach while they start and work."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Group
from rich.text import Text

from tare.cli.console import Console, emit
from tare.cli.progress import Drawn
from tare.footprint import conduct, lab
from tare.footprint.levels import SCHEMA
from tare.footprint.request import FootprintRequest
from tare.report.footprint.run import render
from tare.report.sentences.numbers import span


def count(request: FootprintRequest, file: Path, programs: Sequence[Path] | None, *, as_json: bool) -> None:
    """Count into a file and print the result. ``programs``: in a lab that also gets these files; None: on this host."""
    with _Display(Console(stderr=True)) as display:
        if programs is None:
            result = conduct.carry_out(request, file, display)
        else:
            result = lab.carry_out(request, file, display, programs)
    if as_json:
        emit(json.dumps({"schema": SCHEMA, **result.model_dump(mode="json")}, indent=2))
        return
    console = Console()
    console.print(Group(*render(result.footprints)))
    for line in result.without:
        console.print(line, markup=False, soft_wrap=True)
    console.print(f"in {file}", markup=False, soft_wrap=True)


class _Display(Drawn):
    """What runs now and how long is left, on a terminal; elsewhere a line for each activity."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._doing = "setting up"
        self._began: float | None = None  # when the first window was over
        self._done, self._of, self._missed = 0, 0, 0

    def doing(self, what: str) -> None:
        """An activity begins."""
        self._doing = what
        if not self._console.is_terminal:
            self._console.print(f"{what}{self._left()}", markup=False, soft_wrap=True)

    def step(self, done: int, of: int, missed: int) -> None:
        """``done`` of ``of`` windows are over; ``missed``: how many footprints could not be counted."""
        self._began = self._began or time.monotonic()
        self._done, self._of, self._missed = done, of, missed

    def _left(self) -> str:
        # The time of a window is counted from the end of the first; work after the last is no window.
        if self._began is None or self._done < 2 or self._done >= self._of:
            return ""
        each = (time.monotonic() - self._began) / (self._done - 1)
        return f" ({self._done} of {self._of} done, about {span(each * (self._of - self._done))} left)"

    def _render(self) -> Text:
        failed = f", {self._missed} missed" if self._missed else ""
        return Text.assemble(("tare footprint ", "bold"), f"{self._doing}{self._left()}{failed}")
