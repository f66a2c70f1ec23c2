"""Figures as metrics: while a campaign runs and from its file, in OpenMetrics and InfluxDB's line protocol."""

import contextlib
import http.client
import json
import re
import socket
import threading
import time
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

import fake_campaign
from tare.campaign.plan.interim import Interim
from tare.cli import answering
from tare.cli.metrics_endpoint import EndpointAddress, Metrics, parse_address, serving
from tare.errors import UsageError
from tare.model import Status
from tare.report.campaign.report_builder import build
from tare.report.formats.metric_formats import FAMILIES, influx, openmetrics
from tare.store import read_store

DOCS = Path(__file__).parents[2] / "docs"
SHAPE = replace(
    fake_campaign.Shape(), blocks=3, workloads=("sysbench-cpu", "iperf3-tcp", "startup"), telemetry=True,
    disturbed=(fake_campaign.Disturbance("foreign-cpu", 2.0, 4.0, 0.4),),
)  # fmt: skip


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    return fake_campaign.write(tmp_path_factory.mktemp("metrics") / "x.tare", SHAPE)


@pytest.fixture(scope="module")
def report(campaign):
    return build(campaign)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fed(campaign):
    """What the endpoint shows in the third block of a campaign."""
    metrics = Metrics()
    with read_store(campaign) as store:
        interim = Interim(store)
        for number in range(3):
            metrics.block(number, 10.0 * number, 30.0 - 10.0 * number, interim)
            interim.estimates.close(number)
    for status in (Status.OK, Status.OK, Status.FAILED):
        metrics.trial(SimpleNamespace(status=status))
    for tick in list(fake_campaign.ticks(SHAPE, 20))[7:9]:
        metrics.tick(tick)
    return metrics


def samples(families):
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value for family in families for sample in family.samples
    }


@pytest.mark.parametrize(
    "text", ["9464", "host:9464", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:٣", ""]
)
def test_what_is_no_address_is_refused_with_an_example(text):
    with pytest.raises(UsageError) as refused:
        parse_address(text)
    assert refused.value.fix == "--metrics 127.0.0.1:9464"


def test_addresses_of_both_families_are_read():
    assert parse_address("127.0.0.1:9464") == EndpointAddress("127.0.0.1", 9464)
    assert parse_address("[::1]:80") == EndpointAddress("::1", 80)


def test_a_scrape_shows_the_campaign_as_it_stands(campaign):
    port = free_port()
    url = f"http://127.0.0.1:{port}/metrics"
    with serving(EndpointAddress("127.0.0.1", port), fed(campaign)), urllib.request.urlopen(url, timeout=10) as answer:
        families = list(read_text(answer.read().decode()))
    assert {family.name for family in families} <= FAMILIES.keys()
    values = samples(families)
    campaign_id = ("campaign", fake_campaign.record(SHAPE).id)
    assert values["tare_blocks", campaign_id] == 2
    assert values["tare_left_seconds", campaign_id] == 10
    assert values["tare_trials", campaign_id, ("status", "failed")] == 1
    assert values["tare_noise_foreign_cpu_ratio", campaign_id] == pytest.approx(0.4)
    overheads = [value for name, value in values.items() if name[0] == "tare_figure_overhead_ratio"]
    assert max(overheads) == pytest.approx(2.3, abs=0.1)  # gvisor-ptrace is 3.3 times slower
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url, timeout=10)


@contextlib.contextmanager
def exposed(metrics, *told):
    port = free_port()
    with serving(EndpointAddress("127.0.0.1", port), metrics, *told):
        yield port


def scrape(port, host=None, path="/metrics"):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path, headers={"Host": host or f"127.0.0.1:{port}"})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_idle_connections_take_neither_threads_nor_descriptors_nor_the_scrape(campaign, monkeypatch):
    monkeypatch.setattr(answering, "PATIENCE_S", 0.5)
    with exposed(fed(campaign)) as port, contextlib.ExitStack() as held:
        before = threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))
        for _ in range(300):  # here too the other end is this process's
            held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
        deadline = time.monotonic() + 20
        taken = len(list(Path("/proc/self/fd").iterdir())) - before[1] - 300
        assert threading.active_count() - before[0] <= answering.CONNECTIONS
        assert taken <= answering.CONNECTIONS + 1  # and the connection that is being refused
        while True:  # their places are free once the patience with them is at its end
            with contextlib.suppress(ConnectionError, http.client.HTTPException):
                assert scrape(port)[0] == 200
                break
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_a_request_that_dribbles_is_ended(campaign, monkeypatch):
    monkeypatch.setattr(answering, "PATIENCE_S", 0.5)
    with exposed(fed(campaign)) as port, socket.create_connection(("127.0.0.1", port), timeout=10) as slow:
        ended = time.monotonic() + 20
        with contextlib.suppress(ConnectionError):
            while time.monotonic() < ended and slow.send(b"G"):
                time.sleep(0.2)
        assert time.monotonic() < ended


