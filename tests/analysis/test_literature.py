"""The studies' derived figures, computed again from their own tables; where they do not follow, that is a listed slip.

Every test collects what does not follow and holds it against the slips in ``literature/``: exactly those, no others.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from tare.analysis.overhead import variability_overhead
from tare.analysis.profile import checked, evaluate
from tare.analysis.scores import overhead_ratio, row_scores, trial_count_overhead

LITERATURE = Path(__file__).parents[2] / "literature"
#: How far a rounded figure may be from what it stands for, in its last decimal.
HALF = 0.5 + 1e-9


def read(name: str) -> dict[str, Any]:
    return tomllib.loads((LITERATURE / f"{name}.toml").read_text())


KARNA, LI, GIALLORENZO, PLAUTH = (read(name) for name in ("karna-2021", "li-2017", "giallorenzo-2021", "plauth-2017"))


def slips(study: dict[str, Any], where: str, *keys: str) -> set[tuple[Any, ...]]:
    """The listed, computed slips of one place of a study, each as these of its keys."""
    listed = [slip for slip in study["slip"] if slip["kind"] == "computed" and slip["where"] == where]
    return {tuple(_hashable(slip[key]) for key in keys) for slip in listed}


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


# Kärnä 2021

MEANS = {result["feature"]: result["mean"] for result in KARNA["result"]}
DECIMALS = {result["feature"]: result["decimals"] for result in KARNA["result"]}
PROFILE = checked(KARNA["profile"], "Kärnä 2021")
PRINTED = KARNA["printed"]


def sheets() -> dict[str, Any]:
    """Score sheets by platform, from Appendix A and the profile of tables 2 and 6."""
    figures = {
        platform: {feature: means[platform] for feature, means in MEANS.items() if platform in means}
        for platform in KARNA["source"]["platforms"]
    }
    return {sheet.platform: sheet for sheet in evaluate(PROFILE, figures, KARNA["source"]["baseline"])}


def test_karnas_scores_of_tables_7_and_8_follow_but_for_three() -> None:
    computed = sheets()
    wrong = {}
    for feature, printed in PRINTED["points"].items():
        for platform, score in printed.items():
            if computed[platform].points[feature] != score:
                wrong[feature, platform, score, computed[platform].points[feature]] = True
    keys = ("feature", "platform", "printed", "follows")
    assert wrong.keys() == slips(KARNA, "Table 7", *keys) | slips(KARNA, "Table 8", *keys)
    assert len(wrong) == 3


def test_karna_scored_exactly_what_was_measured() -> None:
    for platform, sheet in sheets().items():
        scored = {feature for feature, points in sheet.points.items() if points is not None}
        assert scored == {feature for feature, printed in PRINTED["points"].items() if platform in printed}


def test_karnas_sums_follow_from_the_printed_scores_and_move_with_the_slips() -> None:
    computed = sheets()
    for priority, sums in PRINTED["sums"].items():
        features = [feature.name for feature in PROFILE.feature if feature.priority == priority]
        for platform, printed in sums.items():
            assert sum(PRINTED["points"][feature].get(platform, 0) for feature in features) == printed
            moved = sum(
                slip["follows"] - slip["printed"]
                for slip in KARNA["slip"]
                if slip.get("platform") == platform and slip.get("feature") in features and "Table" in slip["where"]
            )
            assert computed[platform].sums[priority] == printed + moved


def test_karnas_baseline_column_and_the_means_in_the_text_are_those_of_appendix_a() -> None:
    wrong = {
        (row["feature"], "Metal", row["figure"])
        for row in KARNA["table_6"]["baseline"]
        if not same(row, MEANS[row["feature"]]["Metal"], DECIMALS[row["feature"]])
    }
    assert wrong == slips(KARNA, "Table 6", "feature", "platform", "printed")
    wrong = {
        (row["feature"], row["platform"], row["figure"])
        for row in KARNA["statements"]["mean"]
        if not same(row, MEANS[row["feature"]][row["platform"]], DECIMALS[row["feature"]])
    }
    assert wrong == slips(KARNA, "section 6.1", "feature", "platform", "printed")


def same(row: dict[str, Any], mean: float, decimals: int) -> bool:
    """Whether two roundings of one figure, each to its own decimals, can both be right."""
    coarser = min(row["decimals"], decimals)
    return abs(row["figure"] - mean) <= HALF * 10.0**-coarser


def test_karnas_percentages_in_the_text_all_follow() -> None:
    statements = KARNA["statements"]["change"]
    assert len(statements) == 23
    for row in statements:
        error = 0.5 * 10.0 ** -DECIMALS[row["feature"]]
        figure, base = (MEANS[row["feature"]][row[which]] for which in ("platform", "than"))
        least = 100 * ((figure - error) / (base + error) - 1)
        most = 100 * ((figure + error) / (base - error) - 1)
        assert least - HALF <= row["percent"] <= most + HALF, row


def test_kvm_lost_points_in_more_than_boot_time() -> None:
    lost = {
        feature
        for feature, printed in PRINTED["points"].items()
        for other in ("gVisor", "Firecracker")
        if feature in {f.name for f in PROFILE.feature if f.priority == "high"} and printed["KVM"] < printed[other]
    }
    assert lost == {"Boot time", "File read", "File write"}


# Li 2017

IN_FULL = LI["figure_2"]
BASE = LI["source"]["baseline"]


def test_lis_table_2_is_its_data_sheet_rounded_but_for_one_figure() -> None:
    wrong = {
        (row["platform"], figure, row[figure], round(IN_FULL[figure][row["platform"]], 3))
        for row in LI["table_2"]
        for figure in ("average", "sd")
        if abs(row[figure] - IN_FULL[figure][row["platform"]]) > HALF * 1e-3
    }
    assert wrong == slips(LI, "Table 2", "platform", "figure", "printed", "follows")


@pytest.mark.parametrize("platform", ["Container", "Virtual machine"])
def test_lis_overheads_and_variability_overheads_follow(platform: str) -> None:
    averages, deviations = IN_FULL["average"], IN_FULL["sd"]
    overhead = overhead_ratio(averages[platform], averages[BASE])
    assert 100 * overhead == pytest.approx(IN_FULL["overhead"][platform], rel=1e-8)
    variability = variability_overhead(deviations[platform], deviations[BASE])
    assert variability is not None
    assert 100 * variability == pytest.approx(IN_FULL["variability_overhead"][platform], rel=1e-8)


@pytest.mark.parametrize("platform", ["Container", "Virtual machine"])
def test_lis_overheads_from_numbers_of_trials_follow(platform: str) -> None:
    trials = LI["trials"]
    found = 100 * trial_count_overhead(trials["count"][platform], trials["count"][BASE])
    assert round(found, trials["decimals"][platform]) == trials["overhead"][platform]


def test_li_ignores_that_the_container_copies_faster_than_the_machine() -> None:
    copy = LI["copy"]
    measured, base = copy["mean"]["Container"], copy["mean"][BASE]
    assert 0 < overhead_ratio(measured, base) < copy["ignored_below"]
    assert overhead_ratio(measured, base, ignored_below=copy["ignored_below"]) == copy["overhead"]["Container"]


# Giallorenzo 2021


def percent(figure: int, platform: str, column: str) -> float:
    table = GIALLORENZO[f"figure_{figure}"]
    if platform == GIALLORENZO["source"]["baseline"]:
        return 100.0
    return float(table["percent"][platform][table["columns"].index(column)])


def unlike() -> Iterator[tuple[str, str, Any, float]]:
    """What the text says of Figures 4 and 5 and they do not: column, platform, the text's per cent, theirs."""
    statements = GIALLORENZO["statements"]
    for row in [*statements["change"], *statements["between"]]:
        change = 100 * (percent(row["figure"], row["platform"], row["column"]) /
                        percent(row["figure"], row["than"], row["column"]) - 1)  # fmt: skip
        said = row["percent"]
        low, high = said if isinstance(said, list) else (said, said)
        # The figures have one decimal; the text has none, but where it says 2.2 and 2.5.
        slack = 2.0 if row.get("about") else HALF * (1 if low == round(low) else 0.1)
        far = HALF * (1 if high == round(high) else 0.1) if high != low else slack
        if not low - slack <= change <= high + far:
            yield row["column"], row["platform"], _hashable(said), round(change, 1)


