"""Correction for many verdicts at once: how many chance alone would give, and which survive."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tare import lazily
from tare.analysis.comparisons.many import holm
from tare.analysis.results import MetricResult, PlatformResult
from tare.analysis.rule import sure_each
from tare.analysis.verdicts import EQUAL, VerdictKind
from tare.estimates.looks import Look

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily.LazyModule("scipy.special")

#: Share of reports in which some verdict may be wrong after the correction.
LEVEL = 0.05
DIFFERENT = frozenset({VerdictKind.SLOWER, VerdictKind.FASTER})
#: Equally likely points of the distribution of a standard deviation.
_QUANTILES = (np.arange(200) + 0.5) / 200
#: Verdicts that depend on the data; the other kinds say that there can be none.
_OPEN = DIFFERENT | EQUAL | {VerdictKind.INCONCLUSIVE}


@dataclass(frozen=True, slots=True)
class Multiplicity:
    """Counts of verdicts on headlines and CPU costs. ``n_rows``: those that could have got any verdict."""

    n_rows: int
    n_different: int  # Slower or faster.
    by_chance: float  # Expected number of these if no platform differed at all.
    n_different_sure: int  # Those that survive Holm's correction over all rows.
    n_equivalent: int
    n_equivalent_sure: int


@dataclass(frozen=True, slots=True)
class _Look:
    """One mean log ratio of a row with its standard error, and the margin's two ends, all natural logarithms."""

    point: float
    error: float
    df: float
    low: float  # ln(1 - margin)
    high: float  # ln(1 + margin)
    sure: float  # Quantile of the interval against false alarms.

    @classmethod
    def of(cls, look: Look, margin: float, level: float) -> _Look:
        """Create it from the spread for verdicts. ``level``: of the interval against false alarms."""
        spread = look.judged
        return cls(look.point, spread.error, spread.df, math.log1p(-margin), math.log1p(margin), (1 + level) / 2)

    def p_different(self) -> float:
        """Return the probability that blocks show as much although the ratio lies at either end of the margin.

        sf((|m| - D) / e) + sf((|m| + D) / e), which is the two-sided t test if the noise is much wider than the margin.
        Without any spread, nothing is known of chance: 1.
        """
        if not self.error > 0:
            return 1.0
        margin = self.high if self.point > 0 else -self.low
        size = abs(self.point)
        return min(1.0, self._beyond((size - margin) / self.error) + self._beyond((size + margin) / self.error))

    def p_equivalent(self) -> float:
        """Return the probability of blocks so far within the margin although the ratio is not: two one-sided tests."""
        if not self.error > 0:
            return 1.0
        return max(
            self._beyond((self.point - self.low) / self.error), self._beyond((self.high - self.point) / self.error)
        )

    def called_by_chance(self) -> float:
        """Return the probability of slower or faster if the ratio is 1: both intervals of `decide` must exclude it.

        The mean over s of 2 Phi(-max(t(0.975) s + D sqrt(n) / sigma, t(0.995) s)), where s is the estimate of a
        standard deviation of 1 from n blocks (the root of chi-squared over its degrees of freedom), and sigma is set to
        its estimate.
        """
        if not self.error > 0:
            return 0.0
        wide, sure = (float(special.stdtrit(self.df, level)) for level in (0.975, self.sure))
        deviations = np.sqrt(special.chdtri(self.df, _QUANTILES) / self.df)
        return sum(
            float(special.ndtr(-np.maximum(wide * deviations + margin / self.error, sure * deviations)).mean())
            for margin in (self.high, -self.low)
        )

    def _beyond(self, statistic: float) -> float:
        return float(special.stdtr(self.df, -statistic))


@dataclass(frozen=True, slots=True)
class _Row:
    """A platform's figure in a report: the typical round, and whole blocks if they differ from it."""

    looks: tuple[_Look, ...]

    @classmethod
    def of(cls, result: MetricResult, platform: PlatformResult) -> _Row | None:
        """Create a row, or return None if it has no interval, or could not have got a verdict."""
        if platform.looks is None or platform.verdict.kind not in _OPEN:
            return None
        level = sure_each(platform.looks)
        return cls(tuple(_Look.of(look, result.margin, level) for look in platform.looks.all()))

    def p_different(self) -> float:
        """Probability that either look shows a difference: the lesser p times their number (Bonferroni)."""
        return min(1.0, len(self.looks) * min(look.p_different() for look in self.looks))

    def p_equivalent(self) -> float:
        """Probability that both looks lie within the margin."""
        return max(look.p_equivalent() for look in self.looks)

    def called_by_chance(self) -> float:
        """Upper bound of the probability: looks at the same blocks usually agree."""
        return sum(look.called_by_chance() for look in self.looks)


def corrected(
    results: Sequence[MetricResult], main: Container[tuple[str, str]]
) -> tuple[list[MetricResult], Multiplicity]:
    """Return the results with ``p`` and ``survives_holm`` for every main row with a verdict, and their counts.

    ``main``: workload and metric of headlines and CPU costs, each of which answers a question; a workload's other
    metrics repeat these answers. ``p``: for slower and faster, adjusted by Holm over these rows (Holm, 1979). So some
    surviving verdict is wrong in at most `LEVEL` of reports, whatever the dependence between rows. Equivalent rows have
    the p of equivalence, adjusted over all of them as well.
    """
    rows = {
        (at, platform.platform): row
        for at, result in enumerate(results)
        if (result.workload, result.metric) in main
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
    counted = [result for result in amended if (result.workload, result.metric) in main]
    return amended, _counted(counted, len(rows), chance)


def _amend(platform: PlatformResult, different: float, equivalent: float) -> PlatformResult:
    kind = platform.verdict.kind
    p = equivalent if kind in EQUAL else different
    return replace(platform, p=p, survives_holm=None if kind is VerdictKind.INCONCLUSIVE else p <= LEVEL)


def _counted(results: Sequence[MetricResult], n_rows: int, by_chance: float) -> Multiplicity:
    verdicts = [
        (platform.verdict.kind, bool(platform.survives_holm)) for result in results for platform in result.platforms
    ]
    different = [sure for kind, sure in verdicts if kind in DIFFERENT]
    equal = [sure for kind, sure in verdicts if kind in EQUAL]
    return Multiplicity(n_rows, len(different), by_chance, sum(different), len(equal), sum(equal))
