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
from tare.footprint.lab import Brought
from tare.footprint.levels import SCHEMA
from tare.footprint.model import Footprint
from tare.footprint.order import Order
from tare.footprint.walk import Missed, Skipped
from tare.report.footprint_run import render
from tare.report.sentences.numbers import span
from tare.store.record import LeftOut


def count(order: Order, file: Path, programs: Sequence[Path] | None, *, as_json: bool) -> None:
    """Count into a file and print it. ``programs``: in a lab that has these files too; None: on this host."""
    with _Progress(Console(stderr=True)) as progress:
        if programs is not None:
            progress.brought(lab.count(order, file, progress.doing, programs))
        else:
            conduct.begin(order, file, progress, progress.told)
    if as_json:
        emit(json.dumps(_answer(progress), indent=2))
        return
    console = Console()
    console.print(Group(*render(progress.footprints)))
    for line in progress.without:
        console.print(line, markup=False, soft_wrap=True)
    console.print(f"in {file}", markup=False, soft_wrap=True)


class _Progress(Drawn):
    """What runs now and how long is left, on a terminal; a line for each thing elsewhere. Keeps what was brought."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.footprints: list[Footprint] = []
        self.missed: list[Missed] = []
        self.left_out: list[LeftOut] = []
        self.skipped: list[Skipped] = []
        self.warnings: list[str] = []  # of a lab
        self._doing = "setting up"
        self._began: float | None = None  # when the first thing was counted
        self._done, self._of = 0, 0

    @property
    def without(self) -> list[str]:
        """A line for each thing that has no footprint."""
        out = (f"{one.platform} is left out: {one.reason}" for one in self.left_out)
        return [*map(str, self.skipped), *out, *map(str, self.missed), *self.warnings]

    def doing(self, what: str) -> None:
        """Something begins."""
        self._doing = what
        if not self._console.is_terminal:
            self._console.print(f"{what}{self._left()}", markup=False, soft_wrap=True)

    def step(self, done: int, of: int) -> None:
        """So many windows of so many are over."""
        self._began = self._began or time.monotonic()
        self._done, self._of = done, of

    def told(self, one: Footprint | Missed | LeftOut | Skipped) -> None:
        """Something is in the file, or will not be."""
        match one:
            case Footprint():
                self.footprints.append(one)
            case Missed():
                self.missed.append(one)
            case LeftOut():
                self.left_out.append(one)
            case Skipped():
                self.skipped.append(one)

    def brought(self, one: Brought) -> None:
        """A lab has counted."""
        self.footprints += one.footprints
        self.warnings += one.warnings

    def _left(self) -> str:
        if self._began is None or self._done < 2:  # the clock runs since the first was over
            return ""
        each = (time.monotonic() - self._began) / (self._done - 1)
        return f" ({self._done} of {self._of} done, about {span(each * (self._of - self._done))} left)"

    def _render(self) -> Text:
        failed = f", {len(self.missed)} missed" if self.missed else ""
        return Text.assemble(("tare footprint ", "bold"), f"{self._doing}{self._left()}{failed}")


def _answer(progress: _Progress) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "footprints": [one.model_dump(mode="json") for one in progress.footprints],
        "missed": [
            {"platform": one.platform, "workload": one.workload, "repeat": one.repeat, "reason": one.reason}
            for one in progress.missed
        ],
        "skipped": [{"workload": one.workload, "reason": one.reason} for one in progress.skipped],
        "left_out": [one.model_dump(mode="json") for one in progress.left_out],
        "warnings": progress.warnings,
    }
