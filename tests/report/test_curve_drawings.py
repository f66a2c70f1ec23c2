"""Rates under load on the page: the drawings, their text, and the table beside them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from markupsafe import escape

import fake_campaign
from tare.report.campaign.curve_views import drawings
from tare.report.formats.html import write_html
from tare.report.model import CurveReport, EstimateReport, PlatformCurveReport, PointReport

NONE = EstimateReport(point=None, low=None, high=None)


def platform(name: str, rates: list[float | None], knee: EstimateReport = NONE) -> PlatformCurveReport:
    points = [
        PointReport(
            load=load,
            n_blocks=3,
            rate=rate,
            low=None if rate is None else rate - 5,
            high=None if rate is None else rate + 5,
            latency=None if rate is None else load / 10,
        )
        for load, rate in zip((1, 8, 64), rates, strict=True)
    ]
    saturation = EstimateReport(point=64.0, low=None, high=None)
    return PlatformCurveReport(platform=name, points=points, knee=knee, saturation=saturation, best=NONE)


def curve(*platforms: PlatformCurveReport) -> CurveReport:
    return CurveReport(
        name="redis-connections",
        unit="connections",
        rate="rate",
        rate_unit="requests/s",
        latency="p99",
        latency_unit="ms",
        limit=5.0,
        platforms=list(platforms),
    )


def test_a_curve_has_its_band_its_knee_with_its_interval_and_where_it_is_saturated() -> None:
    knee = EstimateReport(point=8.0, low=1.0, high=8.0)
    rates, latencies = drawings(curve(platform("native", [10, 90, 100], knee), platform("gvisor", [5, 40, None])))
    drawn = str(escape(rates))
    assert drawn.count('class="span-of') == 2
    assert "native, knee: 8 (1 to 8)" in drawn
    assert drawn.count('class="sign curve-0"') == 2
    assert drawn.count('class="curve curve-0 ends"') == 1
    # the sign is on the line: at the load's place of the path
    [path] = re.findall(r'd="M([^"]+)" class="curve curve-0 dash-0"', drawn)
    [sign, _] = re.findall(r'transform="translate\(([0-9. ]+)\)" class="sign curve-0"', drawn)
    assert sign == path.split("L")[1]
    assert 'class="limit"' not in drawn
    assert 'class="limit"' in str(escape(latencies))
    assert 'class="span-of' not in str(escape(latencies))  # a latency has no interval


def test_who_does_not_see_a_curve_has_its_figures() -> None:
    [rates, _] = drawings(curve(platform("native", [10, 90, 100]), platform("gvisor", [5, 40, None])))
    assert rates.label == (
        "rate, requests/s, by connections. native: 10 at 1, 90 at 8, 100 at 64; gvisor: 5 at 1, 40 at 8;"
        " native, saturated: 64; gvisor, saturated: 64"
    )


def test_what_failed_at_every_level_has_no_line() -> None:
    rates, _ = drawings(curve(platform("native", [10, 90, 100]), platform("gvisor", [None, None, None])))
    assert "gvisor" not in str(escape(rates))


@pytest.mark.thorough
def test_the_page_has_the_curves_and_the_same_as_a_table(tmp_path: Path) -> None:
    shape = fake_campaign.Shape(blocks=3, workloads=("served-1", "served-8", "served-64"))
    write_html([fake_campaign.write(tmp_path / "a.tare", shape)], tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    [part] = re.findall(r'<section id="c1-curves">.*?</section>', page, re.DOTALL)
    assert part.count('<svg class="drawing"') == 2
    assert part.count("<tr data-platform=") == len(shape.slowdown)
    assert 'href="#c1-curves"' in page
