"""The report's JSON Schema, and that the tables of docs/report-schema.md say what it says."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

from tare.cli.commands.app import app
from tare.report.campaign.report_builder import build
from tare.report.formats.columns import COLUMNS
from tare.report.formats.report_schema import schema, text
from tare.report.model import Report, to_json

ROOT = Path(__file__).parents[2]
RELEASED = sorted((ROOT / "tests" / "store" / "released").glob("*.tare"))


@pytest.fixture(scope="module")
def docs_tables() -> Iterator[ModuleType]:
    """scripts/docs_tables.py."""
    sys.path.insert(0, str(ROOT / "scripts"))
    import docs_tables  # noqa: PLC0415

    yield docs_tables
    sys.path.remove(str(ROOT / "scripts"))


def _models(whole: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, definition in whole["$defs"].items():
        if "properties" in definition:
            yield name, definition


def test_the_documented_tables_are_those_of_the_models(docs_tables: ModuleType) -> None:
    written = docs_tables.DOCUMENT.read_text(encoding="utf-8")
    assert docs_tables.documented(written) == written, "run `make docs-tables`"


def test_the_documented_columns_are_those_of_the_exports(docs_tables: ModuleType) -> None:
    written = docs_tables.EXPORTS.read_text(encoding="utf-8")
    assert docs_tables.exported(written) == written, "run `make docs-tables`"
    for wrong in ("<!-- table sampels -->", "<!-- table results -->"):
        with pytest.raises(ValueError, match="at most one table each is needed"):
            docs_tables.exported(written.replace("<!-- table samples -->", wrong))


def test_the_sites_page_has_every_column_of_every_export(docs_tables: ModuleType) -> None:
    sections = docs_tables.columns_reference().split("\n## ")[1:]
    by_name = dict(section.split("\n", 1) for section in sections)
    assert by_name.keys() == {table.value for table in COLUMNS}
    for table, columns in COLUMNS.items():
        assert [column.name for column in columns if f"`{column.name}`" not in by_name[table.value]] == [], table
    heads = [line for line in docs_tables.EXPORTS.read_text(encoding="utf-8").splitlines() if line.startswith("### ")]
    assert {table.value for table in COLUMNS} == {name for head in heads for name in head[4:].split(", ")}


def test_a_table_that_says_something_else_is_seen(docs_tables: ModuleType) -> None:
    written = docs_tables.DOCUMENT.read_text(encoding="utf-8")
    changed = written.replace("| `seed` | integer |", "| `seed` | number |")
    assert changed != written
    assert docs_tables.documented(changed) == written


def test_a_table_of_no_model_is_refused(docs_tables: ModuleType) -> None:
    written = docs_tables.DOCUMENT.read_text(encoding="utf-8")
    for wrong in ("<!-- model Reprt -->", "<!-- model ResultReport -->", "<!-- codes -->"):
        with pytest.raises(ValueError, match="one table of the codes is needed"):
            docs_tables.documented(written.replace("<!-- model Report -->", wrong))


def test_the_sites_page_has_every_field_of_every_model(docs_tables: ModuleType) -> None:
    sections = docs_tables.reference().split("\n### ")[1:]
    by_name = dict(section.split("\n", 1) for section in sections)
    assert by_name.keys() == {name for name, _ in _models(schema())}
    for name, model in _models(schema()):
        assert [field for field in model["properties"] if f"`{field}`" not in by_name[name]] == [], name


def test_every_field_has_a_description() -> None:
    for name, model in _models(schema()):
        assert [field for field, facts in model["properties"].items() if not facts.get("description")] == [], name


@pytest.mark.thorough
@pytest.mark.parametrize("file", RELEASED, ids=lambda file: file.stem)
def test_reports_of_released_files_hold_to_it(file: Path, jsonschema: ModuleType) -> None:
    report = build(file)
    validator = jsonschema.Draft202012Validator(schema())
    validator.validate(json.loads(to_json([report])))
    validator.validate(json.loads(to_json([report, report])))


def test_what_is_of_no_schema_does_not_hold(report: Report, jsonschema: ModuleType) -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    data = json.loads(to_json([report]))
    validator = jsonschema.Draft202012Validator(schema())
    assert validator.is_valid(data)
    assert validator.is_valid(data | {"a newer field": 1})
    assert not validator.is_valid(data | {"schema": "tare.report/1"})
    assert not validator.is_valid({name: value for name, value in data.items() if name != "results"})
    assert not validator.is_valid(data | {"baseline": None})


def test_the_command_prints_it_without_a_file() -> None:
    done = CliRunner().invoke(app, ["report", "--schema"])
    assert done.exit_code == 0
    assert done.stdout == text() + "\n"
    assert json.loads(done.stdout) == schema()
