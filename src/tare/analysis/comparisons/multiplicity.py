"""Many verdicts at once: how many of a report's chance alone would give, and which survive a correction for all."""

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
from tare.analysis.verdicts import EQUAL, Kind
from tare.estimates.looks import Look

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily.LazyModule("scipy.special")

#: The share of reports in which some verdict may be wrong, once they are corrected.
LEVEL = 0.05
DIFFERENT = frozenset({Kind.SLOWER, Kind.FASTER})
#: Where the distribution of a standard deviation is looked at: as many parts of it, equally likely.
_QUANTILES = (np.arange(200) + 0.5) / 200
#: Verdicts that depend on the data; the other kinds say that there can be none.
_OPEN = DIFFERENT | EQUAL | {Kind.INCONCLUSIVE}


@dataclass(frozen=True, slots=True)
class Multiplicity:
    """Verdicts on headlines and CPU costs. ``n_rows``: those that could have been given any verdict."""

    n_rows: int
    n_different: int  # slower or faster
    by_chance: float  # so many of these were to be expected if no platform differed at all
    n_different_sure: int  # that survive Holm's correction over all rows
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
    sure: float  # the quantile of the interval against false alarms

    @classmethod
    def of(cls, look: Look, margin: float, level: float) -> _Look:
        """From the spread that verdicts rest on; ``level``: of the interval against false alarms."""
        spread = look.judged
        return cls(look.point, spread.error, spread.df, math.log1p(-margin), math.log1p(margin), (1 + level) / 2)

    def p_different(self) -> float:
        """The probability that blocks show as much though the ratio lies within the margin: at its end, on either side.

        sf((|m| - D) / e) + sf((|m| + D) / e), which is the two-sided t test where the noise is much wider than the
        margin. Without any spread nothing is known of chance: 1.
        """
        if not self.error > 0:
            return 1.0
        margin = self.high if self.point > 0 else -self.low
        size = abs(self.point)
        return min(1.0, self._beyond((size - margin) / self.error) + self._beyond((size + margin) / self.error))

    def p_equivalent(self) -> float:
        """The probability of blocks so far within the margin though the ratio is not: two one-sided tests."""
        if not self.error > 0:
            return 1.0
        return max(
            self._beyond((self.point - self.low) / self.error), self._beyond((self.high - self.point) / self.error)
        )

    def called_by_chance(self) -> float:
        """The probability of slower or faster where the ratio is 1: both intervals of `decide` must miss it.

        The mean over s of 2 Phi(-max(t(0.975) s + D sqrt(n) / sigma, t(0.995) s)), where s is what n blocks make of a
        standard deviation of 1 (the root of chi-squared over its degrees of freedom), and sigma is taken to be what was
        seen of it.
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
    """A platform's figure in a report: the typical round, and whole blocks where these have another."""

    looks: tuple[_Look, ...]

    @classmethod
    def of(cls, result: MetricResult, platform: PlatformResult) -> _Row | None:
        """None where it has no interval, or could have got no verdict."""
        if platform.looks is None or platform.verdict.kind not in _OPEN:
            return None
        level = sure_each(platform.looks)
        return cls(tuple(_Look.of(look, result.margin, level) for look in platform.looks.all()))

    def p_different(self) -> float:
        """Either look may show a difference: the lesser p times their number (Bonferroni)."""
        return min(1.0, len(self.looks) * min(look.p_different() for look in self.looks))

    def p_equivalent(self) -> float:
        """Both looks must lie within the margin."""
        return max(look.p_equivalent() for look in self.looks)

    def called_by_chance(self) -> float:
        """At most so likely: looks at the same blocks agree more often than not."""
        return sum(look.called_by_chance() for look in self.looks)


def corrected(
    results: Sequence[MetricResult], main: Container[tuple[str, str]]
) -> tuple[list[MetricResult], Multiplicity]:
    """The results with ``p`` and ``survives_holm`` for every main row that has a verdict, and counts over these rows.

    ``main``: workload and metric of headlines and CPU costs, which answer a question each; what else a workload prints
    says the same in other words. ``p``: that of slower and faster, adjusted by Holm over these rows (Holm, 1979), so
    that with those that survive some verdict is wrong in at most `LEVEL` of reports, whatever the rows have in common.
    Equivalent rows have that of equivalence, adjusted over all of them as well.
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
    return replace(platform, p=p, survives_holm=None if kind is Kind.INCONCLUSIVE else p <= LEVEL)


def _counted(results: Sequence[MetricResult], n_rows: int, by_chance: float) -> Multiplicity:
    verdicts = [
        (platform.verdict.kind, bool(platform.survives_holm)) for result in results for platform in result.platforms
    ]
    different = [sure for kind, sure in verdicts if kind in DIFFERENT]
    equal = [sure for kind, sure in verdicts if kind in EQUAL]
    return Multiplicity(n_rows, len(different), by_chance, sum(different), len(equal), sum(equal))
