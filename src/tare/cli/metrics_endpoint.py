"""The OpenMetrics endpoint of `tare run --metrics`, and metrics from a file."""

from __future__ import annotations

import contextlib
import ipaddress
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector, CollectorRegistry

from tare.analysis.estimates import headlines
from tare.analysis.quality.noise import noise
from tare.campaign.plan.interim import Interim
from tare.cli.answering import HttpServer, Response, plain
from tare.errors import Failed, UsageError, attempt
from tare.model import CampaignStatus, Status, Tick, Trial, TrialKey
from tare.report.campaign.report_builder import results_of
from tare.report.formats.metric_formats import MetricValue, families_of, values_of_results
from tare.report.model import host_title
from tare.store import CampaignRecord

FIX = "--metrics 127.0.0.1:9464"


@dataclass(frozen=True, slots=True)
class EndpointAddress:
    """The address of the endpoint."""

    host: str
    port: int


def parse_address(text: str) -> EndpointAddress:
    """Read an address and a port, such as ``127.0.0.1:9464`` or ``[::1]:9464``. Raises `UsageError`."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise UsageError(f"{text[:100]!r} is no address and port", fix=FIX) from None
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 2**16):
        raise UsageError(f"{port[:100]!r} is no port", fix=FIX)
    return EndpointAddress(host, int(port))


class Metrics(Collector):
    """A watcher that keeps what the endpoint shows. The campaign calls it, and the server's threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._record: CampaignRecord | None = None
        self._trials: Counter[Status] = Counter()
        self._blocks = 0
        self._spent_s = 0.0
        self._left_s: float | None = None
        self._before: Tick | None = None
        self._noise: tuple[MetricValue, ...] = ()
        self._figures: tuple[MetricValue, ...] = ()

    def block(self, number: int, spent_s: float, left_s: float | None, interim: Interim) -> None:
        """A block begins. Figures that cannot be made are not shown."""
        figures = attempt(lambda: _figures(interim)) if number > 0 else ()
        with self._lock:
            self._record, self._blocks, self._spent_s, self._left_s = interim.record, number, spent_s, left_s
            self._figures = () if isinstance(figures, Failed) else figures

    def planned(self, trials: Sequence[TrialKey]) -> None:
        """Does nothing: planned trials are not shown."""

    def doing(self, what: str) -> None:
        """Not shown: a label that changes often is a burden to who scrapes."""

    def trial(self, trial: Trial) -> None:
        """A trial is in the store."""
        with self._lock:
            self._trials[trial.status] += 1

    def tick(self, tick: Tick) -> None:
        """A reading of the telemetry came."""
        with self._lock:
            before, self._before, record = self._before, tick, self._record
        now = noise(before, tick, record.resources.cpus) if before is not None and record is not None else None
        if now is None:
            return
        shares = (("steal_ratio", now.steal), ("foreign_cpu_ratio", now.foreign), ("memory_pressure_ratio", now.memory))
        values = [MetricValue(f"tare_noise_{name}", (), share) for name, share in shares if share is not None]
        with self._lock:
            self._noise = (*values, MetricValue("tare_noise_swapped_pages_per_second", (), now.swapped))

    def fault(self, line: str) -> None:
        """Does nothing: failures outside of trials are not shown."""

    def warn(self, text: str) -> None:
        """Does nothing: warnings are not shown."""

    def collect(self) -> list[Metric]:
        """Return what is known now; nothing before the first block."""
        with self._lock:
            record = self._record
            if record is None:
                return []
            host = host_title(record.host)
            facts = record.profile, record.baseline, host, record.tare_version, CampaignStatus.RUNNING
            values = [
                MetricValue("tare_campaign_info", facts, 1.0),
                MetricValue("tare_blocks", (), float(self._blocks)),
                MetricValue("tare_active_seconds", (), self._spent_s),
                *(MetricValue("tare_trials", (status.value,), float(self._trials[status])) for status in Status),
                *([] if self._left_s is None else [MetricValue("tare_left_seconds", (), self._left_s)]),
                *self._noise,
                *self._figures,
            ]
        return families_of(values, record.id)


def _figures(interim: Interim) -> tuple[MetricValue, ...]:
    record = interim.record
    results = results_of(record, headlines(record, interim.estimates, interim.trials()))
    return tuple(values_of_results(results, record.baseline))


@contextlib.contextmanager
def serving(
    address: EndpointAddress, metrics: Metrics, warn: Callable[[str], object] = lambda _: None
) -> Iterator[None]:
    """Answer scrapes while the context lasts. Raises `UsageError` where it cannot listen.

    ``warn``: called with a line where more than this machine's users can ask.
    """
    registry = CollectorRegistry()
    registry.register(metrics)
    try:
        server = HttpServer(address.host, address.port, lambda target, accepted: _answer(registry, target, accepted))
    except OSError as error:
        raise UsageError(
            f"metrics cannot be served on {address.host}:{address.port}: {error.strerror}", fix=_another(address)
        ) from error
    if not ipaddress.ip_address(address.host).is_loopback:
        warn(f"--metrics {address.host}: whoever reaches this address reads the figures; 127.0.0.1 is this machine's")
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _another(address: EndpointAddress) -> str:
    """Another port, as somebody else may have this one."""
    return f"--metrics {address.host}:{address.port + 1 if address.port < 65_535 else 9464}, or another port"


def _answer(registry: CollectorRegistry, target: str, accepted: str) -> Response:
    if urlsplit(target).path not in {"/", "/metrics"}:
        return plain(HTTPStatus.NOT_FOUND, "the metrics are at /metrics")
    encode, kind = choose_encoder(accepted)
    return Response(HTTPStatus.OK, kind, encode(registry))
