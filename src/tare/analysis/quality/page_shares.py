"""Platforms that PSS and their own memory rank in opposite orders, because the shares of program pages decide PSS."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tare.analysis.quality.findings import Finding, FindingKind
from tare.analysis.results import MetricResult, PlatformResult
from tare.analysis.verdicts import VerdictKind
from tare.estimates.intervals import Interval
from tare.model import OWN_MEMORY


def flag_pages(results: Sequence[MetricResult]) -> list[MetricResult]:
    """Add a finding to PSS if it reverses the order of two platforms in their own memory.

    Only clear differences count: in both metrics the 95 % intervals are apart by more than the metric's margin.
    """
    by_metric = {result.metric: result for result in results}
    return [
        _flag(result, by_metric[OWN_MEMORY[result.metric]]) if OWN_MEMORY.get(result.metric) in by_metric else result
        for result in results
    ]


def _flag(pss: MetricResult, own: MetricResult) -> MetricResult:
    pss_times, own_times = _times(pss), _times(own)
    names = sorted(pss_times.keys() & own_times.keys())
    swapped: dict[str, list[str]] = {}
    for larger, smaller in itertools.permutations(names, 2):
        if _above(pss_times[larger], pss_times[smaller], pss.margin) and _above(
            own_times[smaller], own_times[larger], own.margin
        ):
            swapped.setdefault(larger, []).append(smaller)
            swapped.setdefault(smaller, []).append(larger)

    def noted(platform: PlatformResult) -> PlatformResult:
        others = tuple(sorted(swapped.get(platform.platform, ())))
        note = Finding(FindingKind.SHARED_PAGES, metric=own.metric, others=others)
        return replace(platform, notes=(*platform.notes, note)) if others else platform

    return replace(pss, platforms=tuple(map(noted, pss.platforms)))


def _times(result: MetricResult) -> Mapping[str, Interval]:
    """Return each platform's multiple of the baseline's figure, for those with an interval."""
    times = {
        platform.platform: platform.effect.times
        for platform in result.platforms
        if platform.effect is not None and platform.effect.level is not None
    }
    baselines = (platform.platform for platform in result.platforms if platform.verdict.kind is VerdictKind.BASELINE)
    return times | {name: Interval(1.0, 1.0, 1.0) for name in baselines}


def _above(interval: Interval, other: Interval, margin: float) -> bool:
    return interval.low > other.high * (1 + margin)
