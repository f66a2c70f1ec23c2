"""Where the spread comes from, from a campaign's file to what is shown; with known noise."""

import io
import json
from dataclasses import replace

import polars as pl
import pytest
from rich.console import Console
from typer.testing import CliRunner

import fake_campaign
from tare.analysis.refusals import RefusalKind, RefusedAnswer
from tare.cli import app
from tare.features.spread import views as spread_report
from tare.features.spread.analysis import steadiness, trajectories
from tare.store import read_store

SHAPE = replace(fake_campaign.Shape(), failing=None, unsupported=None, workloads=("prime-slices", "sysbench-cpu"))


def _read(path, shape):
    with read_store(fake_campaign.write(path / "x.tare", shape)) as store:
        return store.record, store.samples(), store.slices(), store.trials()


def _shown(group):
    out = io.StringIO()
    Console(width=140, file=out).print(group)
    return out.getvalue()


@pytest.mark.thorough
def test_noise_of_starts_and_of_rounds_are_told_apart(tmp_path):
    shape = replace(SHAPE, blocks=60, noise=0.004, block_noise=0.01)
    spreads = steadiness(*_read(tmp_path, shape))
    docker = next(spread for spread in spreads if (spread.metric, spread.platform) == ("rate", "docker"))
    # A ratio to the mean of two arms has 1.5 times the variance of one.
    assert docker.n_blocks == 60
    assert docker.parts.between == pytest.approx(1.5 * 0.01**2, rel=0.45)
    assert docker.parts.within == pytest.approx(1.5 * 0.004**2, rel=0.15)
    assert docker.sd == pytest.approx((1.5 * (0.01**2 + 0.004**2 / 20 * 1.1)) ** 0.5, rel=0.25)
    assert 0.97 < docker.twice_rounds < 1
    assert docker.best_rounds >= 1
    assert docker.changes == ()
    twice = next(spread for spread in spreads if (spread.metric, spread.platform) == ("rate", "native"))
    assert twice.parts.within == pytest.approx(2 * 0.004**2, rel=0.15)


def test_one_figure_a_block_has_a_spread_and_no_parts(tmp_path):
    spreads = steadiness(*_read(tmp_path, SHAPE))
    docker = next(spread for spread in spreads if (spread.workload, spread.platform) == ("sysbench-cpu", "docker"))
    assert (docker.parts, docker.best_rounds, docker.reason) == (None, None, RefusedAnswer(RefusalKind.ONE_ROUND))
    assert docker.sd > 0


def test_a_ratio_that_changes_on_the_way_is_found_where_it_does(tmp_path):
    record, samples, slices, trials = _read(tmp_path, replace(SHAPE, blocks=30))
    slower = (pl.col("platform") == "docker") & (pl.col("block") >= 18) & (pl.col("metric") == "rate")
    bent = samples.with_columns(pl.when(slower).then(pl.col("value") * 0.95).otherwise(pl.col("value")).alias("value"))
    by_platform = {
        spread.platform: spread for spread in steadiness(record, bent, slices, trials) if spread.metric == "rate"
    }
    [change] = by_platform["docker"].changes
    assert change.at == 18
    assert change.after - change.before == pytest.approx(-0.0513, abs=0.01)
    assert "block 19: by" in _shown(spread_report.render([by_platform["docker"]], [], "native"))


def test_a_trajectory_within_a_trial(tmp_path):
    record, samples, *_ = _read(tmp_path, SHAPE)
    once = samples.filter((pl.col("workload") == "sysbench-cpu") & (pl.col("metric") == "rate"))
    many = pl.concat(
        [
            once.with_columns(
                pl.lit(at).cast(once.schema["round"]).alias("round"), pl.col("value") * (1.0 if at < 12 else 0.8)
            )
            for at in range(24)
        ]
    )
    courses = trajectories(record, many)
    assert {course.platform for course in courses} == {name for name, _ in record.arms}
    for course in courses:
        assert (course.n, [change.at for change in course.changes]) == (24, [12])
        assert course.last == pytest.approx(0.8 * course.first)
    assert "iteration 13: to" in _shown(spread_report.render([], courses, "native"))


def test_the_command(tmp_path):
    fake_campaign.write(tmp_path / "x.tare", SHAPE)
    result = CliRunner().invoke(app, ["spread", "--json", str(tmp_path / "x.tare")])
    data = json.loads(result.stdout)
    assert data["schema"] == "tare.spread/1"
    assert {row["workload"] for row in data["results"]} == {"prime-slices", "sysbench-cpu"}
    shown = CliRunner().invoke(app, ["spread", str(tmp_path / "x.tare")])
    assert "prime-slices: rate" in shown.stdout
    assert "native, twice" in shown.stdout
    assert "no parts: it has one figure a block" in " ".join(shown.stdout.split())
