"""The figures of a workload with several instances, over the number that work at once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tare.report.campaign.curve_plot import Curves, PlotPoint
from tare.report.campaign.means import mean_of
from tare.report.model import ResultReport

#: Metrics of workloads with several instances (`tare.workloads.apart.density_metrics`): what, and of how many.
_NAME = re.compile(r"(each|total)-([1-9][0-9]{0,5})")


def curves_of(results: Sequence[ResultReport]) -> list[Curves]:
    """The curves of one workload's results; none where they are not of several numbers of instances."""
    kinds: dict[str, dict[int, ResultReport]] = {}
    for result in results:
        match = _NAME.fullmatch(result.metric)
        if match:
            kinds.setdefault(match[1], {})[int(match[2])] = result
    return [_curves(by_count) for by_count in kinds.values() if len(by_count) > 1]


def _curves(by_count: Mapping[int, ResultReport]) -> Curves:
    counts = sorted(by_count)
    first = by_count[counts[0]]
    platforms: dict[str, list[PlotPoint]] = {platform.platform: [] for platform in first.platforms}
    for count in counts:
        for figures in by_count[count].platforms:
            if (mean := mean_of(figures)) is not None:
                platforms[figures.platform].append(PlotPoint(count, mean.value, mean.low, mean.high))
    title = first.metric_title.rpartition(" with ")[0] or first.metric_title
    return Curves(
        f"{title}, {first.unit}", "instances at once", {name: points for name, points in platforms.items() if points}
    )
