"""One rule: the report, the live table and `tare calibrate` say the same of the same samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fake_campaign
from tare.analysis import MetricResult, analyse
from tare.analysis.calibration import trust
from tare.analysis.estimates import headlines
from tare.analysis.rule import SURE, SURE_LIVE
from tare.analysis.verdicts import Reason, Verdict, VerdictKind
from tare.campaign.plan.interim import Interim
from tare.estimates.grid import weighted
from tare.estimates.running import RunningEstimates, Watched
from tare.store import CampaignRecord, Store, read_store

SHAPE = replace(fake_campaign.Shape(), failing=None, unsupported=None)


def written(folder: Path, shape: fake_campaign.Shape) -> Store:
    return read_store(fake_campaign.write(folder / "x.tare", shape))


def interim_of(store: Store) -> Interim:
    interim = Interim(store)
    for block in store.samples()["block"].unique():
        interim.estimates.close(block)
    return interim


def by_name(results: list[MetricResult]) -> dict[tuple[str, str, str], Verdict]:
    return {
        (result.workload, result.metric, platform.platform): platform.verdict
        for result in results
        for platform in result.platforms
    }


@pytest.mark.parametrize(
    "shape",
    [
        SHAPE,
        replace(SHAPE, blocks=3, block_noise=0.05, noise=0.05),
        replace(SHAPE, blocks=5, block_noise=0.01, noise=0.2),
        replace(SHAPE, blocks=2, rounds=1),
    ],
    ids=["whole", "three noisy blocks", "noisy rounds", "one round"],
)
def test_the_live_table_is_the_report_at_its_own_level(tmp_path: Path, shape: fake_campaign.Shape) -> None:
    with written(tmp_path, shape) as store:
        shown = by_name(headlines(store.record, interim_of(store).estimates, store.trials(), SURE))
        full = by_name(analyse(store.record, store.samples(), store.trials(), slices=store.slices()))
    assert len(shown) == len(store.record.workloads) * len(store.record.platforms)
    for name, verdict in shown.items():
        report = full[name]
        assert (verdict.kind, verdict.reason, verdict.certain) == (report.kind, report.reason, report.certain), name
        if verdict.basis is not None and report.basis is not None:
            assert verdict.basis.typical.low == pytest.approx(report.basis.typical.low)
            assert verdict.basis.unseen == report.basis.unseen


def test_a_table_that_is_drawn_after_each_block_asks_for_more(tmp_path: Path) -> None:
    """Who stops at its first verdict has looked many times."""
    with written(tmp_path, replace(SHAPE, blocks=3, slowdown={"native": 1.0, "runc": 1.06}, noise=0.008)) as store:
        estimates, trials = interim_of(store).estimates, store.trials()
        careful, report = (
            by_name(headlines(store.record, estimates, trials, sure)).values() for sure in (SURE_LIVE, SURE)
        )
    assert _slower(careful) < _slower(report)


def _slower(verdicts: Iterable[Verdict]) -> int:
    return sum(verdict.kind is VerdictKind.SLOWER for verdict in verdicts)


@pytest.fixture
def campaign(tmp_path: Path) -> Iterator[Store]:
    with written(tmp_path, SHAPE) as store:
        yield store


def one_workload(store: Store, name: str = "prime-slices") -> CampaignRecord:
    [workload] = [workload for workload in store.record.workloads if workload.name == name]
    headline = workload.model_copy(update={"metrics": workload.metrics[:1]})
    return store.record.model_copy(update={"workloads": [headline]})


def changed(store: Store, value: pl.Expr) -> pl.DataFrame:
    return weighted(store.samples().with_columns(value=value), store.slices())


def loud_baseline() -> pl.Expr:
    """A second baseline arm that jumps from block to block, and docker half as much, a little faster."""
    jump = pl.when(pl.col("block") % 2 == 0).then(1.03).otherwise(1 / 1.03)
    loud = pl.when((pl.col("platform") == "native") & (pl.col("replica") == 1)).then(pl.col("value") * jump)
    return loud.when(pl.col("platform") == "docker").then(pl.col("value") * jump.sqrt() * 0.996).otherwise("value")


def drifting(platform: str, replica: int) -> pl.Expr:
    is_it = (pl.col("platform") == platform) & (pl.col("replica") == replica)
    return pl.when(is_it).then(pl.col("value") * (1 + 0.02 * pl.col("block"))).otherwise("value")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (loud_baseline(), Reason.WIDE_FLOOR),
        (drifting("docker", 0), Reason.DRIFT),
        (drifting("native", 1), Reason.BASELINES_DIFFER),
    ],
    ids=["noise floor", "drift", "baselines differ"],
)
def test_gates_close_the_same_in_the_live_table_and_in_the_report(
    campaign: Store, value: pl.Expr, reason: Reason
) -> None:
    record, samples, trials = one_workload(campaign), changed(campaign, value), campaign.trials()
    estimates = RunningEstimates(
        record.all_arms(), record.baseline, record.design, {("prime-slices", "rate"): Watched(harmonic=False)}
    )
    estimates.read(samples)
    for block in samples["block"].unique():
        estimates.close(block)
    shown = by_name(headlines(record, estimates, trials, SURE))["prime-slices", "rate", "docker"]
    full = by_name(analyse(record, samples, trials))["prime-slices", "rate", "docker"]
    assert full.reason is reason
    assert (shown.kind, shown.reason, shown.certain) == (full.kind, full.reason, full.certain)


@pytest.mark.parametrize("drifts", [False, True])
@pytest.mark.parametrize("slower", [1.0, 0.9])
def test_calibrate_judges_a_comparison_as_the_report_does(campaign: Store, slower: float, drifts: bool) -> None:
    """Three arms of the baseline for `calibrate`; the same samples with the first arm called docker for the report."""
    record = one_workload(campaign)
    rate = pl.col("value") * slower * ((1 + 0.01 * pl.col("block")) if drifts else 1)
    docker = campaign.samples().filter(pl.col("workload") == "prime-slices", pl.col("metric") == "rate")
    docker = docker.with_columns(value=pl.when(pl.col("platform") == "docker").then(rate).otherwise("value"))
    of_report = docker.filter(pl.col("platform").is_in(["native", "docker"]))
    [workload] = record.workloads
    small = record.model_copy(
        update={
            "arms": [("native", 0), ("native", 1), ("docker", 0)],
            "platforms": [platform for platform in record.platforms if platform.name in {"native", "docker"}],
        }
    )
    named = pl.col("workload") == workload.name
    trials = campaign.trials().filter(named, pl.col("platform").is_in(["native", "docker"]))
    verdict = by_name(analyse(small, of_report, trials))["prime-slices", "rate", "docker"]

    place = pl.when(pl.col("platform") == "docker").then(0).otherwise(pl.col("replica") + 1)
    same = of_report.with_columns(replica=place.cast(pl.Int8), platform=pl.lit("native"))
    three = small.model_copy(update={"arms": [("native", at) for at in range(3)], "platforms": small.platforms[:1]})
    [trusted] = trust(three, same, 10.0, int(np.unique(same["block"]).size))
    kinds = {
        VerdictKind.INVALID: trusted.invalid,
        VerdictKind.SLOWER: trusted.false_alarms.count,
        VerdictKind.EQUIVALENT: trusted.equivalent.count,
    }
    assert kinds.get(verdict.kind) == 1, verdict
    assert sum(kinds.values()) == 1
