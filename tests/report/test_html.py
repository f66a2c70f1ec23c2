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
from markupsafe import escape

import fake_campaign
from tare.errors import UsageError
from tare.report.campaign import campaign_figures
from tare.report.campaign.campaign_drawings import drawn
from tare.report.campaign.cautions import cautions_of
from tare.report.campaign.report_builder import build
from tare.report.formats.html import write_html
from tare.report.model import Report
from tare.report.parts.svg import Axis, plain
from tare.report.sentences.captions import samples_note
from tare.report.sentences.page_words import START_PARTS
from tare.store import CampaignRecord, SettingRecord, create_store, read_store
from tare.workloads.startup.startup import Startup

VOID = {"input", "meta", "br"}


class Page(HTMLParser):
    """What a browser would see: elements, links, scripts; and whether all that opened closes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.raw = text
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


@pytest.mark.thorough
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
    matrix = out.read_text().split('<table class="matrix stack">')[1].split("</table>")[0]
    assert re.findall(r'<th scope="row">([^<]+)<', matrix) == [platform.name for platform in report.platforms]
    assert matrix.count('<td class="cell') == 3 * len(names)
    assert "#c1-iperf3-tcp" in matrix.split("<tbody>")[0]


def test_every_metric_has_a_drawing_of_intervals_and_samples(page: Page, campaign: Path, report: Report) -> None:
    with read_store(campaign) as store:
        samples = store.samples()
    for result in report.results:
        part = samples.filter((samples["workload"] == result.workload) & (samples["metric"] == result.metric))
        figure = campaign_figures.metric_figure(report, result, part)
        assert figure.shown == figure.total == part.height
        values = sorted(value for strip in figure.strips for value in strip.values)
        assert values == pytest.approx(sorted(part["value"].to_list()), rel=1e-5)
        assert [row.name for row in figure.intervals] == [p.platform for p in result.platforms[1:]]
        assert [row.overhead.point for row in figure.intervals] == pytest.approx(
            [p.op_percent for p in result.platforms[1:]]
        )
        pictures = str(escape(drawn(figure)))
        assert pictures in page.raw
        assert len(re.findall(r"M[\d.]+ [\d.]+h0", pictures)) == part.height
        points = [row.overhead.point for row in figure.intervals]
        near = [point for point in points if point is not None and abs(point) <= figure.limit]
        symbols = re.findall(r'class="symbol (?!baseline)', pictures)
        assert len(symbols) == len(near)


def test_intervals_lie_where_the_axis_says() -> None:
    axis = Axis(-10, 10, 100, 500)
    assert [axis.at(value) for value in (-10, 0, 5, 10, 99)] == [100, 300, 400, 500, 500]
    log = Axis(1, 100, 0, 200, log=True)
    assert [round(log.at(value)) for value in (1, 10, 100)] == [0, 100, 200]
    assert Axis(0, 43, 0, 1).ticks() == [0, 10, 20, 30, 40]
    assert Axis(0.8, 120, 0, 1, log=True).ticks() == [1, 2, 5, 10, 20, 50, 100]
    assert [plain(value) for value in (0, 0.25, 12, 1_500, 20_000, 2.5e6)] == [
        "0",
        "0.25",
        "12",
        "1,500",
        "20 k",
        "2.5 M",
    ]


def test_start_up_has_its_parts_and_distributions_and_the_floor_its_panel(page: Page, report: Report) -> None:
    results = [result for result in report.results if result.mode == "start"]
    bars = campaign_figures.start_bars(results)
    assert [row.name for row in bars.rows] == [platform.platform for platform in results[0].platforms]
    assert [row.mark for row in bars.rows] == [platform.mean for platform in results[0].platforms]
    labels = [value for tag, name, value in page.attributes if (tag, name) == ("svg", "aria-label")]
    assert "start-up in parts, ms" in labels
    done = "share of the starts that were done: "
    assert [label for label in labels if label.startswith(done)] == [
        f"{done}The agent's first byte, ms",
        f"{done}The address answers ping, ms",
    ]
    assert "native against itself, with the margin of each metric" in labels


def test_parts_of_a_start_are_stacked_and_end_where_the_start_does(report: Report) -> None:
    [first, *_] = [result for result in report.results if result.mode == "start"]
    halves = [
        first.model_copy(
            update={
                "metric": name,
                "platforms": [
                    platform.model_copy(update={"mean": (platform.mean or 0) * share}) for platform in first.platforms
                ],
            }
        )
        for name, share in (("runtime", 0.75), ("agent", 0.25))
    ]
    bars = campaign_figures.start_bars([first, *halves])
    assert bars.parts == ["the platform's own work", "the agent"]
    for row in bars.rows:
        assert sum(row.parts) == pytest.approx(row.mark)
        assert row.end == pytest.approx(row.mark)
    titles = {metric.name: metric.title for metric in Startup.metrics}
    assert all(titles[part].endswith(f": {label}") for part, label in START_PARTS.items())


def test_cautions_are_counted_and_lead_to_their_rows(page: Page, report: Report) -> None:
    text = " ".join(" ".join(page.text).split())
    number = sum(len(caution.rows) for caution in cautions_of(report))
    assert f"{number} cautions: " in text
    ids = {value: tag for tag, name, value in page.attributes if name == "id"}
    rows = [value[1:] for tag, name, value in page.attributes if tag == "a" and value.startswith("#c1-r")]
    assert len(rows) >= number > 10
    assert {ids[row] for row in rows if re.match(r"c1-r\d", row)} == {"tr"}


def test_a_page_of_a_campaign_is_small(page: Page) -> None:
    assert len(page.raw) < 500_000


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
    assert len(page.scripts) - harmless == 1  # ours
    assert EVIL in " ".join(page.text)
    assert any(EVIL in value for tag, name, value in page.attributes if (tag, name) == ("svg", "aria-label"))


@pytest.mark.thorough
def test_several_campaigns_on_one_page(campaign: Path, tmp_path: Path) -> None:
    reports = write_html([campaign, campaign], tmp_path / "two.html")
    page = Page((tmp_path / "two.html").read_text())
    assert len(reports) == page.tags.count("main") == 2
    assert "nothing is pooled" in " ".join(page.text)
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    anchors = {value[1:] for tag, name, value in page.attributes if name == "href" and value.startswith("#")}
    assert anchors <= set(ids)


@pytest.mark.thorough
def test_many_samples_are_thinned_evenly_and_that_is_said(tmp_path: Path) -> None:
    shape = fake_campaign.Shape(blocks=3, rounds=900, workloads=("prime-slices",))
    path = fake_campaign.write(tmp_path / "a.tare", shape)
    report = build(path)
    with read_store(path) as store:
        samples = store.samples().filter(store.samples()["metric"] == "rate")
    figure = campaign_figures.metric_figure(report, report.results[0], samples)
    assert figure.total == samples.height == 3 * 900 * 6
    assert figure.shown <= campaign_figures.POINT_LIMIT
    assert {len(strip.values) for strip in figure.strips} == {450}
    assert re.match(r"2,700 of 16,200 samples shown", samples_note(figure.shown, figure.total))


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
