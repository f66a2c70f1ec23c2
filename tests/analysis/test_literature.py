"""The studies' derived figures, computed again from their own tables; where they do not follow, that is a listed slip.

`tare.features.studies.analysis.published` computes them for ``tare literature --check``; what is found wrong must be
exactly the slips that the studies' files list, and the numbers of statements here say that none was lost.
"""

from __future__ import annotations

from collections import Counter
from importlib.resources import files

import pytest

from tare.errors import UsageError
from tare.features.studies.analysis.profile import checked, evaluate
from tare.features.studies.analysis.published import PublishedLine, Statement, check
from tare.features.studies.analysis.scores import row_scores
from tare.features.studies.literature import Study, load, names, studies
from tare.features.studies.literature.library import parse

KARNA, LI, GIALLORENZO, PLAUTH, ANJALI = (
    load(name) for name in ("karna-2021", "li-2017", "giallorenzo-2021", "plauth-2017", "anjali-2020")
)


def wrong(study: Study) -> list[PublishedLine]:
    return [line for line in check(study).lines if line.wrong]


def kinds(study: Study) -> Counter[str]:
    return Counter(
        line.of if line.what is Statement.DERIVED else f"{line.of} {line.what}".strip() for line in check(study).lines
    )


def test_there_are_five_studies() -> None:
    assert names() == ("anjali-2020", "giallorenzo-2021", "karna-2021", "li-2017", "plauth-2017")


@pytest.mark.parametrize("study", studies(), ids=names())
def test_exactly_the_listed_slips_are_found(study: Study) -> None:
    checked = check(study)
    assert checked.unlisted == ()
    assert checked.unfound == ()
    assert checked.good
    assert len(wrong(study)) == sum(slip.kind == "computed" for slip in study.slip) > 0


@pytest.mark.parametrize("study", studies(), ids=names())
def test_a_slip_that_is_not_listed_is_found_and_one_too_many_too(study: Study) -> None:
    computed = [slip for slip in study.slip if slip.kind == "computed"]
    others = [slip for slip in study.slip if slip.kind == "words"]
    fewer = study.model_copy(update={"slip": [*others, *computed[1:]]})
    (line,) = check(fewer).unlisted
    assert line.is_slip(computed[0])
    extra = computed[0].model_copy(update={"where": "Table 99"})
    assert check(study.model_copy(update={"slip": [*study.slip, extra]})).unfound == (extra,)
    assert not check(fewer).good


def test_every_kind_of_statement_is_computed() -> None:
    assert kinds(KARNA) == {"value again": 26, "sd again": 7, "change": 30, "score": 43, "sum": 8}
    assert kinds(LI) == {
        "value again": 3, "sd again": 3, "overhead": 4, "variability overhead": 2, "trial-count overhead": 2,
    }  # fmt: skip
    assert kinds(GIALLORENZO) == {"change": 32, "deviation": 40}
    assert kinds(PLAUTH) == {"p": 2, "degrees": 2}
    assert kinds(ANJALI) == {"value again": 5, "share": 4, "sum": 1, "quotient": 1}


@pytest.mark.parametrize(
    ("study", "part", "entry", "change"),
    [
        (KARNA, "change", 0, {"percent": -21.0}),
        (KARNA, "again", 0, {"value": 58.6}),
        (GIALLORENZO, "change", 1, {"percent": 2.4}),
        (LI, "derived", 0, {"value": 2.0023577}),
        (LI, "derived", 2, {"value": 54.3}),
        (LI, "derived", 5, {"ignored_below": 0.0, "decimals": 1}),
        (LI, "derived", 7, {"value": 32.66}),
        (ANJALI, "derived", 0, {"value": 7.84}),
        (ANJALI, "derived", 4, {"parts": [541.0, 648.0]}),
        (ANJALI, "derived", 5, {"value": 63.0}),
    ],
)
def test_a_statement_that_is_a_little_off_does_not_follow(study: Study, part: str, entry: int, change: dict) -> None:
    entries = list(getattr(study.text, part))
    entries[entry] = entries[entry].model_copy(update=change)
    altered = study.model_copy(update={"text": study.text.model_copy(update={part: entries})})
    assert len(wrong(altered)) == len(wrong(study)) + 1


def test_karna_scored_exactly_what_was_measured() -> None:
    assert KARNA.profile is not None
    profile = checked(KARNA.profile, "Kärnä 2021")
    figures = {
        platform: {
            feature.name: KARNA.metric(feature.name).value[platform]
            for feature in profile.feature
            if platform in KARNA.metric(feature.name).value
        }
        for platform in KARNA.source.platforms
    }
    printed = {name: row for table in KARNA.points.values() for name, row in table.items()}
    for sheet in evaluate(profile, figures, KARNA.source.baseline):
        scored = {feature for feature, points in sheet.points.items() if points is not None}
        assert scored == {feature for feature, row in printed.items() if sheet.platform in row}