def test_another_hosts_name_reads_nothing(campaign):
    with exposed(fed(campaign)) as port:
        for host in (f"evil.example:{port}", f"127.0.0.1.evil.example:{port}", "127.0.0.1", f"192.0.2.1:{port}"):
            status, body = scrape(port, host)
            assert (status, "tare_blocks" in body) == (421, False), host
        assert scrape(port, f"localhost:{port}")[0] == 200
        assert scrape(port, path="/other")[0] == 404


def test_an_address_that_others_reach_is_warned_of_and_called_by_no_strangers_name():
    told = []
    with serving(EndpointAddress("0.0.0.0", free_port()), Metrics(), told.append):
        pass
    assert told == ["--metrics 0.0.0.0: whoever reaches this address reads the figures; 127.0.0.1 is this machine's"]
    with answering.HttpServer("0.0.0.0", 0, lambda *_: None) as server:
        port = server.server_port
        known = (f"192.0.2.7:{port}", f"[2001:db8::7]:{port}", f"{socket.gethostname()}:{port}", f"localhost:{port}")
        assert all(map(server.is_called, known))
        strange = (f"evil.example:{port}", f"{socket.gethostname()}.evil.example:{port}", "192.0.2.7", "", "[:1")
        assert not any(map(server.is_called, strange))


def test_both_families_are_answered():
    told = []
    port = free_port()
    with (
        serving(EndpointAddress("::1", port), Metrics(), told.append),
        urllib.request.urlopen(f"http://[::1]:{port}/metrics", timeout=10) as answer,
    ):
        assert answer.status == 200
    assert told == []


def test_before_the_first_block_there_is_nothing_to_show():
    assert Metrics().collect() == []


def test_an_address_that_is_taken_is_said():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refusal = pytest.raises(UsageError, match=f"cannot be served on 127.0.0.1:{port}: Address already in use")
        with refusal, serving(EndpointAddress("127.0.0.1", port), Metrics()):
            pass


def test_a_file_has_the_reports_figures_at_the_campaigns_end(report):
    families = {family.name: family for family in read_openmetrics(openmetrics([report]))}
    assert families.keys() <= FAMILIES.keys()
    shown = {
        (s.labels["workload"], s.labels["metric"], s.labels["platform"]): s.value
        for s in families["tare_figure_overhead_ratio"].samples
    }
    overheads = {
        (result.workload, result.metric, platform.platform): platform.op_percent / 100
        for result in report.results
        for platform in result.platforms[1:]
        if platform.op_percent is not None
    }
    assert shown == pytest.approx(overheads)
    ended = {float(sample.timestamp) for family in families.values() for sample in family.samples}
    assert [*ended] == pytest.approx([max(segment.ended for segment in report.segments)])
    statuses = {s.labels["status"]: s.value for s in families["tare_trials"].samples}
    assert sum(statuses.values()) == report.contaminated.n_all_trials
    assert statuses["failed"] == sum(failure.n_trials for failure in report.failures if failure.status is Status.FAILED)


def test_several_campaigns_are_one_exposition(report):
    other = report.model_copy(update={"id": "another"})
    [blocks] = [family for family in read_openmetrics(openmetrics([report, other])) if family.name == "tare_blocks"]
    assert [sample.labels["campaign"] for sample in blocks.samples] == [report.id, "another"]


def test_lines_for_influxdb_cannot_be_broken_by_a_name(report):
    evil = report.model_copy(update={"profile": "a b,c=d\ntare_blocks value=9 1", "host": {"name": "back\\"}})
    lines = influx(evil).splitlines()
    assert len(lines) == len(influx(report).splitlines())
    profile = "profile=a\\ b\\,c\\=d\\ tare_blocks\\ value\\=9\\ 1"
    assert lines[0].startswith(f"tare_campaign_info,campaign={report.id},{profile},baseline=native,host=back,")
    assert all(re.fullmatch(r"tare_\w+(,\w+=([^ ,=\\]|\\[ ,=])+)* value=\S+ [0-9]{19}", line) for line in lines)


def test_the_document_lists_every_metric():
    listed = re.findall(r"^\| `(tare_\w+)` \|", DOCS.joinpath("metrics.md").read_text(), re.MULTILINE)
    assert listed == list(FAMILIES)


def test_the_dashboard_asks_for_metrics_that_there_are():
    panels = json.loads(DOCS.joinpath("examples", "grafana", "tare.json").read_text())["panels"]
    names = {
        name for panel in panels for target in panel["targets"] for name in re.findall(r"tare_\w+", target["expr"])
    }
    assert len(panels) == 10
    assert names <= FAMILIES.keys()
    assert all(panel["description"] for panel in panels)


def test_a_port_that_is_in_use_is_not_proposed_again(campaign):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(UsageError, match="cannot be served") as refused,
            serving(EndpointAddress("127.0.0.1", port), fed(campaign)),
        ):
            pass
    assert f":{port}" not in (refused.value.fix or "")
    assert "--metrics 127.0.0.1:" in (refused.value.fix or "")
