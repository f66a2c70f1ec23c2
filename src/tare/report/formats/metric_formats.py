"""A campaign's figures as metrics for the tools that teams have: OpenMetrics (Prometheus), InfluxDB's line protocol.

The names are in `FAMILIES`; docs/metrics.md lists them. What is shown of a campaign under way has the same names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from tare.model import Status
from tare.report.model import PlatformReport, Report, ResultReport
from tare.report.sentences.scale import overheads
from tare.report.sentences.shown import ShownFigure

_FIGURE = ("workload", "metric", "platform")


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """A metric with its help, and its labels."""

    help: str
    labels: tuple[str, ...] = ()


#: All metrics by name. Shares and overheads are fractions: 0.1 is 10 %.
FAMILIES: Mapping[str, MetricFamily] = {
    "tare_campaign_info": MetricFamily("The campaign: always 1.", ("profile", "baseline", "host", "version", "status")),
    "tare_blocks": MetricFamily("Whole blocks that are measured."),
    "tare_active_seconds": MetricFamily("Time of work so far, without pauses."),
    "tare_left_seconds": MetricFamily("Time until the end, as it is estimated; of a campaign under way."),
    "tare_trials": MetricFamily("Trials that ended, by how.", ("status",)),
    "tare_contaminated_trials": MetricFamily("Trials that the host disturbed; of a whole file."),
    "tare_noise_steal_ratio": MetricFamily("The measured CPUs' time that the hypervisor below takes now."),
    "tare_noise_foreign_cpu_ratio": MetricFamily("The measured CPUs' time that other programs use now."),
    "tare_noise_memory_pressure_ratio": MetricFamily("The time in which some task waits for memory now."),
    "tare_noise_swapped_pages_per_second": MetricFamily("Pages that the host swaps now."),
    "tare_figure_value": MetricFamily("Mean over blocks, in the metric's unit.", (*_FIGURE, "unit")),
    "tare_figure_overhead_ratio": MetricFamily("Overhead against the baseline; positive is worse.", _FIGURE),
    "tare_figure_overhead_low_ratio": MetricFamily("Lower end of its 95 % interval.", _FIGURE),
    "tare_figure_overhead_high_ratio": MetricFamily("Upper end of its 95 % interval.", _FIGURE),
    "tare_figure_verdict": MetricFamily("The verdict, as a label: always 1.", (*_FIGURE, "verdict")),
    "tare_figure_noise_floor_ratio": MetricFamily(
        "Half of the interval by which the baseline differs from itself.", ("workload", "metric")
    ),
}


@dataclass(frozen=True, slots=True)
class MetricValue:
    """A value of a metric; ``labels`` are those of its family, in that order."""

    name: str
    labels: tuple[str, ...]
    value: float


def values_of(report: Report) -> Iterator[MetricValue]:
    """All that a report says in numbers."""
    host = report.host_title()
    yield MetricValue(
        "tare_campaign_info", (report.profile, report.baseline, host, report.tare_version, report.status), 1.0
    )
    yield MetricValue("tare_blocks", (), float(report.blocks_done))
    yield MetricValue("tare_active_seconds", (), report.active_s)
    ended = {
        status: sum(failure.n_trials for failure in report.failures if failure.status is status) for status in Status
    }
    ended[Status.OK] = report.contaminated.n_all_trials - sum(ended.values())
    for status, number in ended.items():
        yield MetricValue("tare_trials", (status.value,), float(number))
    yield MetricValue("tare_contaminated_trials", (), float(report.contaminated.n_trials))
    yield from values_of_results(report.results, report.baseline)


def values_of_results(results: Iterable[ResultReport], baseline: str) -> Iterator[MetricValue]:
    """Figures of a report, or of a campaign under way."""
    for result in results:
        floor = result.noise_floor
        if floor is not None and floor.half_width_percent is not None:
            of = (result.workload, result.metric)
            yield MetricValue("tare_figure_noise_floor_ratio", of, floor.half_width_percent / 100)
        for figures in result.platforms:
            labels = (result.workload, result.metric, figures.platform)
            if figures.mean is not None:
                yield MetricValue("tare_figure_value", (*labels, result.unit), figures.mean)
            if figures.platform != baseline:
                yield MetricValue("tare_figure_verdict", (*labels, figures.verdict.value), 1.0)
                yield from _overhead(labels, result, figures)


def _overhead(labels: tuple[str, ...], result: ResultReport, figures: PlatformReport) -> Iterator[MetricValue]:
    times = ShownFigure.of(result, figures).times
    if times is None:
        return
    over = overheads(times, result.direction)
    yield MetricValue("tare_figure_overhead_ratio", labels, over.point)
    if figures.effect is not None and figures.effect.level is not None:
        yield MetricValue("tare_figure_overhead_low_ratio", labels, over.low)
        yield MetricValue("tare_figure_overhead_high_ratio", labels, over.high)


def families_of(values: Iterable[MetricValue], campaign: str, at: float | None = None) -> list[Metric]:
    """The values as families of prometheus_client, each with the label ``campaign``; ``at``: UNIX seconds."""
    gauges: dict[str, GaugeMetricFamily] = {}
    for metric in values:
        family = FAMILIES[metric.name]
        gauge = gauges.get(metric.name)
        if gauge is None:
            gauge = gauges[metric.name] = GaugeMetricFamily(
                metric.name, family.help, labels=["campaign", *family.labels]
            )
        gauge.add_metric([campaign, *metric.labels], metric.value, timestamp=at)
    return [gauges[name] for name in FAMILIES if name in gauges]


class _Fixed(Collector):
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        return self._families


def openmetrics(reports: Sequence[Report]) -> str:
    """Reports as OpenMetrics text, with the time at which each campaign ended."""
    registry = CollectorRegistry()
    by_name: dict[str, Metric] = {}
    for report in reports:
        for family in families_of(values_of(report), report.id, _ended(report)):
            if family.name in by_name:
                by_name[family.name].samples.extend(family.samples)
            else:
                by_name[family.name] = family
    registry.register(_Fixed(list(by_name.values())))
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text.decode()


def influx(report: Report) -> str:
    """A report in InfluxDB's line protocol: labels are tags, the field is ``value``, the time in ns is its end."""
    at_ns = round(_ended(report) * 1e9)
    lines = []
    for metric in values_of(report):
        tags = dict(zip(("campaign", *FAMILIES[metric.name].labels), (report.id, *metric.labels), strict=True))
        # Ignore empty tags.
        written = "".join(f",{name}={_tag(value)}" for name, value in tags.items() if _tag(value))
        lines.append(f"{metric.name}{written} value={metric.value!r} {at_ns}\n")
    return "".join(lines)


def _tag(value: str) -> str:
    """A tag's value. Commas, equal signs and spaces are escaped; a line's end, or a backslash at the end, cannot be."""
    plain = "".join(char if char.isprintable() else " " for char in value).strip().rstrip("\\")
    return plain.replace(",", "\\,").replace("=", "\\=").replace(" ", "\\ ")


def _ended(report: Report) -> float:
    return max((segment.ended for segment in report.segments), default=report.created)
