"""`tare footprint`: counts what of the host's kernel platforms reach while they start and work."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Group
from rich.text import Text

from tare.cli.choices import OpenPolicy
from tare.cli.consent import agreed_to_add
from tare.cli.console import Console, emit
from tare.cli.exit_codes import ExitCode
from tare.cli.progress import Drawn
from tare.features.diff.run import show_diff
from tare.features.kernel.exchange.count_request import FootprintRequest
from tare.features.kernel.exchange.countable import SCHEMA
from tare.features.kernel.exchange.result import FootprintResult
from tare.features.kernel.execution import counting, lab
from tare.features.kernel.footprint_report.run_tables import render
from tare.report.sentences.numbers import span
from tare.store import exists


@dataclass(frozen=True, slots=True)
class LabFiles:
    """Files of this host that a lab gets too, and those that are versions of its own programs, by their names."""

    files: Sequence[Path]
    versions: Mapping[str, Path]


def count(
    request: FootprintRequest,
    file: Path,
    lab_files: LabFiles | None,
    against: Path | None,
    *,
    trusted: bool,
    as_json: bool,
) -> ExitCode:
    """Count into a file, print the result, and return the exit code. ``lab_files``: into a lab; None: on this host.

    ``against``: a file to compare with then; where it is not there, it is counted first, with the lab's own versions.
    ``trusted``: see `tare.cli.consent`.
    """
    answer = agreed_to_add(file, trusted=trusted)
    with _Display(Console(stderr=True)) as display:
        if lab_files is None:
            result = counting.carry_out(request, file, display, answer)
        else:
            if against is not None and not exists(against):
                _in_lab(request, against, display, LabFiles(lab_files.files, {}), "")
            result = _in_lab(request, file, display, lab_files, answer)
    if as_json:
        emit(json.dumps({"schema": SCHEMA, **result.model_dump(mode="json")}, indent=2))
        return ExitCode.DONE
    console = Console()
    console.print(Group(*render(result.footprints)))
    for line in result.without:
        console.print(line, markup=False, soft_wrap=True)
    console.print(f"in {file}", markup=False, soft_wrap=True)
    if against is None:
        return ExitCode.DONE
    return show_diff(
        (against, file), (), None, absolute=False, every=True, markdown=None, junit=None, sarif=None, annotations=False,
        as_json=False, policy=OpenPolicy.APART,
    )  # fmt: skip


def _in_lab(
    request: FootprintRequest, file: Path, display: _Display, lab_files: LabFiles, agreed: str
) -> FootprintResult:
    with tempfile.TemporaryDirectory() as folder:
        # A file in a lab is called as it is here.
        for name, place in lab_files.versions.items():
            Path(folder, name).symlink_to(place.absolute())
        programs = [*lab_files.files, *map(Path(folder).joinpath, lab_files.versions)]
        return lab.carry_out(request, file, display, programs, agreed)


class _Display(Drawn):
    """The current activity and the time left, on a terminal; elsewhere a line for each activity."""

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
        window_s = (time.monotonic() - self._began) / (self._done - 1)
        return f" ({self._done} of {self._of} done, about {span(window_s * (self._of - self._done))} left)"

    def _render(self) -> Text:
        failed = f", {self._missed} missed" if self._missed else ""
        return Text.assemble(("tare footprint ", "bold"), f"{self._doing}{self._left()}{failed}")
