"""What became of each figure: injected regressions are found, alike campaigns are silent, and what is open says so."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import fake_campaign
from refused import refused
from tare.analysis.comparisons.sides import Way
from tare.analysis.comparisons.thresholds import Threshold, Thresholds, load
from tare.analysis.contrasting import campaign_looks
from tare.errors import UsageError
from tare.estimates.moderated import FigureRow
from tare.features.diff.analysis import (
    Absent,
    Diff,
    Fact,
    FigureOutcome,
    Gap,
    Lack,
    diff,
    diff_platforms,
    platform_facts,
)
from tare.model import Design
from tare.store import CampaignRecord, create_store, read_store

SHAPE = fake_campaign.Shape(
    blocks=12,
    rounds=4,
    slowdown={"native": 1.0, "runc": 1.0, "gvisor": 1.2},
    workloads=("prime-slices",),
    failing=None,
    unsupported=None,
    stolen=False,
)
Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Writes an invented campaign; ``slower``: what its gvisor became slower by."""

    def _make(name: str, slower: float = 1.0, **shape: Any) -> Path:
        slowdown = {**SHAPE.slowdown, "gvisor": SHAPE.slowdown["gvisor"] * slower}
        return fake_campaign.write(tmp_path / f"{name}.tare", replace(SHAPE, **{"slowdown": slowdown, **shape}))

    return _make


def compared(old: Path, new: Path, thresholds: Thresholds = Thresholds(), **options: bool) -> Diff:  # noqa: B008
    with read_store(old) as before, read_store(new) as after:
        return diff(before, after, thresholds, **options)


def another(record: CampaignRecord, **facts: Any) -> CampaignRecord:
    """The record of another campaign."""
    return record.model_copy(update={"id": str(uuid.uuid4()), **facts})


def outcomes(comparison: Diff) -> dict[tuple[str, str], FigureOutcome]:
    return {(change.platform, change.metric): change.outcome for change in comparison.changes}


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(10))
def test_a_regression_of_three_per_cent_is_found_in_each_of_ten_tries(make: Make, seed: int) -> None:
    comparison = compared(make("old", seed=seed), make("new", 1.03, seed=100 + seed))
    assert comparison.outcome is FigureOutcome.REGRESSION
    assert outcomes(comparison) == {
        ("gvisor", "rate"): FigureOutcome.REGRESSION,
        ("gvisor", "cpu-cost"): FigureOutcome.REGRESSION,
        ("runc", "rate"): FigureOutcome.FINE,
        ("runc", "cpu-cost"): FigureOutcome.FINE,
    }
    for change in comparison.changes[:2]:
        assert change.interval is not None
        assert change.interval.low < 0.03 < change.interval.high
        assert change.interval.low > 0.01


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(10))
def test_ten_pairs_of_campaigns_that_are_alike_are_silent(make: Make, seed: int) -> None:
    comparison = compared(make("old", seed=seed), make("new", seed=200 + seed))
    assert comparison.outcome is FigureOutcome.FINE
    assert not comparison.facts
    assert not comparison.absent


def test_intervals_and_p_values_are_welchs_for_all_figures_at_once(make: Make) -> None:
    """Against scipy, from the figures of the store and not from a grid."""
    old, new = make("old", rounds=1, seed=1), make("new", 1.03, rounds=1, seed=2, blocks=9)
    comparison = compared(old, new)
    [change] = [figure for figure in comparison.changes if (figure.platform, figure.metric) == ("gvisor", "rate")]
    sides = []
    for path in (old, new):
        with read_store(path) as store:
            rows = store.samples().filter(store.samples()["metric"] == "rate").sort("block", "replica")
        by = {name: np.log(rows.filter(rows["platform"] == name)["value"].to_numpy()) for name in ("gvisor", "native")}
        sides.append(by["gvisor"] - by["native"].reshape(-1, 2).mean(axis=1))
    test = stats.ttest_ind(sides[1], sides[0], equal_var=False)
    low, high = test.confidence_interval(1 - 2 * 0.05 / len(comparison.changes))
    assert change.interval is not None
    assert change.interval.low == pytest.approx(1 - np.exp(high))
    assert change.interval.high == pytest.approx(1 - np.exp(low))
    alone, _ = test.confidence_interval(0.90)
    assert change.at_most == pytest.approx(1 - np.exp(alone))
    assert change.old_times == pytest.approx(np.exp(-sides[0].mean()))
    assert change.new_times == pytest.approx(np.exp(-sides[1].mean()))
    beyond = stats.ttest_ind(sides[1] - np.log(0.99), sides[0], equal_var=False, alternative="less").pvalue
    assert change.p is not None
    assert beyond <= change.p <= 4 * beyond * (1 + 1e-9)