def test_karnas_sums_move_with_the_slips() -> None:
    """What docs/literature.md says that the sums would be."""
    moved = Counter(KARNA.sums["high"]) + Counter(KARNA.sums["low"])
    for slip in KARNA.slip:
        if slip.kind == "computed" and slip.where in KARNA.points:
            moved[slip.platform] += slip.follows - slip.printed
    assert moved["KVM"] == 19 + 11
    assert moved["Firecracker"] == 20 + 2


def test_kvm_lost_points_in_more_than_boot_time() -> None:
    low_level = KARNA.points["Table 7"]
    lost = {
        feature for feature, row in low_level.items() for other in ("gVisor", "Firecracker") if row["KVM"] < row[other]
    }
    assert lost == {"Boot time", "File read", "File write"}


def test_giallorenzos_row_score_by_its_formula_on_a_table_of_the_study() -> None:
    # The tables of popularity that the study scores are pictures: this is their formula, not their result.
    columns = [figure for figure in GIALLORENZO.figure if figure.where == "Figure 4"]
    table = {name: [column.value[name] for column in columns] for name in columns[0].value}
    scores = dict(zip(table, row_scores(list(table.values())), strict=True))
    for platform, row in table.items():
        most = [max(column.value.values()) for column in columns]
        written_out = sum(1 / len(columns) * value / best for value, best in zip(row, most, strict=True))
        assert scores[platform] == pytest.approx(written_out)
    assert max(scores, key=scores.get) == "Podman"  # type: ignore[arg-type]


def test_percent_of_the_baseline() -> None:
    assert KARNA.percent("CPU events", "KVM") == pytest.approx(100 * 455.36 / 499.35)
    assert KARNA.percent("Pipeline turnover", "gVisor") is None
    assert KARNA.percent("Database read, concurrency 20", "Docker") is None, "the metal's is not printed"
    assert GIALLORENZO.percent("Dhrystone", "Xen") == 92.3, "it is printed in per cent of bare metal"
    assert ANJALI.percent("Round-trip time", "gVisor") == pytest.approx(100 * 319 / 146)


FILE = (files("tare.features.studies.literature") / "studies" / "karna-2021.toml").read_text()


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("[source]", "[source", "is not TOML"),
        ('unit = "s"\n', "", "right: figure.1.unit: Field required"),
        ('unit = "s"\n', 'unit = "s"\ncolour = "red"\n', "right: figure.1.colour: there is no such key"),
        ('metric = "CPU events"\nwhere', 'metric = "Boot time"\nwhere', "a metric has two entries"),
        ("Docker = 0.67 }", "Doker = 0.67 }", "Docker has a deviation and no value"),
        ('platform = "KVM", than', 'platform = "KWM", than', "'KWM' is not among the study's platforms"),
        ("full = { blocks = 10 }", "full = { blocks = 10, arm_s = 60.0 }", "a length is blocks or arm_s"),
        ("follows = 2\n", "", "the slip in Table 7 has no metric, printed or follows"),
        ('metric = "File read"\nworkload', 'metric = "File reed"\nworkload', "nothing is printed of 'File reed'"),
        ('run = ["firecracker"]', "run = []", "Firecracker has nothing to run, and no reason"),
    ],
)
def test_a_file_that_is_wrong_is_said_in_one_line(old: str, new: str, why: str) -> None:
    assert old in FILE
    with pytest.raises(UsageError) as refused:
        parse(FILE.replace(old, new, 1), "karna-2021")
    assert why in refused.value.what
    assert "\n" not in refused.value.what


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('inside = ["gVisor"]', 'inside = ["gViser"]', "'gViser' is not among the study's platforms"),
        ('inside = ["gVisor"]', 'inside = ["Host"]', "no number is printed of 'Lines executed, CPU workload' for Host"),
        ('outside = ["Firecracker"]', 'outside = ["Fire"]', "'Fire' is not among the study's platforms"),
        ('[[region]]\nmetric = "Lines of /virt', '[[region]]\nmetric = "Lines of virt', "no number is printed"),
    ],
)
def test_a_region_is_of_a_printed_number_and_of_the_studys_platforms(old: str, new: str, why: str) -> None:
    text = (files("tare.features.studies.literature") / "studies" / "anjali-2020.toml").read_text()
    assert old in text
    with pytest.raises(UsageError, match=why):
        parse(text.replace(old, new, 1), "anjali-2020")


def test_every_region_has_one_number() -> None:
    study = load("anjali-2020")
    for region in study.region:
        values = study.metric(region.metric).value
        assert len({values[name] for name in region.inside}) == 1
        assert set(region.inside).isdisjoint(region.outside)
