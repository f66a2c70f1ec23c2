"""The tables of docs/report-schema.md, from the report's JSON schema, and of docs/exports.md, from `COLUMNS`.

Writes them anew between their marks: a table stands between ``<!-- model NAME -->``, ``<!-- codes -->`` or
``<!-- table NAME -->`` and ``<!-- end -->``; all else is written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tare.report.formats.columns import COLUMNS
from tare.report.formats.schema import schema

DOCUMENT = Path(__file__).parents[1] / "docs" / "report-schema.md"
EXPORTS = DOCUMENT.with_name("exports.md")
_TABLE = re.compile(r"(<!-- (?:model (\w+)|codes) -->\n).*?(<!-- end -->)", re.DOTALL)
_EXPORTED = re.compile(r"(<!-- table ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

Schema = Mapping[str, Any]


def documented(text: str) -> str:
    """The document with its tables as the models have them.

    Raises `ValueError` when a model has no table, a table no model, or a field no description.
    """
    definitions = schema()["$defs"]
    models = {name for name, definition in definitions.items() if "properties" in definition}
    tables = [match[2] for match in _TABLE.finditer(text)]
    if sorted(name for name in tables if name) != sorted(models) or tables.count(None) != 1:
        raise ValueError(f"one table each is needed, of the codes and of {', '.join(sorted(models))}")

    def table(match: re.Match[str]) -> str:
        lines = _fields(match[2], definitions) if match[2] else _codes(definitions)
        return match[1] + "\n".join(lines) + "\n" + match[3]

    return _TABLE.sub(table, text)


def exported(text: str) -> str:
    """The document of exports with its tables as `COLUMNS` has them. Raises `ValueError` where one is not there."""
    tables = {table.value: columns for table, columns in COLUMNS.items()}
    if sorted(match[2] for match in _EXPORTED.finditer(text)) != sorted(tables):
        raise ValueError(f"one table each is needed of {', '.join(sorted(tables))}")

    def table(match: re.Match[str]) -> str:
        lines = ["| column | type | unit | meaning |", "| --- | --- | --- | --- |"]
        for column in tables[match[2]]:
            kind = {"String": "text", "Int64": "integer", "Float64": "real", "Boolean": "boolean"}[str(column.dtype())]
            lines.append(f"| `{column.name}` | {kind} | {column.unit} | {column.meaning} |")
        return match[1] + "\n".join(lines) + "\n" + match[3]

    return _EXPORTED.sub(table, text)


def _fields(model: str, definitions: Mapping[str, Schema]) -> Iterator[str]:
    yield f"### {model}"
    yield _sentence(definitions[model])
    yield ""
    yield "| field | type | meaning |"
    yield "| --- | --- | --- |"
    for name, field in definitions[model]["properties"].items():
        if "description" not in field:
            raise ValueError(f"{model}.{name} has no description")
        yield f"| `{name}` | {_type(field, definitions)} | {_sentence(field)} |"


def _codes(definitions: Mapping[str, Schema]) -> Iterator[str]:
    yield "| codes | what they say | values |"
    yield "| --- | --- | --- |"
    for name, definition in sorted(definitions.items()):
        if "enum" in definition:
            yield f"| {name} | {_sentence(definition)} | {_values(definition['enum'])} |"


def _type(field: Schema, definitions: Mapping[str, Schema]) -> str:
    """A field's type in words; models by a link to their table."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})" if "properties" in definitions[name] else f"[{name}](#codes)"
    if "anyOf" in field:
        return " or ".join(_type(inner, definitions) for inner in field["anyOf"])
    if "enum" in field or "const" in field:
        return _values(field.get("enum", [field.get("const")]))
    if field["type"] == "array":
        return f"array of {_one(field['items'], definitions)}"
    if isinstance(field.get("additionalProperties"), dict):
        by = f" by {_type(field['propertyNames'], definitions)}" if "propertyNames" in field else ""
        return f"object{by} of {_one(field['additionalProperties'], definitions)}"
    return str(field["type"])


def _one(member: Schema, definitions: Mapping[str, Schema]) -> str:
    """The type of each member of an array or object."""
    words = _type(member, definitions)
    return f"({words})" if "anyOf" in member else words


def _sentence(described: Schema) -> str:
    """The first paragraph of a description, in one line."""
    return " ".join(described["description"].partition("\n\n")[0].replace("``", "`").split())


def _values(values: list[object]) -> str:
    return ", ".join(f"`{str(value).lower() if isinstance(value, bool) else value}`" for value in values)


if __name__ == "__main__":
    DOCUMENT.write_text(documented(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    EXPORTS.write_text(exported(EXPORTS.read_text(encoding="utf-8")), encoding="utf-8")
