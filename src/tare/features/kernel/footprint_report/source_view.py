"""A source file with how often each platform ran each line, side by side (Anjali 2020, figure 7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tare.errors import UsageError
from tare.features.kernel.analysis.footprint_sets import Exposure, View
from tare.features.kernel.models.footprint_models import FileReport, LevelReport
from tare.features.kernel.words import footprint_words as words

#: Number of lines shown before and after a line that ran.
_AROUND = 3
#: Most lines shown of one file.
_MAX_ROWS = 4_000
#: Most characters shown of one line; the kernel has none that is longer.
_WIDE = 400


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file as the page shows it; ``figure`` None: no source was given, or one of another version (``why_not``)."""

    report: FileReport
    figure: Mapping[str, Any] | None
    why_not: str


def source_files(level: LevelReport, exposure: Exposure, sources: Path | None) -> list[SourceFile]:
    """The report's files with their source, read below ``sources``. Raises `UsageError` if that is no directory."""
    if sources is not None and not sources.is_dir():
        raise UsageError(f"{sources} is no directory", fix="name the kernel's source tree, the one that was counted")
    view = exposure.best_view()
    if view is None or not level.files:
        return []
    hits = _hits(exposure, view, {file.file for file in level.files})
    pools = [exposure.pool(name, view.scope) for name in level.platforms]
    seconds = [0.0 if pool is None else round(pool.seconds, 1) for pool in pools]
    return [_file(level, file, hits.get(file.file, {}), seconds, sources) for file in level.files]


def _file(
    level: LevelReport,
    report: FileReport,
    hits: Mapping[int, list[int]],
    seconds: list[float],
    sources: Path | None,
) -> SourceFile:
    if sources is None:
        return SourceFile(report, None, "")
    text = _text(sources, report.file)
    if text is None:
        return SourceFile(report, None, words.not_in_tree(report.file))
    if max(hits, default=0) > len(text):
        return SourceFile(report, None, words.other_source(report.file))
    rows = list(_rows(text, hits))
    cut = len(rows) > _MAX_ROWS
    figure = {"platforms": level.platforms, "seconds": seconds, "rows": rows[:_MAX_ROWS], "cut": cut}
    return SourceFile(report, figure, "")


def _text(sources: Path, file: str) -> list[str] | None:
    """A file's lines; None where there is no such file in the tree. The name is from a store, which is not trusted."""
    root = sources.resolve()
    path = (root / file).resolve()
    if not path.is_relative_to(root) or not path.is_file():
        return None
    return path.read_text(encoding="utf-8", errors="replace").splitlines()


def _hits(exposure: Exposure, view: View, files: set[str]) -> dict[str, dict[int, list[int]]]:
    """Hits by file, line and platform (in the order of the exposure); negative where the view lacks the line."""
    by_file: dict[str, dict[int, list[int]]] = {file: {} for file in files}
    for at, platform in enumerate(exposure.platforms):
        in_view = exposure.things(platform, view)
        pool = exposure.pool(platform, view.scope)
        for thing, hits in (pool.hits if pool else {}).items():
            file, _, line = thing.rpartition(":")
            if file in files and line.isdecimal():
                row = by_file[file].setdefault(int(line), [0] * len(exposure.platforms))
                row[at] = hits if thing in in_view else -hits
    return by_file


def _rows(text: list[str], hits: Mapping[int, list[int]]) -> Iterator[list[object] | None]:
    """Number, text and hits of each line near one that ran; None where lines are left out."""
    near = sorted({at for line in hits for at in range(line - _AROUND, line + _AROUND + 1) if 1 <= at <= len(text)})
    before = 0
    for number in near:
        if number != before + 1:
            yield None
        yield [number, text[number - 1][:_WIDE], *hits.get(number, [])]
        before = number
