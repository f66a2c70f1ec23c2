"""`tare diff` as people and gates read it: a table, Markdown, JUnit's XML, JSON, and an exit code."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

import fake_campaign
from tare.analysis.comparisons.sides import Way
from tare.analysis.comparisons.thresholds import Thresholds
from tare.cli.commands.app import app
from tare.errors import TareError, UsageError
from tare.features.diff.analysis import Absent, Fact, Lack, diff
from tare.features.diff.gates import to_annotations, to_junit, to_sarif
from tare.features.diff.views import to_markdown
from tare.features.diff.words import intervals
from tare.store import read_store

SHAPE = fake_campaign.Shape(
    blocks=8,
    rounds=3,
    slowdown={"native": 1.0, "runc": 1.0, "gvisor": 1.2},
    workloads=("prime-slices",),
    failing=None,
    unsupported=None,
    stolen=False,
)
Run = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """old and same are alike, worse has a gvisor that is 3 % slower, few has two blocks."""
    folder = tmp_path_factory.mktemp("diff")
    slower = {**SHAPE.slowdown, "gvisor": 1.2 * 1.03}
    shapes = {
        "old": SHAPE,
        "same": replace(SHAPE, seed=2),
        "worse": replace(SHAPE, seed=3, slowdown=slower),
        "few": replace(SHAPE, seed=4, blocks=2, block_noise=0.02),
    }
    for name, shape in shapes.items():
        fake_campaign.write(folder / f"{name}.tare", shape)
    return folder


@pytest.fixture
def run(files: Path) -> Run:
    def _run(*arguments: str) -> tuple[int, str]:
        names = [str(files / name) if name.endswith(".tare") else name for name in arguments]
        done = CliRunner().invoke(app, ["diff", *names])
        if isinstance(done.exception, TareError):
            raise done.exception
        return done.exit_code, done.output

    return _run


def test_what_cannot_be_compared_is_an_error_with_its_fix(run: Run) -> None:
    with pytest.raises(UsageError) as caught:
        run("old.tare", "-p", "runc", "-p", "podman")
    assert caught.value.what == "podman did not take part in old.tare"
    assert caught.value.fix == "name two of native, runc, gvisor"


def test_exit_codes_are_those_of_a_gate(run: Run) -> None:
    code, text = run("old.tare", "same.tare")
    assert code == 0
    assert "no regression: of 4 figures 4 not worse" in text
    code, text = run("old.tare", "worse.tare")
    assert code == 1
    assert "regression: of 4 figures 2 worse, 2 not worse" in text
    code, text = run("old.tare", "few.tare")
    assert code == 3
    assert "cannot tell: of 4 figures " in text
    assert "blocks would tell" in " ".join(text.split())


def test_the_table_has_what_changed_and_on_demand_the_rest(run: Run) -> None:
    _, text = run("old.tare", "worse.tare")
    words = " ".join(text.split())
    assert "old.tare → worse.tare: overheads against native, each in its own campaign; + is worse" in words
    assert "Alike: host, image, agent and versions" in words
    rows = [line for line in text.splitlines() if line.lstrip().startswith(("▲", "=", "?"))]
    assert [row.split()[:2] for row in rows if "▲" in row] == [["▲", "gvisor"]] * 2
    assert not any("runc" in row for row in rows) or "more figure" not in text
    _, everything = run("old.tare", "worse.tare", "--all")
    rows = [line for line in everything.splitlines() if line.lstrip().startswith(("▲", "=", "?"))]
    assert len(rows) == 4
    assert "more figure" not in everything


def test_within_one_campaign(run: Run) -> None:
    code, text = run("old.tare", "-p", "runc", "-p", "gvisor")
    assert code == 1
    assert "runc → gvisor: the platforms, block by block" in " ".join(text.split())
    assert run("old.tare", "-p", "gvisor", "-p", "runc")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("old.tare",), "two campaigns are compared"),
        (("old.tare", "-p", "runc"), "--platform compares two platforms of one campaign"),
        (("old.tare", "same.tare", "-p", "runc", "-p", "gvisor"), "--platform compares two platforms of one campaign"),
        (("old.tare", "-p", "runc", "-p", "gvisor", "--absolute"), "--absolute is for two campaigns"),
        (("old.tare", "none.tare"), "none.tare"),
        (("old.tare", "same.tare", "--annotations", "--json"), "printed into each other"),
        (("old.tare", "same.tare", "--sarif", "old.tare"), "SARIF shows results at a file of the repository"),
        (("old.tare", "same.tare", "--markdown", "old.tare"), "is what is read, and is never overwritten"),
    ],
)
def test_what_cannot_be_is_an_error(run: Run, arguments: tuple[str, ...], what: str) -> None:
    with pytest.raises(TareError) as error:
        run(*arguments)
    assert what in error.value.what


def test_json_holds_every_figure(run: Run) -> None:
    code, text = run("old.tare", "worse.tare", "--json")
    data = json.loads(text)
    assert (code, data["schema"], data["outcome"], data["way"]) == (1, "tare.diff/1", "regression", "relative")
    [rate] = [change for change in data["changes"] if (change["platform"], change["metric"]) == ("gvisor", "rate")]
    assert rate["outcome"] == "regression"
    assert rate["interval"]["low"] > 0.01
    assert rate["p"] < 0.05
    assert (rate["n_old"], rate["n_new"], rate["threshold"]) == (8, 8, 0.01)


def test_files_for_a_pull_request_and_for_a_server_of_builds(run: Run, tmp_path: Path) -> None:
    markdown, junit = tmp_path / "diff.md", tmp_path / "diff.xml"
    code, _ = run("old.tare", "worse.tare", "--markdown", str(markdown), "--junit", str(junit))
    assert code == 1
    text = markdown.read_text()
    assert text.startswith("**▲ regression: of 4 figures 2 worse, 2 not worse**\n")
    assert text.count("\n| ▲ | gvisor | prime-slices ") == 2
    assert "<details><summary>2 without a regression</summary>" in text
    suite = ElementTree.fromstring(junit.read_bytes())[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("4", "2", "0")
    failed = [case for case in suite if case.find("failure") is not None]
    assert {(case.get("classname"), case.get("name")) for case in failed} == {
        ("gvisor", "prime-slices rate"),
        ("gvisor", "prime-slices cpu-cost"),
    }
    failure = failed[0].find("failure")
    assert failure is not None
    assert "worse by more than 1 %" in (failure.get("message") or "")


def test_code_scanning_gets_a_result_a_regression_with_a_fingerprint_that_stays(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "limits.toml").touch()
    monkeypatch.chdir(tmp_path)
    results = {}
    for new in ("worse", "few", "same"):
        place = tmp_path / f"{new}.sarif"
        run("old.tare", f"{new}.tare", "--sarif", str(place), "--source", "limits.toml")
        log = json.loads(place.read_text())
        [scan] = log["runs"]
        assert (log["version"], scan["tool"]["driver"]["name"]) == ("2.1.0", "tare")
        results[new] = scan["results"]
    assert results["same"] == []
    assert {result["kind"] for result in results["few"]} == {"open"}
    assert {result["level"] for result in results["few"]} == {"none"}, "the standard wants none of what is no failure"
    assert [result["level"] for result in results["worse"]] == ["error"] * 2
    [place] = results["worse"][0]["locations"]
    assert place["physicalLocation"]["artifactLocation"] == {"uri": "limits.toml"}
    assert "regression: +" in results["worse"][0]["message"]["text"]
    prints = {result["partialFingerprints"]["figure/v1"] for result in results["few"]}
    assert {result["partialFingerprints"]["figure/v1"] for result in results["worse"]} & prints


def test_code_scanning_is_shown_no_file_that_the_repository_does_not_have(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository, elsewhere = tmp_path / "repository", tmp_path / "limits.toml"
    repository.mkdir()
    elsewhere.touch()
    monkeypatch.chdir(repository)
    with pytest.raises(UsageError, match="not below the current folder"):
        run("old.tare", "same.tare", "--sarif", "x.sarif", "--thresholds", str(elsewhere))
    with pytest.raises(UsageError, match="is for SARIF"):
        run("old.tare", "same.tare", "--source", str(elsewhere))
    with pytest.raises(TareError, match=r"none\.toml"):
        run("old.tare", "same.tare", "--sarif", "x.sarif", "--source", "none.toml")
    assert not (repository / "x.sarif").exists()


def test_outputs_are_replaced_by_force_and_campaigns_never(run: Run, files: Path, tmp_path: Path) -> None:
    place = tmp_path / "diff.md"
    place.write_text("before")
    with pytest.raises(UsageError, match="exists") as raised:
        run("old.tare", "same.tare", "--markdown", str(place))
    assert "--force" in (raised.value.fix or "")
    run("old.tare", "same.tare", "--markdown", str(place), "--force")
    assert place.read_text() != "before"
    for output in ("old.tare", "few.tare"):
        with pytest.raises(UsageError, match="never overwritten"):
            run("old.tare", "same.tare", "--junit", output, "--force")


def test_annotations_are_lines_of_their_own_after_the_table(run: Run) -> None:
    _, text = run("old.tare", "worse.tare", "--annotations")
    lines = [line for line in text.splitlines() if line.startswith("::")]
    assert lines[0].startswith("::error title=gvisor%3A prime-slices ")
    assert [line.split()[0] for line in lines] == ["::error", "::error", "::notice"]
    assert text.splitlines()[-3:] == lines


def test_of_more_annotations_than_are_shown_the_last_counts_the_rest(files: Path) -> None:
    with read_store(files / "old.tare") as old, read_store(files / "worse.tare") as new:
        comparison = diff(old, new, Thresholds())
    [worse, *_] = comparison.changes
    lines = list(to_annotations(replace(comparison, changes=(worse,) * 23)))
    assert sum(line.startswith("::error") for line in lines) == 10
    assert lines[9] == "::error title=tare diff::14 more: see the table"


EVIL = "</x>|`<script>alert(1)</script>\x1b[31m\ufffe & *b* [l](u)"


def test_hostile_names_are_text_in_both(files: Path) -> None:
    with read_store(files / "old.tare") as old, read_store(files / "worse.tare") as new:
        comparison = diff(old, new, Thresholds())
    changes = tuple(replace(change, platform=EVIL, workload=EVIL) for change in comparison.changes)
    lacking = (Absent(Lack.OLD, EVIL, EVIL, EVIL),)
    evil = replace(comparison, changes=changes, old=EVIL, facts=(Fact(EVIL, EVIL, EVIL),), absent=lacking)
    text = to_markdown(evil)
    assert "<script>" not in text.replace("\\<script\\>", "")
    assert "\x1b" not in text
    rows = [line for line in text.splitlines() if line.startswith("| ▲")]
    assert all(row.replace("\\|", "").count("|") == 8 for row in rows)
    suite = ElementTree.fromstring(to_junit(evil))[0]
    assert "<script>" in (suite[0].get("classname") or "")
    assert "\x1b" not in to_junit(evil)
    log = json.loads(to_sarif(evil, "1.0", EVIL))
    assert "\x1b" not in json.dumps(log, ensure_ascii=False)


def test_a_pull_request_is_told_what_counted_instructions_have_for_an_interval(files: Path) -> None:
    with read_store(files / "old.tare") as old, read_store(files / "worse.tare") as new:
        measured = diff(old, new, Thresholds())
    assert to_markdown(measured).endswith("'at most' holds at 95 % for its figure.\n")
    counted = replace(measured, way=Way.INSTRUCTIONS)
    assert "at most" not in to_markdown(counted).rstrip().splitlines()[-1]
    assert to_markdown(counted).rstrip().endswith(intervals(counted))


def test_no_name_ends_an_annotation_or_begins_another(files: Path) -> None:
    with read_store(files / "old.tare") as old, read_store(files / "worse.tare") as new:
        comparison = diff(old, new, Thresholds())
    evil = "a,file=x::b\n::error::forged\r%0A::set-output name=x::y"
    changes = tuple(replace(change, platform=evil) for change in comparison.changes)
    lines = list(to_annotations(replace(comparison, changes=changes)))
    assert len(lines) == 3
    title = lines[0].removeprefix("::error title=").partition("::")[0]
    assert title.startswith("a%2Cfile=x%3A%3Ab %3A%3Aerror%3A%3Aforged")
    assert "%250A" in title
    assert not any("\r" in line or "\n" in line for line in lines)


@pytest.mark.parametrize(("policy", "code"), [("3", 3), ("pass", 0), ("fail", 1)])
def test_a_gate_ends_as_it_is_told_where_it_cannot_tell(run: Run, policy: str, code: int) -> None:
    assert run("old.tare", "few.tare", "--open", policy)[0] == code
    assert run("old.tare", "worse.tare", "--open", policy)[0] == 1, "a regression is one whatever the policy"
    assert run("old.tare", "same.tare", "--open", policy)[0] == 0


def test_an_open_figure_says_what_would_have_been_found_and_a_fine_one_its_bound(run: Run) -> None:
    _, text = run("old.tare", "few.tare", "--all")
    assert re.search(r"it would have found (\+[\d.]+ %|[\d.]+ ×) or more", " ".join(text.split()))
    _, text = run("old.tare", "same.tare", "--all")
    words = " ".join(text.split())
    bounds = re.findall(r"at most \+[\d.]+ %|at least [\d.]+ % better", words)
    assert len(bounds) == 4
    assert "'at most' holds at 95 % for its figure" in words


def test_columns_show_the_overheads_that_the_change_is_of(run: Run) -> None:
    """They were means of the platform alone: 1,317 to 784 events/s beside a change of 0 %."""
    _, text = run("old.tare", "worse.tare", "--json")
    [rate] = [c for c in json.loads(text)["changes"] if (c["platform"], c["metric"]) == ("gvisor", "rate")]
    assert rate["old_times"] == pytest.approx(1.2, abs=0.01)
    assert rate["new_times"] == pytest.approx(1.2 * 1.03, abs=0.01)
    assert 1 - rate["old_times"] / rate["new_times"] == pytest.approx(rate["interval"]["point"], abs=1e-6)
    _, table = run("old.tare", "worse.tare")
    assert "events/s" not in table
    _, absolute = run("old.tare", "worse.tare", "--absolute", "--all")
    assert "events/s" in absolute
