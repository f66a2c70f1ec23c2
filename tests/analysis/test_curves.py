"""Curves: a knee, a saturation and a best rate that are known, and what blocks say of them."""

import io

import numpy as np
import polars as pl
from rich.console import Console

import fake_campaign
from tare.analysis.curves import curves_of
from tare.estimates import knees
from tare.report.campaign.curve_views import curve_reports, render_curves
from tare.store import LevelRecord

LOADS = np.array([1.0, 10.0, 50.0, 100.0, 200.0])
#: Rises fast to 10, slowly to 100, and falls.
RATES = np.array([10.0, 80.0, 97.0, 100.0, 90.0])


def test_the_knee_is_where_the_curve_is_furthest_above_the_straight_line():
    assert knees.knee(LOADS, RATES) == 10
    straight = np.array([1.0, 10.0, 50.0, 100.0, 200.0])
    assert knees.knee(LOADS, straight) == 200  # it never bends: the highest rate is all that is known
    assert np.isnan(knees.knee(LOADS[:2], RATES[:2]))
    assert np.isnan(knees.knee(LOADS, np.full(5, np.nan)))
    assert knees.knee(LOADS, np.array([100.0, 90.0, 80.0, 70.0, 60.0])) == 1  # one is enough


def test_a_level_without_a_figure_is_left_out():
    with_hole = RATES.copy()
    with_hole[2] = np.nan
    assert knees.knee(LOADS, with_hole) == 10
    assert knees.saturation(LOADS, with_hole) == 100


def test_saturation_is_the_least_load_with_nearly_the_highest_rate():
    assert knees.saturation(LOADS, RATES) == 50
    assert np.isnan(knees.saturation(LOADS, np.full(5, np.nan)))


def test_the_best_rate_keeps_to_the_limit():
    latencies = np.array([1.0, 2.0, 8.0, 12.0, 30.0])
    assert knees.best_below(RATES, latencies, 10.0) == 97
    assert knees.best_below(RATES, latencies, 8.0) == 97
    assert np.isnan(knees.best_below(RATES, latencies, 0.5))
    latencies[2] = np.nan
    assert knees.best_below(RATES, latencies, 10.0) == 80


def test_an_interval_needs_three_blocks_and_holds_the_truth():
    rng = np.random.default_rng(3)
    blocks = RATES * rng.normal(1, 0.02, (12, 1)) * rng.normal(1, 0.01, (12, 5))
    point, interval = knees.over_blocks(blocks, lambda mean: knees.saturation(LOADS, mean))
    assert (point, interval.low) == (50, 50)
    best, around = knees.over_blocks(blocks, lambda mean: float(mean.max()))
    assert around.low < 100 < around.high
    assert around.low < best < around.high
    assert knees.over_blocks(blocks[:2], lambda mean: float(mean.max()))[1] is None


def _curve(rates_of, levels=(1, 10, 100)):
    """The one curve of a campaign of three blocks; ``rates_of``: rates by platform."""
    base = fake_campaign.record(fake_campaign.Shape())
    workload = base.workloads[0]
    placed = [
        LevelRecord(curve="sweep", at=at, unit="users", rate="rate", latency="cpu-cost", limit=5.0) for at in levels
    ]
    workloads = [workload.model_copy(update={"name": f"sweep-{level.at:g}", "level": level}) for level in placed]
    record = base.model_copy(update={"workloads": workloads})
    rows = [
        (block, f"sweep-{load}", platform, replica, metric, 0, value)
        for platform, rates in rates_of.items()
        for block in range(3)
        for replica in range(2 if platform == "native" else 1)
        for load, rate in zip(levels, rates, strict=False)
        for metric, value in (("rate", rate + block), ("cpu-cost", load / 20))
    ]
    names = ["block", "workload", "platform", "replica", "metric", "round", "value"]
    return curves_of(record, pl.DataFrame(rows, schema=names, orient="row"))


def test_a_campaign_has_the_curve_of_each_platform_with_its_bands():
    [curve] = _curve({"native": [10.0, 90.0, 100.0], "docker": [5.0, 40.0]})
    assert (curve.name, curve.unit, curve.rate, curve.rate_unit) == ("sweep", "users", "rate", "events/s")
    native, docker = (
        next(platform for platform in curve.platforms if platform.platform == name) for name in ("native", "docker")
    )
    assert [(point.load, point.rate, point.n_blocks) for point in native.points] == [
        (1, 11, 3),
        (10, 91, 3),
        (100, 101, 3),
    ]
    assert native.points[1].band.low < 91 < native.points[1].band.high
    assert (native.knee.point, native.saturation.point, native.best.point) == (10, 100, 101)
    assert [point.rate for point in docker.points] == [6, 41, None]
    assert (docker.knee.point, docker.best.point) == (None, 41)


def test_a_level_alone_is_no_curve():
    assert _curve({"native": [1.0]}, levels=(5,)) == []


def test_the_report_has_the_curve_as_data_and_as_a_table():
    reports = curve_reports(_curve({"native": [10.0, 90.0, 100.0]}))
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(*render_curves(reports))
    text = console.export_text()
    assert "native" in text
    assert "10 (10 to 10)" in " ".join(text.split())
    assert "rate in events/s by users" in text
    assert reports[0].platforms[0].points[2].low < 101 < reports[0].platforms[0].points[2].high
