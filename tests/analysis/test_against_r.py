"""The same data through R: two programs written apart from each other agree to 1e-6, or this fails (so without R)."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

from tare.analysis.comparisons.many import Method, all_pairs, holm
from tare.analysis.comparisons.unpaired import games_howell, kruskal_wallis, one_way, rank_pairs, tukey, welch
from tare.analysis.quality.variance import components
from tare.estimates.hodges_lehmann import hodges_lehmann
from tare.estimates.intervals import t_interval
from tare.estimates.moderated import prior_of, squeezed, trigamma_inverse, unbiased_log
from tare.estimates.random_effects import Between, Hosts, discoveries, fit, shrunk, standardised
from tare.host import processes

SCRIPT = Path(__file__).with_name("against_r.R")


def _data() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(404)
    shared = rng.normal(0, 3, 14)
    return {
        "group.a": rng.normal(10, 1, 9),
        "group.b": rng.normal(11, 2, 14),
        "group.c": rng.lognormal(2.4, 0.3, 6),
        "group.d": rng.normal(10.2, 0.5, 11),
        "paired.x": 20 + shared + rng.normal(0, 1, 14),
        "paired.y": 21 + shared + rng.normal(0, 1.5, 14),
        "tied.a": rng.integers(1, 5, 8).astype(float),
        "tied.b": rng.integers(2, 6, 7).astype(float),
        # Of variances that differ by themselves too: a scaled inverse chi-squared of 6 degrees of freedom.
        "variances": rng.chisquare(2, 40) / 2 * 0.04 * 6 / rng.chisquare(6, 40),
        "inverted": np.array([1e-4, 0.05, 0.7, 3.0, 40.0]),
        **_hosts(),
        "p": np.array([0.01, 0.04, 0.03, 0.005, 0.2, 0.9, 0.04]),
    }


def _hosts() -> dict[str, np.ndarray]:
    """Effects of hosts with their variances: hosts that differ, ones that differ by chance alone, and two."""
    rng = np.random.default_rng(43)
    data = {}
    for name, count, spread in (("alike", 8, 0.0), ("apart", 20, 0.03), ("two", 2, 0.05)):
        variances = rng.uniform(0.5, 3.0, count) * 1e-4
        data[f"hosts.{name}.v"] = variances
        data[f"hosts.{name}.y"] = rng.normal(0.05, spread, count) + rng.normal(0, 1, count) * np.sqrt(variances)
    return data


DATA = _data()
GROUPS = {name: values for name, values in DATA.items() if name.startswith("group")}


@pytest.fixture(scope="module")
def r() -> dict[str, list[float]]:
    lines = [" ".join([name, *map(repr, values.tolist())]) for name, values in DATA.items()]
    done = processes.run(["Rscript", "--vanilla", str(SCRIPT)], stdin=("\n".join(lines) + "\n").encode()).require()
    return {words[0]: [float(word) for word in words[1:]] for line in done.text.splitlines() if (words := line.split())}


def near(values: object) -> object:
    return pytest.approx(values, rel=1e-6, abs=1e-9)


def test_analysis_of_variance_is_that_of_aov(r) -> None:
    variances = one_way(GROUPS)
    assert [variances.statistic, variances.df_between, variances.df_within, variances.p] == near(r["aov"])


@pytest.mark.parametrize(("level", "name"), [(0.95, "tukey"), (0.90, "tukey.90")])
def test_tukey_is_that_of_tukeyhsd(r, level: float, name: str) -> None:
    pairs = tukey(GROUPS, level=level)
    theirs = np.array(r[name]).reshape(-1, 4)  # the other way round: second minus first
    assert [(pair.first, pair.second) for pair in pairs] == list(itertools.combinations(GROUPS, 2))
    ours = [
        (-pair.difference.point, -pair.difference.high, -pair.difference.low, pair.p)
        for pair in pairs
        if pair.difference is not None
    ]
    assert np.array(ours) == near(theirs)


def test_welchs_analysis_of_variance_is_that_of_oneway_test(r) -> None:
    variances = welch(GROUPS)
    assert [variances.statistic, variances.df_between, variances.df_within, variances.p] == near(r["oneway"])


def test_kruskal_wallis_is_that_of_kruskal_test_with_and_without_ties(r) -> None:
    ranks = kruskal_wallis(GROUPS)
    assert [ranks.statistic, ranks.df_between, ranks.p] == near(r["kruskal"])
    tied = kruskal_wallis({name: values for name, values in DATA.items() if name.startswith("tied")})
    assert [tied.statistic, tied.df_between, tied.p] == near(r["kruskal.tied"])


def test_rank_pairs_are_those_of_pairwise_wilcox_test(r) -> None:
    assert [pair.p for pair in rank_pairs(GROUPS)] == near(r["rank.pairs"])


def test_the_t_interval_is_that_of_t_test(r) -> None:
    mean = t_interval(DATA["group.a"], 0.95)
    assert [mean.point, mean.low, mean.high] == near(r["t.one"])
    paired = t_interval(DATA["paired.x"] - DATA["paired.y"], 0.90)
    assert [paired.point, paired.low, paired.high] == near(r["t.paired"][:3])


def test_games_howell_of_two_groups_is_welchs_t_test(r) -> None:
    (pair,) = games_howell({name: GROUPS[name] for name in ("group.a", "group.b")})
    assert pair.difference is not None
    ours = [pair.difference.point, pair.difference.low, pair.difference.high, pair.p]
    assert ours == near(r["t.welch"])


def test_the_studentised_range_that_games_howell_stands_on_is_that_of_ptukey(r) -> None:
    range_of = stats.studentized_range
    assert [range_of.sf(3.5, 6, 11.25), range_of.ppf(0.95, 6, 11.25)] == near(r["ptukey"])


@pytest.mark.parametrize("name", ["group.a", "group.c", "paired.x"])
def test_hodges_lehmann_is_that_of_wilcox_test(r, name: str) -> None:
    # R bisects for the centre of its own interval only where there are ties; without, it takes the median of averages.
    assert hodges_lehmann(DATA[name]) == near(r[f"hodges.{name}"][0])


def test_holm_is_that_of_p_adjust(r) -> None:
    assert holm(DATA["p"]) == near(r["holm"])


def test_moderated_variances_are_those_of_limma(r) -> None:
    variances = DATA["variances"]
    logs, dfs = unbiased_log(variances, np.full(variances.size, 2.0)), np.full(variances.size, 2.0)
    beyond_chance = logs.var(ddof=1) - special.polygamma(1, 1.0)
    prior, df = prior_of(np.array([logs.mean()]), np.array([beyond_chance]))
    assert [float(prior[0]), float(df[0])] == near(r["prior"])
    assert squeezed(variances, dfs, prior, df) == near(r["squeezed"])
    assert trigamma_inverse(DATA["inverted"]) == near(r["trigamma.inverse"])


def test_all_pairs_of_two_platforms_in_few_blocks_are_a_paired_t_test(r) -> None:
    few = np.column_stack((DATA["paired.x"], DATA["paired.y"]))[:7]
    compared = all_pairs(few, ["x", "y"], level=0.9)
    alone = t_interval(few[:, 0] - few[:, 1], 0.9)
    assert compared.method is Method.HOLM
    assert compared.pairs[0].difference.low == pytest.approx(alone.low)
    many = all_pairs(np.column_stack((DATA["paired.x"], DATA["paired.y"])), ["x", "y"], level=0.9).pairs[0]
    assert many.statistic == near(r["t.paired"][3])
    assert many.p == pytest.approx(r["t.paired"][4], abs=0.02)  # signs instead of a normal distribution


def test_mean_squares_of_the_components_are_those_of_aov(r) -> None:
    parts = components(list(GROUPS.values()))
    assert [parts.mean_square_between, parts.mean_square_within] == near(r["mean.squares"])


@pytest.mark.parametrize("name", ["alike", "apart", "two"])
@pytest.mark.parametrize(("method", "theirs"), [(Between.REML, "REML"), (Between.PAULE_MANDEL, "PM")])
def test_merged_hosts_are_those_of_metafor(r, name: str, method: Between, theirs: str) -> None:
    hosts = Hosts.of(DATA[f"hosts.{name}.y"], DATA[f"hosts.{name}.v"])
    plain = fit(hosts, method, at_least_one=False)
    ends = [*plain.interval(0.9), *plain.classic_prediction(0.9)]
    ours = np.concatenate([plain.tau2, plain.mean, plain.error, *ends])
    assert ours == near(r[f"fleet.{name}.{theirs}"])
    assert fit(hosts, method).error == near(r[f"adhoc.{name}.{theirs}"])
    assert np.concatenate([part[0] for part in shrunk(hosts, plain)]) == near(r[f"blup.{name}.{theirs}"])
    assert standardised(hosts, plain)[0] == near(r[f"deviation.{name}.{theirs}"])


def test_discoveries_are_those_of_p_adjust(r) -> None:
    for rate in (0.01, 0.02, 0.05, 0.1, 0.95):
        assert discoveries(DATA["p"], rate)[0].tolist() == [p <= rate for p in r["bh"]]
