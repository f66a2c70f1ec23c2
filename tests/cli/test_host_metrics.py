"""What tare exposes and exports, read by Debian's Prometheus and InfluxDB; the dashboard's queries, answered."""

import contextlib
import json
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest
from test_metrics import DOCS, SHAPE, fed, free_port

import fake_campaign
from tare.cli.metrics_endpoint import EndpointAddress, serving
from tare.report.campaign.report_builder import build
from tare.report.formats.metric_formats import influx, openmetrics

pytestmark = [pytest.mark.host, pytest.mark.own_host]

LIMIT_S = 30.0


def asked(url, data=None):
    with urllib.request.urlopen(url, data=data, timeout=10) as answer:
        return answer.read().decode()


def until(holds):
    """What ``holds`` returns, once it is not empty."""
    end = time.monotonic() + LIMIT_S
    while True:
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            if answer := holds():
                return answer
        assert time.monotonic() < end
        time.sleep(0.2)


@contextlib.contextmanager
def running(argv, log):
    with log.open("wb") as out, subprocess.Popen(argv, stdout=out, stderr=out) as server:
        try:
            yield
        except BaseException:
            print(log.read_text()[-2000:])
            raise
        finally:
            server.terminate()
            server.wait(10)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    return fake_campaign.write(tmp_path_factory.mktemp("metrics") / "x.tare", SHAPE)


def test_prometheus_scrapes_a_campaign_and_answers_the_dashboard(campaign, tmp_path):
    port, web_port = free_port(), free_port()
    config = {
        "scrape_configs": [
            {"job_name": "tare", "scrape_interval": "1s", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
        ]
    }
    tmp_path.joinpath("prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
    argv = [
        "prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/tsdb",
        f"--web.listen-address=127.0.0.1:{web_port}",
    ]  # fmt: skip

    def answer(query):
        text = asked(f"http://127.0.0.1:{web_port}/api/v1/query?{urllib.parse.urlencode({'query': query})}")
        return json.loads(text)["data"]["result"]

    with serving(EndpointAddress("127.0.0.1", port), fed(campaign)), running(argv, tmp_path / "log"):
        scraped = asked(f"http://127.0.0.1:{port}/metrics")
        subprocess.run(["promtool", "check", "metrics"], input=scraped.encode(), check=True, timeout=20)
        until(lambda: answer("tare_blocks"))
        assert answer('tare_trials{status="failed"}')[0]["value"][1] == "1"
        dashboard = json.loads(DOCS.joinpath("examples", "grafana", "tare.json").read_text())
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                assert answer(re.sub(r"\$\w+", ".*", target["expr"])), target["expr"]
        for variable in dashboard["templating"]["list"][1:]:
            query, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"]).groups()
            assert all(label in series["metric"] for series in answer(re.sub(r"\$\w+", ".*", query)))


def test_prometheus_takes_a_files_figures(campaign, tmp_path):
    text = tmp_path / "x.txt"
    text.write_text(openmetrics([build(campaign)]))
    done = subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", text, tmp_path / "tsdb"],
        capture_output=True, text=True, check=True, timeout=20,
    )  # fmt: skip
    series = len([line for line in text.read_text().splitlines() if not line.startswith("#")])
    assert re.search(rf"\s{series}\s+{series}\s+{series}\s", done.stdout)


def test_influxdb_takes_the_line_protocol(campaign, tmp_path):
    port, rpc = free_port(), free_port()
    tmp_path.joinpath("influx.conf").write_text(
        f'reporting-disabled = true\nbind-address = "127.0.0.1:{rpc}"\n'
        f'[meta]\ndir = "{tmp_path}/meta"\n[data]\ndir = "{tmp_path}/data"\nwal-dir = "{tmp_path}/wal"\n'
        f'[http]\nbind-address = "127.0.0.1:{port}"\n[monitor]\nstore-enabled = false\n'
    )
    report = build(campaign).model_copy(update={"profile": "a b,c=d"})
    with running(["influxd", "-config", f"{tmp_path}/influx.conf"], tmp_path / "log"):
        query = f"http://127.0.0.1:{port}/query?db=tare&q="
        until(lambda: asked(query + urllib.parse.quote("CREATE DATABASE tare"), b""))
        asked(f"http://127.0.0.1:{port}/write?db=tare", influx(report).encode())
        compared = [
            platform
            for result in report.results
            for platform in result.platforms[1:]
            if platform.op_percent is not None
        ]
        counted = json.loads(asked(query + urllib.parse.quote("SELECT count(value) FROM tare_figure_overhead_ratio")))
        assert counted["results"][0]["series"][0]["values"][0][1] == len(compared)
        info = json.loads(asked(query + urllib.parse.quote("SELECT profile, value FROM tare_campaign_info")))
        assert info["results"][0]["series"][0]["values"][0][1] == "a b,c=d"
