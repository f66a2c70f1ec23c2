"""The example package of docs/examples with a section of the report, a table and a command, in three files."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import fake_campaign
from installed import installed
from tare.cli.commands import app as commands
from tare.report import section
from tare.report.campaign.report_builder import build
from tare.report.formats.html import materials, page_text
from tare.report.formats.report_schema import schema
from tare.report.model import to_json

EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "tare-time-spent"
TABLE = "tare-time-spent:workloads"


@pytest.fixture
def asked():
    """The registries ask for plug-ins once in a process."""
    caches = (section.sections, commands._every)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.fixture
def package(tmp_path, monkeypatch, asked):
    """The package as pip would install it."""
    with installed(EXAMPLE, tmp_path, monkeypatch) as folder:
        yield folder


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    return fake_campaign.write(tmp_path_factory.mktemp("section") / "a.tare", fake_campaign.Shape(blocks=2, rounds=2))


def _run(*arguments):
    done = CliRunner().invoke(commands.app, [str(word) for word in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_three_files_add_a_section_a_table_and_a_command(package, campaign):
    assert sorted(file.name for file in EXAMPLE.iterdir() if file.is_file()) == [
        "pyproject.toml", "tare_time_spent.py", "tare_time_spent_command.py",
    ]  # fmt: skip
    report = build(campaign)
    first = json.loads(to_json([report]))[TABLE]["workloads"][0]
    assert first["seconds"] > 0
    assert first["trials"] > 0
    assert TABLE in schema()["$defs"]["Report"]["properties"]
    page = page_text(materials([campaign]))
    assert '<section id="c1-tare-time-spent-workloads">' in page
    assert '<a href="#c1-tare-time-spent-workloads">Time spent</a>' in page
    assert first["workload"] in _run("time-spent", campaign)
    assert "time-spent" in _run("--help")
    assert f"{first['workload']},{first['trials']}," in _run("export", campaign, "--section", TABLE, "--format", "csv")
    assert "Time spent" in _run("report", campaign)


def test_without_the_package_nothing_of_it_is_left(campaign, asked):
    assert TABLE not in section.sections()
    assert TABLE not in json.loads(to_json([build(campaign)]))
    assert "time-spent" not in commands._every()


def test_a_section_that_fails_ends_no_report(package, campaign, capsys):
    source = (package / "tare_time_spent.py").read_text()
    (package / "tare_time_spent.py").write_text(source.replace("return time_spent(source.store)", "return 1 / 0"))
    report = build(campaign)
    assert report.sections()[TABLE] is None
    assert report.results
    assert "the section 'tare-time-spent:workloads' of tare-time-spent 1.0 is left out" in capsys.readouterr().err


def test_a_plug_in_takes_no_name_of_tares_own(package, capsys):
    source = (package / "tare_time_spent_command.py").read_text()
    (package / "tare_time_spent_command.py").write_text(
        source.replace('CommandEntry("time-spent"', 'CommandEntry("run"')
    )
    assert commands._every()["run"].function == "tare.cli.commands.run_command:run"
    assert "names 'run', which there is already" in capsys.readouterr().err
