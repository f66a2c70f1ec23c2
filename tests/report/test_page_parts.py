"""Parts of the page that show what happened in order, curves over instances, and the score sheet."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from markupsafe import escape

import fake_campaign
from tare.analysis.quality.contamination import windows
from tare.features.studies import section
from tare.features.studies.analysis import profile as profiles
from tare.features.studies.analysis.sheet import score
from tare.features.studies.views.score_page import score_view
from tare.features.studies.views.score_tables import doubt_of
from tare.model import Direction
from tare.report.campaign import course, curve_plot, density_curves
from tare.report.campaign.report_builder import build
from tare.report.formats.html import write_html
from tare.report.model import Report, ResultReport, SegmentReport, to_json
from tare.store import read_store

BEGAN = fake_campaign.BEGAN
QUIET = replace(fake_campaign.Shape(), blocks=2, workloads=("sysbench-cpu",), telemetry=True)
BUSY = replace(
    QUIET,
    disturbed=(
        fake_campaign.Disturbance("foreign-cpu", 2.0, 4.0, 0.4),
        fake_campaign.Disturbance("swap", 1.0, 3.0, 900),
    ),
)
TO_THE_END = [SegmentReport(began=BEGAN - 1, ended=BEGAN + 12, boot=None)]


def frames(folder: Path, shape: fake_campaign.Shape) -> tuple[pl.DataFrame, pl.DataFrame]:
    with read_store(fake_campaign.write(folder / "x.tare", shape)) as store:
        return windows(store.telemetry(), [1]), store.trials()


def of_samples(report: Report, campaign: Path, workload: str) -> tuple[ResultReport, pl.DataFrame]:
    [result] = [candidate for candidate in report.results if candidate.workload == workload and candidate.headline]
    with read_store(campaign) as store:
        samples = store.samples()
    of_result = (pl.col("workload") == result.workload) & (pl.col("metric") == result.metric)
    return result, samples.filter(of_result)


def test_every_sample_has_its_place_by_start_and_round(report: Report, campaign: Path) -> None:
    result, samples = of_samples(report, campaign, "prime-slices")
    drawn = str(escape(course.course(result, samples)))
    points = re.findall(r'd="((?:M[0-9.]+ [0-9.]+h0)+)" class="points order"', drawn)
    assert sum(path.count("M") for path in points) == samples.height
    assert len(points) == samples.select("platform", "replica").n_unique()
    first = [float(x) for x in re.findall(r"M([0-9.]+) ", points[0])]
    assert first == sorted(first)
    assert len(first) == 12 * 20
    levels = re.findall(r'd="([^"]+)" class="level"', drawn)
    assert sum(path.count("M") for path in levels) == samples.select("block", "platform", "replica").n_unique()
    assert "native#2: the median of each block" in drawn


def test_a_metric_without_samples_has_no_course(report: Report, campaign: Path) -> None:
    result, samples = of_samples(report, campaign, "prime-slices")
    assert course.course(result, samples.clear()) is None


def test_many_samples_are_thinned_in_the_course(
    report: Report, campaign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(course, "POINT_LIMIT", 120)
    result, samples = of_samples(report, campaign, "prime-slices")
    drawn = str(escape(course.course(result, samples)))
    assert 0 < drawn.count("h0") <= 2 * 120
    assert 'class="level"' in drawn
    monkeypatch.setattr(course, "POINT_LIMIT", 50)
    assert 'class="level"' not in str(escape(course.course(result, samples)))  # six arms in twelve blocks


def test_what_disturbed_the_host_stands_above_its_limit(tmp_path: Path) -> None:
    telemetry, trials = frames(tmp_path, BUSY)
    drawn = str(escape(course.telemetry(telemetry, trials, TO_THE_END)))
    assert "other programs, % of the measured CPUs" in drawn
    assert "pages swapped a second" in drawn
    assert "waited for memory" not in drawn  # nobody did
    foreign = drawn.partition("other programs")[2].partition("pages swapped")[0]
    [above] = re.findall(r'd="([^"]+)" class="area above"', foreign)
    assert above.count("M") == 4  # two seconds, in windows of half a second
    assert drawn.count('class="limit"') == 2 + 1  # of steal too, which is drawn where there is none
    assert re.search(r'class="span-1"><title>block 2, sysbench-cpu: ', drawn)


def test_a_quiet_host_is_shown_as_quiet(tmp_path: Path) -> None:
    drawn = str(escape(course.telemetry(*frames(tmp_path, QUIET), TO_THE_END)))
    assert 'class="area' not in drawn
    assert "time that the hypervisor below took" in drawn


def test_pauses_take_no_room(tmp_path: Path) -> None:
    telemetry, trials = frames(tmp_path, QUIET)
    later = [TO_THE_END[0], SegmentReport(began=BEGAN + 86_400, ended=BEGAN + 86_410, boot=None)]
    assert "1 d" not in (drawn := str(escape(course.telemetry(telemetry, trials, later))))
    assert "20 s" in drawn


def test_without_telemetry_there_is_no_such_drawing(report: Report, campaign: Path, tmp_path: Path) -> None:
    telemetry, trials = frames(tmp_path, replace(QUIET, telemetry=False))
    assert course.telemetry(telemetry, trials, report.segments) is None


def test_curves_over_instances_have_a_band_of_95_per_cent(report: Report) -> None:
    [base] = [result for result in report.results if result.workload == "iperf3-tcp" and result.headline]

    def of(metric: str, mean: float) -> ResultReport:
        platforms = [
            platform.model_copy(update={"mean": mean, "sd": 3.0, "n_blocks": 9}) for platform in base.platforms
        ]
        return base.model_copy(
            update={"metric": metric, "metric_title": f"TCP with {metric} at once", "platforms": platforms}
        )

    results = [of("each-1", 100.0), of("each-4", 40.0), of("total-2", 90.0), of("total-4", 160.0), of("p-95", 3.0)]
    per_instance, total = density_curves.curves_of(results)
    assert [point.load for point in per_instance.platforms["runc"]] == [1, 4]
    assert [point.load for point in total.platforms["runc"]] == [2, 4]
    point = per_instance.platforms["runc"][1]
    assert (point.mean, point.high - point.mean) == (40.0, pytest.approx(2.306 * 3.0 / 3.0, abs=1e-3))
    drawn = str(escape(curve_plot.draw(per_instance, [name.platform for name in base.platforms])))
    assert drawn.count('class="span-of') == drawn.count('class="curve ') == len(base.platforms)
    assert "TCP, Gbit/s" in drawn


def test_one_number_of_instances_makes_no_curve(report: Report) -> None:
    base = report.results[0]
    assert density_curves.curves_of([base.model_copy(update={"metric": "each-4"})]) == []


def test_the_sheet_has_the_sums_of_tare_score_and_is_made_for_a_page_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = profiles.load()
    read = replace(fake_campaign.Shape(), blocks=2, workloads=("sysbench-fileio-seqrd",))
    campaign = fake_campaign.write(tmp_path / "read.tare", read)
    with read_store(campaign) as store:
        sheet = score(store.record, store.samples(), store.trials(), profile)
    view = score_view(sheet.points, profile)
    assert view is not None
    assert [feature.name for feature in view.features] == ["File read"]
    assert [(row.platform, row.weighted) for row in view.rows] == [(row.platform, row.weighted) for row in sheet.points]
    assert [row.most for row in view.rows] == [row.attainable for row in sheet.points]
    made = []
    monkeypatch.setattr(section, "scored", lambda *given: made.append(given) or score(*given))
    assert "score" not in json.loads(to_json([build(campaign)]))
    assert not made
    write_html([campaign], tmp_path / "x.html")
    assert len(made) == 1
    page = tmp_path.joinpath("x.html").read_text()
    assert page.count('class="points-of"') == page.count("data-fewest=") == len(view.rows)


def test_the_doubt_of_a_figure_is_that_of_the_interval_that_tables_show(report: Report) -> None:
    doubt = doubt_of(report.results)
    rate = next(result for result in report.results if result.direction is Direction.HIGHER)
    effect = rate.platforms[1].effect
    assert effect is not None
    low, high = doubt[rate.workload, rate.metric, rate.platforms[1].platform]
    assert low == pytest.approx(effect.times / effect.high)  # more times worse is a lower rate
    assert high == pytest.approx(effect.times / effect.low)
    assert (rate.workload, rate.metric, report.baseline) not in doubt


def test_without_measured_features_there_is_no_sheet() -> None:
    assert score_view([], profiles.load()) is None


def test_no_two_regions_of_a_page_have_the_same_name(campaign: Path, tmp_path: Path) -> None:
    write_html([campaign], tmp_path / "x.html")
    names = re.findall(r'role="region" aria-label="([^"]+)"', (tmp_path / "x.html").read_text())
    assert names
    assert len(names) == len(set(names))