def test_giallorenzos_sentences_about_figures_4_and_5_follow_but_for_seven() -> None:
    keys = ("column", "platform", "printed", "follows")
    wrong = set(unlike())
    results = slips(GIALLORENZO, "section Results, Kcbench", *keys)
    assert wrong == results | slips(GIALLORENZO, "section Results, Bonnie++", *keys)
    assert len(wrong) == 7


def test_giallorenzos_deviations_above_5_percent_are_not_vmwares_alone() -> None:
    said, figure = GIALLORENZO["rsd_statement"], GIALLORENZO["figure_5"]
    wrong = {
        (column, platform, said["above"], value)
        for platform, row in figure["rsd"].items()
        for column, value in zip(figure["columns"], row, strict=True)
        if value > said["above"] and platform not in said["only"]
    }
    assert wrong == slips(GIALLORENZO, "section Threats to Validity", "column", "platform", "printed", "follows")


def test_giallorenzos_row_score_by_its_formula_on_a_table_of_the_study() -> None:
    # The tables of popularity that the study scores are pictures: this is their formula, not their result.
    table = GIALLORENZO["figure_4"]["percent"]
    found = dict(zip(table, row_scores(list(table.values())), strict=True))
    columns = list(zip(*table.values(), strict=True))
    for platform, row in table.items():
        written_out = sum(1 / len(columns) * value / max(column) for value, column in zip(row, columns, strict=True))
        assert found[platform] == pytest.approx(written_out)
    assert max(found, key=found.get) == "Podman"  # type: ignore[arg-type]


