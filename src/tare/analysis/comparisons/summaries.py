"""A campaign's figures for comparisons over many campaigns, and the reasons for leaving campaigns out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tare.analysis.comparisons.sides import MetricSide, Way, sides_of
from tare.analysis.comparisons.thresholds import Thresholds
from tare.analysis.grids import metric_parts
from tare.model import CPU_COST
from tare.store import CampaignRecord, MetricRecord, Store, WorkloadRecord


class Why(StrEnum):
    """Reason why a campaign, or workloads of one, are left out."""

    UNREADABLE = "unreadable"
    SAME_CAMPAIGN = "same-campaign"  # A copy of another file's campaign, which counts once.
    SAME_HOST = "same-host"  # An older campaign of a host that has a newer one.
    SAME_MACHINE = "same-machine"  # Another host's name, and the same boot of one kernel.
    HOST = "host"  # Another host than the newest campaign's.
    BASELINE = "baseline"  # Another baseline than the others'.
    SEQUENTIAL = "sequential"  # No baseline beside each figure.
    WORK = "work"  # Workloads with other parameters, or of another revision, than the others'.
    TOO_FEW_BLOCKS = "too-few-blocks"  # No figure has two blocks.


@dataclass(frozen=True, slots=True)
class LeftOutCampaign:
    """A campaign that is left out; ``text``: the error, or the names that the reason is about."""

    name: str
    why: Why
    text: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """A campaign's sides by platform, workload and metric, so that its file need not stay open."""

    name: str
    record: CampaignRecord
    sides: dict[tuple[str, str, str], MetricSide]


def summary(store: Store, thresholds: Thresholds, *, absolute: bool, every: bool = False) -> Summary:
    """Read a campaign: headlines, CPU cost, and what thresholds name; ``every``: all metrics. Raises `StoreError`."""
    record, parts = store.record, metric_parts(store.samples())
    way = Way.ABSOLUTE if absolute else Way.RELATIVE
    sides = {}
    metrics = [(workload, metric) for workload in record.workloads for metric in workload.metrics]
    for workload, metric in metrics if every else wanted(record, thresholds):
        part = parts.get((workload.name, metric.name))
        for platform, side in sides_of(record, workload, metric, part, way).items():
            if side.logs.size:
                sides[platform, workload.name, metric.name] = side
    return Summary(store.name, record, sides)


def wanted(record: CampaignRecord, thresholds: Thresholds) -> Iterator[tuple[WorkloadRecord, MetricRecord]]:
    """Yield the metrics that are compared: headlines, CPU cost, and those that thresholds name."""
    for workload in record.workloads:
        for number, metric in enumerate(workload.metrics):
            if number == 0 or metric.name == CPU_COST or thresholds.names(workload.name, metric.name):
                yield workload, metric
