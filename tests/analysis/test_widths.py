"""How well workloads are known: the widest of their intervals."""

from dataclasses import replace

import polars as pl
import pytest

import fake_campaign
from tare.analysis import analyse
from tare.analysis.widths import blocks_needed, widths
from tare.store import Store


@pytest.fixture
def campaign(tmp_path):
    shape = replace(fake_campaign.Shape(), failing=None, unsupported=None)
    with Store.read(fake_campaign.write(tmp_path / "x.tare", shape)) as store:
        yield store.record, store.samples(), store.trials()


def test_it_is_the_widest_of_headline_and_cost_over_the_platforms(campaign):
    record, samples, trials = campaign
    found = widths(record, samples)
    for workload in record.workloads:
        headline = workload.metrics[0].name
        told = [
            platform.overhead.half_width
            for result in analyse(record, samples, trials)
            if result.workload == workload.name and result.metric in {headline, "cpu-cost"}
            for platform in result.platforms
            if platform.overhead is not None
        ]
        assert found[workload.name].half_width == pytest.approx(max(told))
        assert found[workload.name].n_blocks == 12


def test_what_has_no_interval_says_so(campaign):
    record, samples, _ = campaign
    assert {one.half_width for one in widths(record, samples.clear()).values()} == {None}
    one_block = samples.filter(pl.col("block") == 0)
    assert {one.half_width for one in widths(record, one_block).values()} == {None}
    zeros = samples.with_columns(pl.lit(0.0).alias("value"))
    assert {one.half_width for one in widths(record, zeros).values()} == {None}


def test_blocks_needed_grow_with_the_square():
    assert blocks_needed(0.02, 10, 0.01) == 40
    assert blocks_needed(0.01, 10, 0.01) == 10
    assert blocks_needed(1e9, 10, 1e-9) == 10**9


def test_what_could_not_be_told_says_what_it_would_take(tmp_path):
    shape = replace(fake_campaign.Shape(), blocks=4, block_noise=0.03, failing=None, unsupported=None)
    with Store.read(fake_campaign.write(tmp_path / "x.tare", shape)) as store:
        results = analyse(store.record, store.samples(), store.trials())
    texts = {
        (result.workload, platform.platform): (platform, platform.verdict.text)
        for result in results
        if result.metric == "rate"
        for platform in result.platforms
        if platform.verdict.kind == "inconclusive"
    }
    platform, text = texts["sysbench-cpu", "docker"]
    blocks = blocks_needed(platform.overhead.half_width, 4, 0.005)
    assert f"; ±0.5 % would take about {blocks} blocks, " in text
    assert text.endswith("of this workload alone")
