from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import fake_campaign
from tare.errors import UsageError
from tare.report.campaign import figures
from tare.report.campaign.build import build
from tare.report.campaign.model import Report
from tare.report.formats.html import write_html
from tare.store import CampaignRecord, SettingRecord, create_store, read_store

VOID = {"input", "meta", "br"}


class Page(HTMLParser):
    """What a browser would see: elements, links, scripts; and whether all that opened closes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "script":
            attrs, text = self.scripts[-1]
            self.scripts[-1] = (attrs, text + data)
        else:
            self.text.append(data)

    def figures(self) -> list[dict]:
        return [json.loads(text) for attrs, text in self.scripts if attrs.get("type") == "application/json"]


@pytest.fixture(scope="module")
def page(campaign: Path, tmp_path_factory: pytest.TempPathFactory) -> Page:
    out = tmp_path_factory.mktemp("html") / "out.html"
    write_html([campaign], out)
    return Page(out.read_text())


def test_it_loads_nothing_from_anywhere(page: Page) -> None:
    links = [value for _, name, value in page.attributes if name in {"src", "href", "action", "srcset", "data"}]
    assert links
    assert all(value.startswith(("#", "data:application/gzip;base64,")) for value in links)
    (policy,) = (value for tag, name, value in page.attributes if tag == "meta" and value.startswith("default-src"))
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy


def test_headline_has_a_cell_a_workload_and_platform(page: Page, report: Report) -> None:
    text = " ".join(" ".join(page.text).split())
    for result in report.headlines():
        for platform in result.platforms:
            assert platform.verdict_text in text
    for failure in report.failures:
        assert failure.reason in text
    assert "/dev/kvm is missing" in text
    assert "host page cache" in text
    assert "Invented 9000" in text


def test_many_platforms_get_a_row_each(tmp_path: Path) -> None:
    names = ["native", *(f"platform-{number}" for number in range(12))]
    shape = fake_campaign.Shape(
        blocks=3, rounds=2, slowdown=dict.fromkeys(names, 1.0), workloads=("iperf3-tcp", "startup")
    )
    out = tmp_path / "many.html"
    (report,) = write_html([fake_campaign.write(tmp_path / "many.tare", shape)], out)
    matrix = out.read_text().split('<table class="matrix">')[1].split("</table>")[0]
    assert re.findall(r'<th scope="row">([^<]+)<', matrix) == [platform.name for platform in report.platforms]
    assert matrix.count('<td class="cell') == 3 * len(names)
    assert "#c1-iperf3-tcp" in matrix.split("<tbody>")[0]


def test_every_metric_has_a_plot_of_intervals_and_samples(page: Page, campaign: Path, report: Report) -> None:
    plots = [figure for figure in page.figures() if figure["kind"] == "metric"]
    assert len(plots) == len(report.results)
    with read_store(campaign) as store:
        samples = store.samples()
    for plot, result in zip(plots, report.results, strict=True):
        part = samples.filter((samples["workload"] == result.workload) & (samples["metric"] == result.metric))
        assert plot["shown"] == plot["total"] == part.height
        drawn = sorted(value for strip in plot["strips"] for value in strip["value"])
        assert drawn == pytest.approx(sorted(part["value"].to_list()), rel=1e-5)
        assert [row["name"] for row in plot["intervals"]] == [p.platform for p in result.platforms[1:]]
        assert [row["point"] for row in plot["intervals"]] == [p.op_percent for p in result.platforms[1:]]


def test_start_up_has_its_distributions_and_the_floor_its_panel(page: Page, campaign: Path) -> None:
    (start,) = (figure for figure in page.figures() if figure["kind"] == "start")
    assert [panel["label"] for panel in start["panels"]] == [
        "The agent's first byte, ms",
        "The address answers ping, ms",
    ]
    curve = start["panels"][0]["curves"][0]
    assert curve["name"] == "native"
    assert len(curve["x"]) == 24
    assert curve["x"] == sorted(curve["x"])
    assert curve["y"][-1] == 1
    (floor,) = (figure for figure in page.figures() if figure["kind"] == "floor")
    assert len(floor["rows"]) == len(build(campaign).results)


def test_raw_data_comes_out_whole(page: Page, campaign: Path) -> None:
    links = [value for tag, name, value in page.attributes if tag == "a" and value.startswith("data:")]
    samples, trials, report = (gzip.decompress(base64.b64decode(link.partition(",")[2])).decode() for link in links)
    with read_store(campaign) as store:
        rows = list(csv.DictReader(io.StringIO(samples)))
        assert [float(row["value"]) for row in rows] == store.samples()["value"].to_list()
        assert len(list(csv.DictReader(io.StringIO(trials)))) == store.trials().height
    assert json.loads(report)["schema"] == "tare.report/2"


EVIL = """</script><script>alert(1)</script><img src=x onerror=alert(2)>"'{{ 7*7 }}"""


