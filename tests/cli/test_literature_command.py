"""tare literature, as a user runs it."""

import csv
import io
import json

import pytest

from tare.features.studies.literature import load, names


def test_it_lists_the_studies(tare):
    done = tare("literature")
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in names())


@pytest.mark.parametrize("name", names())
def test_every_slip_and_every_gap_is_told_with_its_reason(tare, name):
    study = load(name)
    assert study.unread
    text = "".join(tare("literature", name).stdout.split())
    for gap in study.unread:
        assert "".join(f"{gap.what}: {gap.why}".split()) in text
    for slip in study.slip:
        assert "".join(slip.where.split()) in text
        assert "".join(slip.why.split()) in text
        if slip.kind == "computed" and not isinstance(slip.printed, list):
            assert f"{slip.printed:g}".removeprefix("-") in text.replace(",", "")


@pytest.mark.thorough
@pytest.mark.parametrize("name", names())
def test_it_shows_every_figure_of_a_study(tare, name):
    study = load(name)
    done = tare("literature", name)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    for platform in {platform for figure in study.figure for platform in figure.value}:
        assert all(word in text for word in platform.split())
    for statement in study.text.told:
        assert statement.words.split()[0] in text
    done = tare("literature", name, "--csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    figures = [row for row in rows if row["value"]]
    assert [float(row["value"]) for row in figures] == [
        value for figure in study.figure for value in figure.value.values()
    ]
    assert len(rows) - len(figures) == len(study.text.told)
    assert all(row["where"] for row in rows)


def test_csv_has_deviation_runs_unit_and_place(tare):
    rows = csv.DictReader(io.StringIO(tare("literature", "karna-2021", "--csv").stdout))
    (row,) = (row for row in rows if (row["metric"], row["platform"]) == ("CPU events", "KVM"))
    assert (row["value"], row["sd"], row["n"], row["unit"], row["better"], row["where"]) == (
        "455.36", "52.18", "10", "event/s", "higher", "Appendix A",
    )  # fmt: skip
    assert float(row["percent_of_baseline"]) == pytest.approx(91.19, abs=0.01)


def test_json_has_all_of_the_studies(tare):
    shown = json.loads(tare("literature", "--json").stdout)
    assert shown["schema"] == "tare.literature/1"
    assert [study["name"] for study in shown["studies"]] == list(names())


def test_check_computes_again_and_lists_the_slips(tare):
    done = tare("literature", "--check")
    assert done.returncode == 0, done.stdout
    assert "karna-2021: 114 statements computed again, 5 do not follow" in done.stdout
    shown = json.loads(tare("literature", "li-2017", "--check", "--json").stdout)
    (study,) = shown["studies"]
    assert study["good"] is True
    (line,) = (statement for statement in study["statements"] if statement["wrong"])
    assert (line["printed"], line["follows"], line["listed"]) == (2.979, 2.978, True)


@pytest.mark.parametrize(
    ("arguments", "what", "fix"),
    [
        (("literature", "karna"), "there is no study 'karna'", "karna-2021"),
        (("literature", "--csv", "--json"), "--csv", "leave"),
        (("report", "nowhere.tare", "--beside", "karna"), "nowhere.tare", "fix:"),
        (("run", "--scale", "full"), "the profile quick has no scales", "--profile"),
        (("run", "--profile", "karna"), "there is no profile 'karna'", "karna-2021"),
        (("run", "--resume", "x.tare", "--scale", "full"), "--resume", "alone"),
    ],
)
def test_what_makes_no_sense_is_one_line_with_the_fix(tare, arguments, what, fix):
    done = tare(*arguments)
    assert done.returncode == 2, done.stderr
    assert what in done.stderr
    assert fix in done.stderr
    assert "Traceback" not in done.stderr