# Plauth 2017


def test_plauths_degrees_of_freedom_are_no_one_way_analysis_of_thirty_runs() -> None:
    wrong = set()
    for row in PLAUTH["anova"]:
        assert stats.f.sf(row["f"], row["df_between"], row["df_within"]) < row["p_below"]
        values = row["df_within"] + row["df_between"] + 1
        if values % row["runs"]:
            wrong.add((row["what"], row["df_within"]))
    listed = {(slip["what"], slip["printed"]) for slip in PLAUTH["slip"]}
    assert wrong == listed
    assert len(wrong) == 2


# What every file tells


@pytest.mark.parametrize("study", [KARNA, LI, GIALLORENZO, PLAUTH], ids=lambda study: study["source"]["authors"])
def test_every_slip_is_of_a_known_kind_and_says_where_and_why(study: dict[str, Any]) -> None:
    for slip in study["slip"]:
        assert slip["kind"] in {"computed", "words"}
        assert slip["where"]
        assert slip["why"]
        assert {"printed", "follows"} <= slip.keys() or slip["kind"] == "words"
    assert all(entry["what"] and entry["why"] for entry in study["unread"])


def test_no_computed_slip_lies_where_no_test_looks() -> None:
    looked_at = {
        "Table 7", "Table 8", "Table 6", "section 6.1", "Table 2", "section Results, Kcbench",
        "section Results, Bonnie++", "section Threats to Validity", "section 6.2, Static HTTP Server",
        "section 6.2, Key-Value Store",
    }  # fmt: skip
    for study in (KARNA, LI, GIALLORENZO, PLAUTH):
        assert {slip["where"] for slip in study["slip"] if slip["kind"] == "computed"} <= looked_at


def test_every_slip_is_told_in_the_documentation() -> None:
    text = " ".join((LITERATURE.parent / "docs" / "literature.md").read_text().split())
    for study in (KARNA, LI, GIALLORENZO, PLAUTH):
        for slip in study["slip"]:
            assert slip["where"].removeprefix("section ").split(",")[0] in text
            if slip["kind"] == "computed" and not isinstance(slip["printed"], list):
                assert f"{slip['printed']:g}".removeprefix("-") in text.replace(",", "")
