"""Rates of hits in the steady phase against the baseline's, thing by thing: what platforms run more or less often."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tare.estimates.intervals import half_width
from tare.features.kernel.analysis.footprint_sets import Exposure, View
from tare.footprint_model import Phase

#: If no platform hit a thing this often in a workload, its rate is too uncertain to compare.
MIN_HITS = 100
#: Added to the hits of a repeat, so that a thing that never ran has a logarithm (Anscombe 1948; Haldane 1956).
_HALF = 0.5

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ratio:
    """A platform's rate by the baseline's; an interval (95 %) if both have at least two repeats."""

    point: float
    low: float | None
    high: float | None

    @property
    def sure(self) -> bool:
        """True if there is an interval, and it excludes 1."""
        return self.low is not None and self.high is not None and (self.low > 1 or self.high < 1)


@dataclass(frozen=True, slots=True)
class Frequency:
    """One thing in one workload: hits a second by platform, and the ratio to the baseline's."""

    thing: str
    workload: str
    rates: Mapping[str, float]
    ratios: Mapping[str, Ratio]

    @property
    def everywhere(self) -> bool:
        """True if every platform ran it."""
        return all(rate > 0 for rate in self.rates.values())

    @property
    def greatest(self) -> float:
        """The ratio that is farthest from 1, as the absolute value of its natural logarithm."""
        return max((abs(math.log(ratio.point)) for ratio in self.ratios.values()), default=0.0)


def frequencies(
    exposure: Exposure, workload: str, baseline: str, *, top: int = 20, least_hits: int = MIN_HITS
) -> list[Frequency]:
    """Return the things whose rate differs most from the baseline's in a workload.

    First ``top`` of those that every platform ran, the largest ratio first. Then ``top`` of those that some platform
    did not run at all, the most frequent first: their ratios would only depend on the time of counting. A ratio is the
    difference of the means over repeats of log((hits + ½) / seconds), with Welch's interval. Things without
    ``least_hits`` hits on any platform, over all repeats, are left out. Empty if the baseline, or every other platform,
    was not counted in this workload.

    The order is that of the point estimates: the first of many is more extreme by selection, which its interval does
    not include.
    """
    view = exposure.best_view()
    if view is None:
        return []
    repeats = {
        name: footprints
        for name in exposure.platforms
        if (footprints := exposure.parts(name, view.scope, Phase.STEADY, workload))
    }
    if baseline not in repeats or len(repeats) < 2:
        return []
    names = _worth_it(exposure, view, workload, list(repeats), least_hits)
    hits = {
        name: _hits([exposure.hits(footprint) for footprint in footprints], names)
        for name, footprints in repeats.items()
    }
    seconds = {name: np.array([footprint.seconds for footprint in footprints]) for name, footprints in repeats.items()}
    logs = {name: np.log((counts + _HALF) / seconds[name][:, None]) for name, counts in hits.items()}
    base = logs[baseline].mean(axis=0)
    compared = [name for name in repeats if name != baseline]
    far = np.max([np.abs(logs[name].mean(axis=0) - base) for name in compared], axis=0, initial=0.0)
    rates = np.array([counts.sum(axis=0) / seconds[name].sum() for name, counts in hits.items()])
    least, most = rates.min(axis=0, initial=math.inf), rates.max(axis=0, initial=0.0)
    differ = [at for at in range(len(names)) if far[at] > 0]
    common = sorted((at for at in differ if least[at] > 0), key=lambda at: (-far[at], names[at]))
    partial = sorted((at for at in differ if least[at] == 0), key=lambda at: (-most[at], names[at]))
    return [
        Frequency(
            names[at],
            workload,
            dict(zip(repeats, rates[:, at].tolist(), strict=True)),
            {name: _ratio(logs[name][:, at], logs[baseline][:, at]) for name in compared},
        )
        for at in (*common[:top], *partial[:top])
    ]


def _worth_it(exposure: Exposure, view: View, workload: str, platforms: Sequence[str], least_hits: int) -> list[str]:
    """Return the things that some platform hit ``least_hits`` times or more, over all repeats."""
    names = set()
    for platform in platforms:
        pool = exposure.pool(platform, view.scope, Phase.STEADY, workload)
        ran = exposure.things(platform, view, Phase.STEADY, workload)
        names |= {name for name in ran if pool is not None and pool.hits[name] >= least_hits}
    return sorted(names)


def _hits(repeats: Sequence[Mapping[str, int]], names: Sequence[str]) -> Floats:
    """Return hits with a row for each repeat and a column for each thing."""
    hits = [[counts.get(name, 0) for name in names] for counts in repeats]
    return np.array(hits, dtype=np.float64).reshape(len(repeats), len(names))


def _ratio(first: Floats, second: Floats) -> Ratio:
    difference = float(first.mean() - second.mean())
    if first.size < 2 or second.size < 2:
        return Ratio(math.exp(difference), None, None)
    parts = [float(values.var(ddof=1)) / values.size for values in (first, second)]
    error = math.sqrt(sum(parts))
    if error == 0:
        return Ratio(math.exp(difference), math.exp(difference), math.exp(difference))
    freedom = sum(parts) ** 2 / sum(
        part**2 / (values.size - 1) for part, values in zip(parts, (first, second), strict=True)
    )
    half = half_width(error, freedom)
    return Ratio(math.exp(difference), _exp(difference - half), _exp(difference + half))


def _exp(value: float) -> float:
    """Return exp(value), or infinity on overflow: two repeats that differ much leave a very wide interval."""
    return math.exp(min(max(value, -700.0), 700.0))
