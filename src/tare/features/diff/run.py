"""`tare diff`: says what became of each figure, and ends with an exit code that a gate understands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from tare import __version__
from tare.analysis.comparisons.thresholds import load
from tare.cli.choices import OpenPolicy
from tare.cli.console import emit
from tare.cli.exit_codes import ExitCode
from tare.cli.report import to_read
from tare.features.diff.analysis import Diff, FigureOutcome, diff, diff_platforms
from tare.features.diff.counted import diff_counted
from tare.features.diff.gates import to_annotations, to_junit, to_sarif
from tare.features.diff.views import render, to_json, to_markdown
from tare.outputs import written
from tare.report.sentences.refusal_words import refusals_told
from tare.store import read_store

_OPEN: Mapping[OpenPolicy, ExitCode] = {
    OpenPolicy.APART: ExitCode.OPEN,
    OpenPolicy.PASS: ExitCode.DONE,
    OpenPolicy.FAIL: ExitCode.NO,
}


def exit_code(outcome: FigureOutcome, policy: OpenPolicy) -> ExitCode:
    """Return how a gate ends. ``policy``: where it cannot tell."""
    if outcome is FigureOutcome.OPEN:
        return _OPEN[policy]
    return ExitCode.NO if outcome is FigureOutcome.REGRESSION else ExitCode.DONE


def show_diff(
    files: Sequence[Path],
    platforms: Sequence[str],
    thresholds: Path | None,
    *,
    absolute: bool,
    every: bool,
    markdown: Path | None,
    junit: Path | None,
    sarif: Path | None,
    annotations: bool,
    as_json: bool,
    policy: OpenPolicy,
    source: str | None = None,
    force: bool = False,
) -> ExitCode:
    """Print the diff, write the files that were asked for, and return the exit code. Raises `TareError`.

    ``source``: the file that SARIF's results are shown at. ``force``: what is there is replaced.
    """
    with refusals_told():
        comparison = _diff(files, platforms, thresholds, absolute=absolute)
    if as_json:
        emit(to_json(comparison))
    else:
        to_read().print(render(comparison, every=every))
    for line in to_annotations(comparison) if annotations else ():
        emit(line)
    outputs = (
        (markdown, to_markdown),
        (junit, to_junit),
        (sarif, partial(to_sarif, version=__version__, source=source or "")),
    )
    for place, text in outputs:
        if place is not None:
            with written(place, new=not force) as file:
                file.write(text(comparison))
    return exit_code(comparison.outcome, policy)


def _diff(files: Sequence[Path], platforms: Sequence[str], thresholds: Path | None, *, absolute: bool) -> Diff:
    limits = load(thresholds)
    with read_store(files[0]) as old, old.snapshot():
        if platforms:
            first, second = platforms
            counted = diff_counted(old, old, limits, (first, second))
            return counted or diff_platforms(old, first, second, limits)
        with read_store(files[1]) as new, new.snapshot():
            return diff_counted(old, new, limits) or diff(old, new, limits, absolute=absolute)