def test_too_few_and_too_noisy_blocks_cannot_tell_and_say_what_would(make: Make) -> None:
    comparison = compared(make("old", blocks=3, block_noise=0.02), make("new", blocks=3, block_noise=0.02, seed=8))
    assert comparison.outcome is FigureOutcome.OPEN
    unclear = [figure for figure in comparison.changes if figure.outcome is FigureOutcome.OPEN]
    assert unclear
    for change in unclear:
        assert change.blocks is not None
        assert change.seconds is not None
        assert change.blocks > 3
        assert change.seconds == pytest.approx(change.blocks * unclear[0].seconds / unclear[0].blocks)
    comparison = compared(make("one", blocks=1), make("other", blocks=1, seed=8))
    assert {figure.gap for figure in comparison.changes} == {Gap.TOO_FEW_BLOCKS}
    assert comparison.outcome is FigureOutcome.OPEN


def test_what_could_not_be_seen_is_no_proof_that_nothing_changed(make: Make) -> None:
    """A step as large as `detectable` is found in nine of ten such comparisons."""
    noisy = {"blocks": 5, "block_noise": 0.05, "rounds": 1}
    [change] = [
        figure
        for figure in compared(make("old", **noisy), make("new", **noisy, seed=8)).changes
        if (figure.platform, figure.metric) == ("gvisor", "cpu-cost")
    ]
    assert change.outcome is FigureOutcome.OPEN
    assert change.detectable is not None
    found = [
        compared(
            make(f"old-{seed}", **noisy, seed=seed), make(f"new-{seed}", 1 + change.detectable, **noisy, seed=99 + seed)
        ).outcome
        for seed in range(12)
    ]
    assert found.count(FigureOutcome.REGRESSION) >= 9


def test_a_regressions_interval_lies_wholly_beyond_its_threshold(make: Make) -> None:
    """It held zero: one-sided tests stood beside two-sided intervals."""
    for seed in range(8):
        noisy = {"blocks": 4, "block_noise": 0.02, "rounds": 1}
        comparison = compared(make(f"o{seed}", **noisy, seed=seed), make(f"n{seed}", 1.06, **noisy, seed=50 + seed))
        for change in comparison.changes:
            assert change.interval is not None
            assert change.at_most is not None
            assert (change.outcome is FigureOutcome.REGRESSION) == (change.interval.low > change.threshold)
            if change.outcome is FigureOutcome.FINE:
                assert change.at_most < change.threshold


def test_a_campaign_is_not_compared_with_itself(make: Make) -> None:
    with refused("old.tare and again.tare are the same campaign"):
        compared(make("old"), make("again"))


def test_noisy_blocks_borrow_from_the_campaigns_other_figures(make: Make) -> None:
    """Of five workloads there are figures enough: the error of a change is not that of its own three blocks."""
    shape = {"blocks": 3, "workloads": fake_campaign.Shape().workloads, "rounds": 4}
    old, new = make("old", **shape), make("new", **shape, seed=5)
    with read_store(old) as before, read_store(new) as after:
        comparison = diff(before, after, Thresholds())
        [rate] = [
            c for c in comparison.changes if (c.platform, c.workload, c.metric) == ("runc", "prime-slices", "rate")
        ]
        looks = [
            campaign_looks(store.record, store.samples())[FigureRow("prime-slices", "rate", "runc")].typical
            for store in (before, after)
        ]
    assert all(look.judged.df > 2 for look in looks)
    assert rate.interval is not None
    assert rate.interval.point == pytest.approx(1 - np.exp(looks[1].point - looks[0].point))


