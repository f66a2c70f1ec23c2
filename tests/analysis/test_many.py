from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from refused import refused
from tare.analysis.comparisons.many import MAX_T_FROM, Method, all_pairs, holm
from tare.analysis.refusals import RefusalKind, RefusedAnswer

NAMES = ["native", "docker", "gvisor"]


def blocks(n: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(0, 1, (n, 1)) * 20 + rng.normal(0, 1, (n, 3)) + np.array([0.0, 0.2, 5.0])


def test_a_pair_is_the_paired_mean_difference_and_every_pair_is_there_once() -> None:
    values = blocks(15)
    compared = all_pairs(values, NAMES)
    assert [(pair.first, pair.second) for pair in compared.pairs] == [
        ("native", "docker"),
        ("native", "gvisor"),
        ("docker", "gvisor"),
    ]
    for pair, (i, j) in zip(compared.pairs, [(0, 1), (0, 2), (1, 2)], strict=True):
        theirs = stats.ttest_rel(values[:, i], values[:, j])
        assert pair.difference.point == pytest.approx(values[:, i].mean() - values[:, j].mean())
        assert pair.statistic == pytest.approx(theirs.statistic)
        assert pair.p >= theirs.pvalue * 0.5  # adjusted: never far below that of the pair alone
    assert (compared.method, compared.n_blocks, compared.n_left_out) == (Method.MAX_T, 15, 0)


@pytest.mark.parametrize("n", [8, 12, 13, 40])
@pytest.mark.parametrize("seed", range(6))
def test_an_interval_excludes_zero_exactly_when_p_is_below_five_percent(n: int, seed: int) -> None:
    for pair in all_pairs(blocks(n, seed), NAMES).pairs:
        assert (pair.p <= 0.05) == (pair.difference.low > 0 or pair.difference.high < 0)


@pytest.mark.parametrize("n", [8, 12, 30])
def test_p_is_the_very_level_at_which_the_interval_begins_to_hold_zero(n: int) -> None:
    values = blocks(n, 3) + np.array([0, 0.8, -4.0])
    half_a_step = 0.5 / 2_049
    edges = 0
    for at, pair in enumerate(all_pairs(values, NAMES).pairs):
        if pair.p < 0.9:
            inside = all_pairs(values, NAMES, level=1 - pair.p + half_a_step)
            beyond = all_pairs(values, NAMES, level=1 - pair.p - half_a_step)
            edges += inside.method is Method.MAX_T
            assert beyond.pairs[at].difference.low > 0 or beyond.pairs[at].difference.high < 0
            if inside.method is Method.MAX_T:
                assert inside.pairs[at].difference.low <= 0 <= inside.pairs[at].difference.high
    assert edges


def test_max_t_costs_less_than_bonferroni_where_pairs_have_much_in_common() -> None:
    compared = all_pairs(np.random.default_rng(3).normal(size=(30, 12)), [f"p{i}" for i in range(12)])
    bonferroni = stats.t.isf(0.025 / 66, 29)
    assert stats.t.isf(0.025, 29) < compared.critical < bonferroni


def test_two_platforms_alone_have_nearly_the_t_interval() -> None:
    compared = all_pairs(blocks(60)[:, :2], NAMES[:2])
    assert compared.critical == pytest.approx(stats.t.isf(0.025, 59), rel=0.05)


def test_the_same_data_give_the_same_answer() -> None:
    assert all_pairs(blocks(30), NAMES) == all_pairs(blocks(30), NAMES)


def test_few_blocks_fall_back_to_holm_and_bonferroni() -> None:
    values = blocks(MAX_T_FROM - 1)
    compared = all_pairs(values, NAMES)
    assert compared.method is Method.HOLM
    alone = [stats.ttest_rel(values[:, i], values[:, j]).pvalue for i, j in [(0, 1), (0, 2), (1, 2)]]
    assert [pair.p for pair in compared.pairs] == pytest.approx(holm(alone))
    assert compared.critical == pytest.approx(stats.t.isf(0.025 / 3, MAX_T_FROM - 2))


def test_a_level_that_the_signs_cannot_resolve_falls_back_too() -> None:
    assert all_pairs(blocks(8), NAMES, level=0.999).method is Method.HOLM
    assert all_pairs(blocks(13), NAMES, level=0.999).method is Method.MAX_T


@pytest.mark.parametrize("n", [5, 20])
def test_a_pair_uses_the_blocks_that_both_have_whatever_others_lack(n: int) -> None:
    values = blocks(n)
    values[3, 1] = np.nan
    compared = all_pairs(values, NAMES)
    assert (compared.n_blocks, compared.n_left_out) == (n - 1, 1)
    docker, gvisor, docker_gvisor = compared.pairs
    assert (docker.n_blocks, gvisor.n_blocks, docker_gvisor.n_blocks) == (n - 1, n, n - 1)
    assert gvisor.difference.point == pytest.approx((values[:, 0] - values[:, 2]).mean())
    assert gvisor.statistic == pytest.approx(stats.ttest_rel(values[:, 0], values[:, 2]).statistic)
    for pair in compared.pairs:
        error = (pair.difference.high - pair.difference.low) / 2 / pair.critical
        assert pair.statistic == pytest.approx(pair.difference.point / error)


def test_one_failure_of_one_platform_does_not_widen_a_pair_of_others() -> None:
    """Five blocks, one failure of docker's: native against gvisor was 44 % wider."""
    values = blocks(5)
    whole = all_pairs(values, NAMES).pairs[1]
    values[2, 1] = np.nan
    assert all_pairs(values, NAMES).pairs[1].difference == whole.difference


@pytest.mark.simulation
@pytest.mark.parametrize("n", [5, 7, 12, 20])
def test_with_holes_some_equal_pair_is_called_different_in_at_most_five_of_a_hundred(n: int) -> None:
    rng = np.random.default_rng(n)
    wrong, campaigns = 0, 500
    for _ in range(campaigns):
        values = rng.normal(0, 1, (n, 1)) + rng.normal(0, 1, (n, 4)) * [1, 1, 2, 3]
        values[rng.random((n, 4)) < 0.1] = np.nan
        wrong += any(pair.p <= 0.05 for pair in all_pairs(values, ["a", "b", "c", "d"]).pairs)
    assert wrong <= stats.binom.ppf(0.999, campaigns, 0.05)


def test_a_pair_without_an_answer_says_why_and_leaves_the_others_theirs() -> None:
    compared = all_pairs(np.where([[False, False, True]], np.nan, blocks(9)), NAMES)
    assert [(pair.first, pair.second) for pair in compared.pairs] == [("native", "docker")]
    assert compared.unanswered == (
        RefusedAnswer(RefusalKind.PAIR_TOO_FEW_BLOCKS, ("native", "gvisor"), {"blocks": 0}),
        RefusedAnswer(RefusalKind.PAIR_TOO_FEW_BLOCKS, ("docker", "gvisor"), {"blocks": 0}),
    )
    same = all_pairs(blocks(9)[:, [0, 0, 2]] + [0, 0.1, 0], NAMES)
    assert [(pair.first, pair.second) for pair in same.pairs] == [("native", "gvisor"), ("docker", "gvisor")]
    [none] = same.unanswered
    assert none == RefusedAnswer(RefusalKind.PAIR_NO_NOISE, ("native", "docker"), {"blocks": 9})


@pytest.mark.parametrize(
    ("values", "why"),
    [
        (np.ones(5), "an array of 1 dimensions"),
        (np.ones((5, 2)), "2 columns need 2 different names"),
        (np.empty((0, 3)), r"native and docker both have a value in 0 blocks"),
        (blocks(1), r"native and docker both have a value in 1 block,"),
        (np.where([[False, True, True]], np.nan, blocks(9)), r"native and docker both have a value in 0 blocks"),
        (np.where([[False, False, True]], -np.inf, blocks(9)), "9 values are infinite"),
        (blocks(9)[:, [0, 0, 0]], r"native and docker differ by the same in every block"),
        (blocks(9)[:, [0, 0, 0]] + [0, 0.1, 0], r"native and docker differ by the same in every block"),
    ],
)
def test_no_figure_where_there_is_no_answer(values: np.ndarray, why: str) -> None:
    with refused(why):
        all_pairs(values, NAMES)


def test_one_platform_has_no_pair() -> None:
    with refused("at least two platforms"):
        all_pairs(np.ones((5, 1)), ["native"])


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0, float("nan")])
def test_a_level_is_between_0_and_1(level: float) -> None:
    with refused("level"):
        all_pairs(blocks(9), NAMES, level=level)


def test_holm_by_hand() -> None:
    # 0.01 x 3; then the greater of that and 0.02 x 2; then that and 0.03 x 1
    assert holm([0.02, 0.01, 0.03]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("p", [[0.5, np.nan], [-0.1], [1.1]])
def test_holm_takes_probabilities_only(p: list[float]) -> None:
    with refused("between 0 and 1"):
        holm(p)
