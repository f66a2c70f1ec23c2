"""All cautions of a campaign by their kind, each with the row that it stands beside."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tare.analysis.verdicts import REFUSED, VerdictKind
from tare.estimates.intervals import Interval, standard_error
from tare.report.model import PlatformReport, Report, ResultReport
from tare.report.sentences.notes import CAUTIONS, INVALID, REFUSED_FIGURES

#: Minimum number of figures for a statement on how much wider intervals are.
_FEWEST = 3
_NO_VERDICT = frozenset({VerdictKind.INCONCLUSIVE, VerdictKind.NO_DATA, VerdictKind.INVALID})


@dataclass(frozen=True, slots=True)
class CautionRow:
    """A row of the page's tables, by the places of its metric and platform in the report; and the caution in words."""

    metric: int
    platform: int
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Caution:
    """The subject and the place of cautions of a kind."""

    title: str
    rows: tuple[CautionRow, ...]


def turned(platform: PlatformReport) -> bool:
    """Return True if leaving out the contaminated trials would give another verdict, and not only take one away.

    Where these are most of the blocks, hardly anything is left to conclude from, which says nothing of the verdict.
    """
    clean = platform.unmarked
    return clean is not None and clean.verdict is not platform.verdict and clean.verdict not in _NO_VERDICT


def widened(results: Sequence[ResultReport]) -> float | None:
    """Return how many times as wide intervals are as without the contaminated trials, at equal numbers of blocks.

    The median over figures that have intervals both ways; None where there are too few to say.
    """
    factors = sorted(
        factor for result in results for platform in result.platforms if (factor := _widened(platform)) is not None
    )
    return factors[len(factors) // 2] if len(factors) >= _FEWEST else None


def _widened(platform: PlatformReport) -> float | None:
    clean = platform.unmarked
    if clean is None or not clean.n_trials + clean.n_baseline:
        return None
    spreads = [
        _spread(platform.op_low_percent, platform.op_high_percent, platform.n_blocks),
        _spread(clean.op_low_percent, clean.op_high_percent, clean.n_blocks),
    ]
    whole, quiet = spreads
    return whole / quiet if whole and quiet else None


def _spread(low: float | None, high: float | None, n_blocks: int) -> float | None:
    """The standard deviation of blocks that an interval of their mean stands for, in per cent."""
    if low is None or high is None or n_blocks < 3:
        return None
    return standard_error(Interval((low + high) / 2, low, high), n_blocks) * math.sqrt(n_blocks)


def cautions_of(report: Report) -> list[Caution]:
    """The kinds that there are, the most frequent first."""
    rows: dict[str, list[CautionRow]] = {}
    for title, row in _rows(report):
        rows.setdefault(title, []).append(row)
    return [
        Caution(title, tuple(title_rows)) for title, title_rows in sorted(rows.items(), key=lambda pair: -len(pair[1]))
    ]


def _rows(report: Report) -> Iterator[tuple[str, CautionRow]]:
    for at, result in enumerate(report.results):
        for number, platform in enumerate(result.platforms):
            name = f"{result.workload} {result.metric} on {platform.platform}"
            if platform.verdict is VerdictKind.INVALID:
                yield INVALID, CautionRow(at, number, name, platform.verdict_text)
            elif platform.verdict_reason in REFUSED:
                yield REFUSED_FIGURES, CautionRow(at, number, name, platform.verdict_text)
            for caution in platform.cautions:
                yield CAUTIONS[caution.kind], CautionRow(at, number, name, caution.text)