def test_a_change_for_the_better_is_no_regression(make: Make) -> None:
    comparison = compared(make("old"), make("new", 0.9, seed=9))
    assert comparison.outcome is FigureOutcome.FINE
    [change] = [figure for figure in comparison.changes if (figure.platform, figure.metric) == ("gvisor", "cpu-cost")]
    assert change.interval is not None
    assert change.interval.high < -0.05


def test_a_slower_host_is_no_regression_of_a_platform_and_one_of_the_figures(make: Make) -> None:
    everything = {name: 1.1 * slowdown for name, slowdown in SHAPE.slowdown.items()}
    old, new = make("old"), make("new", slowdown=everything, seed=10)
    assert compared(old, new).outcome is FigureOutcome.FINE
    comparison = compared(old, new, absolute=True)
    assert comparison.way is Way.ABSOLUTE
    assert comparison.outcome is FigureOutcome.REGRESSION
    assert {change.platform for change in comparison.changes} == set(everything)


def test_two_platforms_of_one_campaign_are_compared_block_by_block(make: Make) -> None:
    with read_store(make("one")) as store:
        comparison = diff_platforms(store, "runc", "gvisor", Thresholds())
        assert diff_platforms(store, "gvisor", "runc", Thresholds()).outcome is FigureOutcome.FINE
        with refused("podman did not take part"):
            diff_platforms(store, "runc", "podman", Thresholds())
        native = diff_platforms(store, "native", "gvisor", Thresholds())
    assert (comparison.way, comparison.outcome) == (Way.PLATFORMS, FigureOutcome.REGRESSION)
    [rate] = [change for change in comparison.changes if change.metric == "rate"]
    assert rate.interval is not None
    assert rate.interval.low < 1 - 1 / 1.2 < rate.interval.high
    assert (rate.n_old, rate.n_new) == (12, 12)
    assert {change.outcome for change in native.changes} == {FigureOutcome.REGRESSION}


def test_thresholds_are_the_margins_or_a_files(make: Make, tmp_path: Path) -> None:
    old, new = make("old"), make("new", 1.03, seed=11)
    file = tmp_path / "limits.toml"
    file.write_text('percent = 5.0\n[[rule]]\nmetric = "cpu-cost"\nplatform = "gv*"\npercent = 1.5\n')
    comparison = compared(old, new, load(file))
    assert outcomes(comparison)["gvisor", "cpu-cost"] is FigureOutcome.REGRESSION
    assert outcomes(comparison)["gvisor", "rate"] is FigureOutcome.FINE
    assert {change.threshold for change in comparison.changes} == {0.05, 0.015}
    ignored = Thresholds(rule=[Threshold(platform="gvisor", ignore=True)])
    assert {change.platform for change in compared(old, new, ignored).changes} == {"runc"}
    assert Thresholds().of("w", "m", "p", 0.02) == 0.02
    assert Thresholds(rule=[Threshold(percent=3.0), Threshold(metric="m", percent=4.0)]).of("w", "m", "p", 0.02) == 0.04


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("percent = -1.0", "percent: Input should be greater than 0"),
        ("percents = 1.0", "percents: there is no such key"),
        ("[[rule]]\nmetrics = 'x'", "rule.1.metrics: there is no such key"),
        ("percent = ", "is not TOML: Invalid value"),
        ("percent = " + 5000 * "1", "is not TOML: Exceeds the limit"),
        ("percent = " + 50_000 * "[", "is not TOML: "),
    ],
)
def test_a_file_of_thresholds_that_does_not_hold_is_refused(text: str, what: str, tmp_path: Path) -> None:
    file = tmp_path / "limits.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=what):
        load(file)