def evil_record(record: CampaignRecord) -> CampaignRecord:
    evil = {"not_honoured": [EVIL], "open_by_design": {EVIL: EVIL}}
    platforms = [
        platform.model_copy(update={"title": EVIL, "version": EVIL, "details": {EVIL: EVIL}, **evil})
        for platform in record.platforms
    ]
    workloads = [
        workload.model_copy(
            update={
                "title": EVIL,
                "params": {EVIL: EVIL},
                "metrics": [metric.model_copy(update={"title": EVIL, "unit": EVIL}) for metric in workload.metrics],
            }
        )
        for workload in record.workloads
    ]
    names = {"host": {"cpu": {"model": EVIL}, EVIL: {EVIL: [EVIL]}}, "fairness": {EVIL: EVIL}, "image": {EVIL: EVIL}}
    return record.model_copy(update={"platforms": platforms, "workloads": workloads, "profile": EVIL, **names})


def test_text_of_a_hostile_store_stays_text(tmp_path: Path) -> None:
    shape = fake_campaign.Shape(blocks=3, rounds=2)
    with create_store(tmp_path / "a.tare", evil_record(fake_campaign.record(shape))) as store:
        for block, trials in fake_campaign._blocks(shape):
            failing = [replace(trial, reason=EVIL) if trial.reason else trial for trial in trials]
            store.plan_block(block, [trial.key for trial in failing])
            store.commit_trials(failing)
        store.add_event("warning", EVIL)
        store.set_status(EVIL)
    write_html([tmp_path / "a.tare"], tmp_path / "a.html")
    page = Page((tmp_path / "a.html").read_text())
    assert "img" not in page.tags
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    harmless = sum(attrs.get("type") == "application/json" for attrs, _ in page.scripts)
    assert len(page.scripts) - harmless == 2  # plotly's and ours
    assert EVIL in " ".join(page.text)
    assert any(EVIL in figure.get("label", "") for figure in page.figures())


def test_several_campaigns_on_one_page(campaign: Path, tmp_path: Path) -> None:
    reports = write_html([campaign, campaign], tmp_path / "two.html")
    page = Page((tmp_path / "two.html").read_text())
    assert len(reports) == page.tags.count("main") == 2
    assert "nothing is pooled" in " ".join(page.text)
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    anchors = {value[1:] for tag, name, value in page.attributes if name == "href" and value.startswith("#")}
    assert anchors <= set(ids)


def test_many_samples_are_thinned_evenly_and_that_is_said(tmp_path: Path) -> None:
    shape = fake_campaign.Shape(blocks=3, rounds=900, workloads=("prime-slices",))
    path = fake_campaign.write(tmp_path / "a.tare", shape)
    report = build(path)
    with read_store(path) as store:
        samples = store.samples().filter(store.samples()["metric"] == "rate")
    figure = figures.metric_figure(report, report.results[0], samples)
    assert figure["total"] == samples.height == 3 * 900 * 6
    assert figure["shown"] <= figures.POINT_LIMIT
    assert {len(strip["value"]) for strip in figure["strips"]} == {675}
    assert re.match(r"4,050 of 16,200 samples shown", figures.note_of(figure))


def test_a_campaign_without_a_sample_has_a_page(tmp_path: Path) -> None:
    with create_store(tmp_path / "a.tare", fake_campaign.record(fake_campaign.Shape())):
        pass
    write_html([tmp_path / "a.tare"], tmp_path / "a.html")
    text = " ".join(Page((tmp_path / "a.html").read_text()).text)
    assert "no A/A figure" in text
    assert "No trial failed." in text


def test_a_place_that_cannot_be_written_is_said(campaign: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        write_html([campaign], tmp_path / "no" / "out.html")


def test_a_noisy_and_tuned_campaign_says_so(tmp_path: Path) -> None:
    hit = fake_campaign.Disturbance("foreign-cpu", 8, 9, 0.3)
    shape = fake_campaign.Shape(rounds=10, workloads=("prime-slices",), telemetry=True, stolen=False, disturbed=(hit,))
    setting = SettingRecord(
        name="swappiness", path="proc/sys/vm/swappiness", outcome="changed", former="60", value="0", why="<why>"
    )
    record = fake_campaign.record(shape).model_copy(update={"tuning": [setting]})
    with create_store(tmp_path / "a.tare", record) as store:
        for _, trials in fake_campaign._blocks(shape):
            store.commit_trials(trials)
        store.commit_trials((), list(fake_campaign.ticks(shape, 72)))
    write_html([tmp_path / "a.tare"], tmp_path / "out.html")
    text = " ".join(" ".join(Page((tmp_path / "out.html").read_text()).text).split())
    assert "1 of 72 trials are marked as contaminated (other programs on the measured CPUs above 5 %: 1)." in text
    assert "without its 1 marked trial: " in text
    assert "The host was tuned for the campaign" in text
    assert "swappiness changed 60 0 <why>" in text
    assert "has no telemetry" not in text
