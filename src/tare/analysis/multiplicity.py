"""Many verdicts at once: how many of a report's chance alone would give, and which survive a correction for all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from tare.analysis.many import holm
from tare.analysis.results import MetricResult, PlatformResult
from tare.analysis.verdicts import Kind

#: The share of reports in which some verdict may be wrong, once they are corrected.
LEVEL = 0.05
DIFFERENT = frozenset({Kind.SLOWER, Kind.FASTER})
#: Where the distribution of a standard deviation is looked at: as many parts of it, equally likely.
_QUANTILES = (np.arange(200) + 0.5) / 200
#: What data may say of a row; the other kinds say that there is nothing to say.
_OPEN = DIFFERENT | {Kind.EQUIVALENT, Kind.INCONCLUSIVE}


@dataclass(frozen=True, slots=True)
class Multiplicity:
    """Verdicts of a whole report. ``n_rows``: figures with an interval that could have been given any verdict."""

    n_rows: int
    n_different: int  # slower or faster
    by_chance: float  # so many of these were to be expected if no platform differed at all
    n_different_sure: int  # that survive Holm's correction over all rows
    n_equivalent: int
    n_equivalent_sure: int


@dataclass(frozen=True, slots=True)
class _Row:
    """A platform's mean log ratio with its standard error, and the margin's two ends, all natural logarithms."""

    point: float
    error: float
    df: int
    low: float  # ln(1 - margin)
    high: float  # ln(1 + margin)

    @classmethod
    def of(cls, result: MetricResult, platform: PlatformResult) -> _Row | None:
        """From the 95 % interval, which is the mean ± t(0.975, n - 1) standard errors; None where there is none."""
        if platform.ratio is None or platform.verdict.kind not in _OPEN:
            return None
        df = platform.n_blocks - 1
        half_width = math.log(platform.ratio.high / platform.ratio.low) / 2
        error = half_width / float(special.stdtrit(df, 0.975))
        return cls(math.log(platform.ratio.point), error, df, math.log1p(-result.margin), math.log1p(result.margin))

    def p_different(self) -> float:
        """That blocks show as much though the ratio lies within the margin: at its end, on either side.

        sf((|m| - D) / e) + sf((|m| + D) / e), which is the two-sided t test where the noise is much wider than the
        margin. Without any spread nothing is known of chance: 1.
        """
        if not self.error > 0:
            return 1.0
        margin = self.high if self.point > 0 else -self.low
        size = abs(self.point)
        return min(1.0, self._beyond((size - margin) / self.error) + self._beyond((size + margin) / self.error))

    def p_equivalent(self) -> float:
        """That blocks lie so far within the margin though the ratio does not: of two one-sided tests the greater p."""
        if not self.error > 0:
            return 1.0
        return max(
            self._beyond((self.point - self.low) / self.error), self._beyond((self.high - self.point) / self.error)
        )

    def called_by_chance(self) -> float:
        """How likely slower or faster is said where the ratio is 1: both intervals of `decide` must miss it.

        The mean over s of 2 Phi(-max(t(0.975) s + D sqrt(n) / sigma, t(0.995) s)), where s is what n blocks make of a
        standard deviation of 1 (the root of chi-squared over its degrees of freedom), and sigma is taken to be what was
        seen of it.
        """
        if not self.error > 0:
            return 0.0
        wide, sure = (float(special.stdtrit(self.df, level)) for level in (0.975, 0.995))
        deviations = np.sqrt(special.chdtri(self.df, _QUANTILES) / self.df)
        return sum(
            float(special.ndtr(-np.maximum(wide * deviations + margin / self.error, sure * deviations)).mean())
            for margin in (self.high, -self.low)
        )

    def _beyond(self, statistic: float) -> float:
        return float(special.stdtr(self.df, -statistic))


def corrected(results: Sequence[MetricResult]) -> tuple[list[MetricResult], Multiplicity]:
    """The results with ``p`` and ``survives_holm`` for every row that has a verdict, and what to say of them together.

    ``p``: that of slower and faster, adjusted by Holm over all rows of the report (Holm, 1979), so that with those that
    survive some verdict is wrong in at most `LEVEL` of reports, whatever the rows have in common. Equivalent rows have
    that of equivalence, adjusted over all rows as well.
    """
    rows = {
        (at, platform.platform): row
        for at, result in enumerate(results)
        for platform in result.platforms
        if (row := _Row.of(result, platform)) is not None
    }
    different = dict(zip(rows, holm([row.p_different() for row in rows.values()]).tolist(), strict=True))
    equivalent = dict(zip(rows, holm([row.p_equivalent() for row in rows.values()]).tolist(), strict=True))
    amended = []
    for at, result in enumerate(results):
        platforms = [
            _amend(platform, different[key], equivalent[key]) if (key := (at, platform.platform)) in rows else platform
            for platform in result.platforms
        ]
        amended.append(replace(result, platforms=tuple(platforms)))
    chance = sum(row.called_by_chance() for row in rows.values())
    return amended, _counted(amended, len(rows), chance)


def _amend(platform: PlatformResult, different: float, equivalent: float) -> PlatformResult:
    kind = platform.verdict.kind
    p = equivalent if kind is Kind.EQUIVALENT else different
    return replace(platform, p=p, survives_holm=None if kind is Kind.INCONCLUSIVE else p <= LEVEL)


def _counted(results: Sequence[MetricResult], n_rows: int, by_chance: float) -> Multiplicity:
    verdicts = [(one.verdict.kind, bool(one.survives_holm)) for result in results for one in result.platforms]
    different = [sure for kind, sure in verdicts if kind in DIFFERENT]
    equal = [sure for kind, sure in verdicts if kind is Kind.EQUIVALENT]
    return Multiplicity(n_rows, len(different), by_chance, sum(different), len(equal), sum(equal))