def test_what_only_one_side_has_and_what_differs_is_said(make: Make, tmp_path: Path) -> None:
    old = make("old", slowdown={"native": 1.0, "runc": 1.0, "podman": 1.0})
    record = fake_campaign.record(SHAPE)
    platforms = [
        platform_record.model_copy(update={"version": "99"}) if platform_record.name == "runc" else platform_record
        for platform_record in record.platforms
    ]
    with create_store(tmp_path / "new.tare", another(record, platforms=platforms)) as store:
        for _, trials in fake_campaign._blocks(SHAPE):
            store.commit_trials(trials)
    comparison = compared(old, tmp_path / "new.tare")
    assert comparison.absent == tuple(
        Absent(lack, "prime-slices", metric, platform)
        for metric in ("rate", "cpu-cost")
        for lack, platform in ((Lack.NEW, "podman"), (Lack.OLD, "gvisor"))
    )
    assert [(fact.fact, fact.new) for fact in comparison.facts] == [("runc", "99")]


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"params": {"more": 1}}, "have no figure in common$"),
        ({"revision": 2}, "have no figure in common: those of prime-slices are computed differently"),
    ],
    ids=["parameters", "revision"],
)
def test_what_was_done_or_computed_otherwise_is_not_compared(
    make: Make, tmp_path: Path, other: dict[str, object], why: str
) -> None:
    record = fake_campaign.record(SHAPE)
    [workload] = record.workloads
    changed = workload.model_copy(update=other)
    with create_store(tmp_path / "new.tare", another(record, workloads=[changed])) as store:
        for _, trials in fake_campaign._blocks(SHAPE):
            store.commit_trials(trials)
    with refused(why):
        compared(make("old"), tmp_path / "new.tare")


def test_what_has_no_common_baseline_is_refused(make: Make, tmp_path: Path) -> None:
    record = fake_campaign.record(SHAPE)
    for name, update in (("other", {"baseline": "runc"}), ("sequential", {"design": Design.SEQUENTIAL})):
        path = tmp_path / f"{name}.tare"
        with create_store(path, another(record, **update)) as store:
            for _, trials in fake_campaign._blocks(SHAPE):
                store.commit_trials(trials)
    old = make("old")
    with refused(r"old.tare is against native, other.tare against runc"):
        compared(old, tmp_path / "other.tare")
    with refused("no baseline beside each figure"):
        compared(old, tmp_path / "sequential.tare")
    assert compared(old, tmp_path / "sequential.tare", absolute=True).outcome is not FigureOutcome.REGRESSION


def test_samples_without_a_logarithm_and_those_that_never_vary_are_no_verdict(tmp_path: Path) -> None:
    shape = replace(SHAPE, blocks=3, rounds=1)
    paths = []
    for name, value in (("zero", 0.0), ("same", 5.0), ("alike", 5.0)):
        paths.append(tmp_path / f"{name}.tare")
        with create_store(paths[-1], another(fake_campaign.record(shape))) as store:
            for _, trials in fake_campaign._blocks(shape):
                store.commit_trials(
                    [replace(t, samples=tuple(replace(s, value=value) for s in t.samples)) for t in trials]
                )
    zero, same, alike = paths
    assert {change.gap for change in compared(zero, same).changes} == {Gap.UNFIT}
    assert {change.gap for change in compared(same, alike).changes} == {Gap.NO_SPREAD}
    assert compared(same, alike).outcome is FigureOutcome.OPEN


def test_of_a_fact_with_parts_those_that_differ_are_named() -> None:
    record = fake_campaign.record(fake_campaign.Shape(blocks=2))
    limits = {"nofile": 16_384, "pids": 4_096}
    fairness = {
        "runc": {"security": {"seccomp": "none", "caps": [1, 2]}, "limits": limits, "cpus": [0, 1]},
        "docker": {"security": {"seccomp": "default", "caps": [1, 2]}, "limits": limits, "cpus": None},
    }
    facts = platform_facts(record.model_copy(update={"fairness": fairness}), "runc", "docker")
    assert facts == (Fact("security", "seccomp=none", "seccomp=default"), Fact("cpus", "0,1", "unknown"))
