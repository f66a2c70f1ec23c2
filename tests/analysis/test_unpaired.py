from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from refused import refused
from tare.analysis.comparisons.unpaired import games_howell, kruskal_wallis, one_way, rank_pairs, tukey, welch

# Agreement with R's aov, TukeyHSD, oneway.test, kruskal.test and pairwise.wilcox.test: test_against_r.py
RNG = np.random.default_rng(17)
GROUPS = {
    "docker": RNG.normal(10, 1, 8),
    "gvisor": RNG.normal(12, 3, 12),
    "native": RNG.normal(10, 0.5, 10),
}


@pytest.mark.thorough
@pytest.mark.parametrize(("ours", "equal"), [(tukey, True), (games_howell, False)])
def test_pairs_are_those_of_scipy(ours, equal: bool) -> None:
    theirs = stats.tukey_hsd(*GROUPS.values(), equal_var=equal)
    ends = theirs.confidence_interval(0.95)
    for pair, (i, j) in zip(ours(GROUPS), [(0, 1), (0, 2), (1, 2)], strict=True):
        assert pair.difference is not None
        figures = (pair.difference.point, pair.difference.low, pair.difference.high, pair.p)
        assert figures == pytest.approx((theirs.statistic[i, j], ends.low[i, j], ends.high[i, j], theirs.pvalue[i, j]))


def test_welch_gives_the_degrees_of_freedom_of_satterthwaite_for_two_groups() -> None:
    two = {name: GROUPS[name] for name in ("docker", "gvisor")}
    theirs = stats.ttest_ind(*two.values(), equal_var=False)
    variances = welch(two)
    assert variances.df_within == pytest.approx(theirs.df)
    assert (variances.statistic, variances.p) == pytest.approx((theirs.statistic**2, theirs.pvalue))


EVERY = [one_way, welch, kruskal_wallis, tukey, games_howell, rank_pairs]


@pytest.mark.parametrize("test", EVERY)
@pytest.mark.parametrize(
    ("groups", "why"),
    [
        ({}, "at least two groups"),
        ({"a": [1.0, 2.0]}, "at least two groups"),
        ({"a": [1.0, 2.0, 3.0, 4.0], "b": [1.0]}, "b: 1 value, at least"),
        ({"a": [1.0, 2.0, 3.0, 4.0], "b": []}, "b: 0 values, at least"),
        ({"a": [1.0, 2.0, 3.0, np.nan], "b": [1.0, 2.0, 3.0, 4.0]}, "a: 1 of 4 values missing or not finite"),
        ({"a": [1.0, 2.0, 3.0, 4.0], "b": [1.0, 2.0, np.inf, 4.0]}, "b: 1 of 4 values missing or not finite"),
        ({"a": [3.0] * 4, "b": [3.0] * 4}, "all the same"),
        ({"a": [0.0] * 4, "b": [0.0] * 4}, "all the same"),
    ],
)
def test_no_figure_where_there_is_no_answer(test, groups, why: str) -> None:
    with refused(why):
        test(groups)


@pytest.mark.parametrize("test", [one_way, tukey])
def test_groups_that_are_constant_and_differ_have_no_noise_to_compare_with(test) -> None:
    with refused("no noise to compare with"):
        test({"a": [0.1] * 3, "b": [0.2] * 3})


@pytest.mark.parametrize("test", [welch, games_howell])
def test_a_constant_group_has_no_variance_of_its_own(test) -> None:
    with refused("b: 4 values, all the same"):
        test({"a": [1.0, 2.0, 3.0, 4.0], "b": [5.0] * 4})


def test_ranks_take_constant_groups() -> None:
    groups = {"a": [1.0] * 5, "b": [1.0] * 5, "c": [2.0] * 5}
    assert kruskal_wallis(groups).p < 0.01
    assert [pair.p < 0.05 for pair in rank_pairs(groups)] == [False, True, True]


def test_equal_means_have_a_p_of_one() -> None:
    groups = {"a": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 3.0], "b": [1.0, 1.0, 1.0, 1.0, 0.0, 2.0, 3.0]}
    assert one_way(groups).p == pytest.approx(1)
