"""Many verdicts at once: what chance gives of them, and which survive."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tare.analysis.comparisons.multiplicity import Multiplicity, corrected
from tare.analysis.results import Description, MetricResult, PlatformResult, TrialCounts
from tare.analysis.rule import intervals_of, judge
from tare.analysis.verdicts import Question, Reason, Verdict, VerdictKind
from tare.estimates.intervals import Interval
from tare.estimates.looks import Look, Looks
from tare.estimates.overhead import overhead, ratio
from tare.model import Direction

MARGIN = 0.02
EVERYTHING = {("w", f"m{number}") for number in range(20)}


def _platform(name, logs, direction):
    looks = Looks(Look.over_blocks(logs))
    wide = looks.typical.interval(0.95)
    return PlatformResult(
        name,
        logs.size,
        0,
        TrialCounts(),
        Description(logs.size, None, None, None),
        ratio=ratio(wide),
        overhead=overhead(wide, direction),
        looks=looks,
        verdict=judge(Question("m", direction, MARGIN), *intervals_of(looks)),
    )


def _report(table, direction=Direction.LOWER):
    """A result a metric from log ratios [metric, platform, block]; with the baseline, which has none."""
    nothing = Description(1, 1.0, None, 1.0)
    baseline = PlatformResult(
        "native", 1, 0, TrialCounts(), nothing, verdict=Verdict(VerdictKind.BASELINE, Reason.BASELINE)
    )
    return [
        MetricResult(
            "w",
            f"m{number}",
            "ms",
            direction,
            MARGIN,
            None,
            (baseline, *(_platform(f"p{at}", logs, direction) for at, logs in enumerate(rows))),
        )
        for number, rows in enumerate(table)
    ]


def _simulated(n_blocks, deviations, truth=0.0, reports=40, seed=1):
    rng = np.random.default_rng(seed)
    scale = np.asarray(deviations)[:, None, None]
    for _ in range(reports):
        table = rng.normal(0, 1, (scale.size, 10, n_blocks)) * scale
        table[:, 0] += truth
        yield corrected(_report(table), EVERYTHING)


@pytest.mark.simulation
@pytest.mark.parametrize("n_blocks", [3, 6])
def test_of_equal_platforms_holm_leaves_few_reports_with_a_verdict_that_is_wrong(n_blocks):
    """Twenty metrics and ten platforms that equal the baseline: one verdict at least in most reports, by chance."""
    summaries = [together for _, together in _simulated(n_blocks, [0.2] * 20)]
    assert sum(summary.n_different > 0 for summary in summaries) > 0.7 * len(summaries)
    assert sum(summary.n_different_sure > 0 for summary in summaries) <= stats.binom.ppf(0.999, len(summaries), 0.05)


@pytest.mark.simulation
def test_true_doublings_survive():
    survived = Counter()
    for results, _ in _simulated(6, [0.1] * 20, truth=math.log(2), reports=10):
        survived.update(result.platforms[1].survives_holm for result in results)
    assert survived[True] >= 0.96 * survived.total()


@pytest.mark.simulation
@pytest.mark.parametrize("n_blocks", [3, 6, 10])
def test_what_chance_gives_is_told_within_a_factor_of_one_and_a_half(n_blocks):
    summaries = [summary for _, summary in _simulated(n_blocks, np.geomspace(0.01, 0.3, 20), reports=60, seed=2)]
    different, expected = (
        sum(summary.n_different for summary in summaries),
        sum(summary.by_chance for summary in summaries),
    )
    assert different >= 20
    assert 1 / 1.5 < expected / different < 1.5


def test_where_noise_is_far_below_the_margin_chance_gives_nothing():
    [(_, summary)] = _simulated(10, [0.001] * 20, reports=1)
    assert summary.by_chance < 0.001
    assert (summary.n_rows, summary.n_different) == (200, 0)
    assert summary.n_equivalent == summary.n_equivalent_sure == 200


@pytest.mark.parametrize("direction", list(Direction))
def test_p_is_that_of_the_margins_end_adjusted_for_all_rows(direction):
    logs = np.random.default_rng(4).normal(0.05, 0.01, (1, 3, 8))
    logs[0, 1] -= 0.05  # equal
    results, together = corrected(_report(logs, direction), EVERYTHING)
    _, different, equivalent, other = results[0].platforms
    alone = [
        sum(stats.ttest_1samp(logs[0, at], end * math.log1p(MARGIN), alternative="greater").pvalue for end in (1, -1))
        for at in (0, 2)
    ]
    # Holm over three rows, of which the equal one has the greatest p.
    assert min(different.p, other.p) == pytest.approx(3 * min(alone))
    assert max(different.p, other.p) == pytest.approx(max(3 * min(alone), 2 * max(alone)))
    low = stats.ttest_1samp(logs[0, 1], math.log1p(-MARGIN), alternative="greater").pvalue
    high = stats.ttest_1samp(logs[0, 1], math.log1p(MARGIN), alternative="less").pvalue
    assert equivalent.p == pytest.approx(3 * max(low, high))
    assert equivalent.survives_holm
    assert together == Multiplicity(3, 2, pytest.approx(together.by_chance), 2, 1, 1)


def test_what_could_have_no_verdict_is_not_counted_and_no_spread_is_no_proof():
    [result] = _report(np.full((1, 2, 4), 0.3))
    closed = PlatformResult(
        "shut", 4, 0, TrialCounts(), Description(4, None, None, None), ratio=Interval(1.2, 1.1, 1.3),
        verdict=Verdict(VerdictKind.INVALID, Reason.DRIFT),
    )  # fmt: skip
    amended, together = corrected([replace(result, platforms=(*result.platforms, closed))], EVERYTHING)
    assert together.n_rows == 2
    kinds = [(entry.verdict.kind, entry.survives_holm) for entry in amended[0].platforms]
    assert kinds == [
        (VerdictKind.BASELINE, None),
        (VerdictKind.SLOWER, False),
        (VerdictKind.SLOWER, False),
        (VerdictKind.INVALID, None),
    ]


def test_a_report_without_figures_says_nothing():
    assert corrected([], EVERYTHING) == ([], Multiplicity(0, 0, 0, 0, 0, 0))


def test_only_headlines_and_costs_are_corrected():
    """What else a workload prints says the same in other words, and would make each of them weaker."""
    table = np.random.default_rng(6).normal(0.05, 0.01, (20, 2, 4))
    few, together = corrected(_report(table), {("w", "m0"), ("w", "m1")})
    every, _ = corrected(_report(table), EVERYTHING)
    assert together.n_rows == 4
    assert few[0].platforms[1].p < every[0].platforms[1].p
    assert (few[2].platforms[1].p, few[2].platforms[1].survives_holm) == (None, None)
