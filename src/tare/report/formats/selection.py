"""A part of a campaign for an export: some platforms, workloads and metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import polars as pl

from tare.errors import UsageError
from tare.report.model import Report
from tare.store import CampaignRecord
from tare.suggest import nearest


@dataclass(frozen=True, slots=True)
class Selection:
    """The selection of an export. Empty: all. ``metrics``: METRIC or WORKLOAD/METRIC; ``*``: any text, in all three."""

    platforms: Sequence[str] = ()
    workloads: Sequence[str] = ()
    metrics: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.platforms or self.workloads or self.metrics)

    def platform(self, name: str) -> bool:
        """Return True if a platform is in it."""
        return not self.platforms or _matches(name, self.platforms)

    def workload(self, name: str) -> bool:
        """Return True if a workload is in it."""
        return not self.workloads or _matches(name, self.workloads)

    def metric(self, workload: str, name: str) -> bool:
        """Return True if a metric is in it."""
        return not self.metrics or any(_is_metric(pattern, workload, name) for pattern in self.metrics)

    def row(self, platform: object, workload: object, metric: object) -> bool:
        """Return True if a row of these is in it; what a row does not have is not asked for."""
        return (
            (platform is None or self.platform(str(platform)))
            and (workload is None or self.workload(str(workload)))
            and (metric is None or self.metric(str(workload), str(metric)))
        )

    def frame(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The rows of a frame that are in it, by those of the three columns that the frame has."""
        there = [name for name in ("platform", "workload", "metric") if name in frame.columns]
        if not self or not there:
            return frame
        keys = frame.select(there).iter_rows(named=True)
        kept = [self.row(key.get("platform"), key.get("workload"), key.get("metric")) for key in keys]
        return frame.filter(pl.Series(kept, dtype=pl.Boolean))

    def report(self, report: Report) -> Report:
        """The report with these figures alone. The baseline stays: all others are compared with it."""
        if not self:
            return report
        kept = [platform for platform in report.platforms if self._stays(report, platform.name)]
        results = [
            result.model_copy(update={"platforms": [of for of in result.platforms if self._stays(report, of.platform)]})
            for result in report.results
            if self.workload(result.workload) and self.metric(result.workload, result.metric)
        ]
        answers = [answer for answer in report.answers if self._stays(report, answer.platform)]
        return report.model_copy(update={"platforms": kept, "results": results, "answers": answers})

    def _stays(self, report: Report, name: str) -> bool:
        return name == report.baseline or self.platform(name)

    def check(self, record: CampaignRecord) -> None:
        """Raise `UsageError` for a name that the campaign does not have."""
        names = [platform.name for platform in record.platforms]
        _require(self.platforms, names, lambda pattern, name: fnmatchcase(name, pattern), "platform")
        workloads = [workload.name for workload in record.workloads]
        _require(self.workloads, workloads, lambda pattern, name: fnmatchcase(name, pattern), "workload")
        metrics = [f"{workload.name}/{metric.name}" for workload in record.workloads for metric in workload.metrics]
        _require(self.metrics, metrics, lambda pattern, name: _is_metric(pattern, *name.split("/", 1)), "metric")


#: All of a campaign.
EVERYTHING = Selection()


def _require(patterns: Iterable[str], names: Sequence[str], fits: Callable[[str, str], bool], what: str) -> None:
    for pattern in patterns:
        if not any(fits(pattern, name) for name in names):
            raise UsageError(f"the campaign has no {what} {pattern!r}", fix=nearest(pattern, list(names)))


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _is_metric(pattern: str, workload: str, metric: str) -> bool:
    first, slash, last = pattern.partition("/")
    return fnmatchcase(workload, first) and fnmatchcase(metric, last) if slash else fnmatchcase(metric, pattern)
