"""The tables of docs/report-schema.md, from the report's JSON schema, and of docs/exports.md, from `COLUMNS`.

Writes them anew between their marks: a table stands between ``<!-- model NAME -->``, ``<!-- codes -->`` or
``<!-- table NAME -->`` and ``<!-- end -->``; all else is written by hand. The two ends of an interval share a row.
Models and tables without a mark are only on the site's pages (`reference`, `columns_reference`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from tare.report.formats.columns import COLUMNS, ExportColumn
from tare.report.formats.report_schema import schema

DOCUMENT = Path(__file__).parents[1] / "docs" / "report-schema.md"
EXPORTS = DOCUMENT.with_name("exports.md")
_TABLE = re.compile(r"(<!-- (?:model (\w+)|codes) -->\n).*?(<!-- end -->)", re.DOTALL)
_LOWER = re.compile(r"(?:The )?[Ll]ower end")
_EXPORTED = re.compile(r"(<!-- table ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

Schema = Mapping[str, Any]


def documented(text: str) -> str:
    """The document with its tables as the models have them.

    Raises `ValueError` when it has a table of no model, not exactly one of the codes, or a field has no description.
    """
    definitions = schema()["$defs"]
    tables = [match[2] for match in _TABLE.finditer(text)]
    here = {name for name in tables if name}
    if len(tables) != len(here) + 1 or not here <= _models(definitions):
        raise ValueError("one table of the codes is needed, and at most one of each model that there is")

    def table(match: re.Match[str]) -> str:
        lines = _fields(match[2], definitions, here) if match[2] else _codes(definitions, _used(definitions, here))
        return match[1] + "\n".join(lines) + "\n" + match[3]

    return _TABLE.sub(table, text)


def reference() -> str:
    """The page of all models, for the site."""
    definitions = schema()["$defs"]
    models = _models(definitions)
    tables = ["\n".join(_fields(name, definitions, models)) for name in sorted(models)]
    head = "# All models of the report\n\nFrom the JSON Schema that `tare report --schema` prints."
    codes = "\n".join(["## Codes", *_codes(definitions, set(definitions))])
    return "\n\n".join([head, *tables, codes]) + "\n"


def columns_reference() -> str:
    """The page of all columns of exports, for the site."""
    head = "# All columns of exports\n\nOf `tare export --table NAME`."
    tables = ["\n".join([f"## {table.value}", *_all_columns(columns)]) for table, columns in COLUMNS.items()]
    return "\n\n".join([head, *tables]) + "\n"


def _models(definitions: Mapping[str, Schema]) -> set[str]:
    return {name for name, definition in definitions.items() if "properties" in definition}


def exported(text: str) -> str:
    """The document of exports with its tables as `COLUMNS` has them. Raises `ValueError` for a table of no export."""
    tables = {table.value: columns for table, columns in COLUMNS.items()}
    here = [match[2] for match in _EXPORTED.finditer(text)]
    if len(here) != len({*here}) or not {*here} <= {*tables}:
        raise ValueError(f"at most one table each is needed of {', '.join(sorted(tables))}")
    definitions = schema()["$defs"]
    first = {  # where a column is described, as a link
        (name, _sentence(field).replace("`", "").rstrip(".")): f"[{model}](report-schema.md#{model.lower()})"
        for model in ("ResultReport", "PlatformReport", "EffectReport")
        for name, field in definitions[model]["properties"].items()
    }
    for name in here:
        for column in tables[name]:
            first.setdefault((column.name, column.meaning), f"[{name}](#{name})")

    def table(match: re.Match[str]) -> str:
        return match[1] + "\n".join(_columns(match[2], tables[match[2]], first)) + "\n" + match[3]

    return _EXPORTED.sub(table, text)


def _all_columns(columns: Sequence[ExportColumn]) -> Iterator[str]:
    """A table of all columns of an export."""
    yield from _rows("column", [(column.name, _kind(column), column.meaning) for column in columns])


def _kind(column: ExportColumn) -> str:
    """The type of a column, with its unit."""
    kinds = {"String": "text", "Int64": "integer", "Float64": "real", "Boolean": "boolean"}
    return kinds[str(column.dtype())] + (f", {column.unit}" if column.unit else "")


def _columns(table: str, columns: Sequence[ExportColumn], first: Mapping[tuple[str, str], str]) -> Iterator[str]:
    earlier: dict[str, list[str]] = {}
    rows = []
    for column in columns:
        described = first[column.name, column.meaning]
        if described == f"[{table}](#{table})":
            rows.append((column.name, _kind(column), column.meaning))
        else:
            earlier.setdefault(described, []).append(f"`{column.name}`")
    for link, shared in earlier.items():
        yield f"As in {link}: {', '.join(shared)}.\n"
    yield from _rows("column", rows)


def _fields(model: str, definitions: Mapping[str, Schema], here: Set[str]) -> Iterator[str]:
    """The section of a model; other models that are not ``here`` are linked to on the site's page."""
    yield f"### {model}"
    yield _sentence(definitions[model])
    yield ""
    rows = []
    for name, field in definitions[model]["properties"].items():
        if "description" not in field:
            raise ValueError(f"{model}.{name} has no description")
        rows.append((name, _linked(_type(field, definitions), here), _sentence(field)))
    yield from _rows("field", rows)


def _linked(kind: str, here: Set[str]) -> str:
    """The type with its links to models."""
    return re.sub(
        r"<(\w+)>",
        lambda match: f"[{match[1]}]({'' if match[1] in here else 'reference/report.md'}#{match[1].lower()})",
        kind,
    )


def _rows(head: str, rows: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """The lines of a table; the two ends of an interval are in one row."""
    yield f"| {head} | type | meaning |"
    yield "| --- | --- | --- |"
    left = list(rows)
    while left:
        name, kind, meaning = left.pop(0)
        names = f"`{name}`"
        if _LOWER.match(meaning) and left and _is_other_end(rows[-len(left) - 1], left[0]):
            names += f", `{left.pop(0)[0]}`"
            meaning = _LOWER.sub("Ends", meaning)
        yield f"| {names} | {kind} | {meaning} |"


def _is_other_end(lower: tuple[str, str, str], upper: tuple[str, str, str]) -> bool:
    """Return whether ``upper`` says no more than that it is the other end of the interval of ``lower``."""
    own = upper[2].partition("; ")[2].rstrip(".")
    return (upper[0], upper[1]) == (lower[0].replace("low", "high"), lower[1]) and own in lower[2]


def _used(definitions: Mapping[str, Schema], models: Set[str]) -> set[str]:
    """Return the definitions that the fields of ``models`` name."""
    return {name for model in models for name in re.findall(r"\$defs/(\w+)", str(definitions[model]))}


def _codes(definitions: Mapping[str, Schema], used: Set[str]) -> Iterator[str]:
    """The table of the codes among ``used``."""
    yield "| codes | what they say | values |"
    yield "| --- | --- | --- |"
    for name, definition in sorted(definitions.items()):
        if "enum" in definition and name in used:
            yield f"| {name} | {_sentence(definition)} | {_values(definition['enum'])} |"


def _type(field: Schema, definitions: Mapping[str, Schema]) -> str:
    """A field's type: `?` for "or null", `[]` for an array, `{}` for an object's values, ``<NAME>`` for a model."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"<{name}>" if "properties" in definitions[name] else f"[{name}](#codes)"
    if "anyOf" in field:
        inner = [_type(inner, definitions) for inner in field["anyOf"] if inner.get("type") != "null"]
        null = "?" if len(inner) < len(field["anyOf"]) else ""
        return (f"({' or '.join(inner)})" if null and len(inner) > 1 else " or ".join(inner)) + null
    if "enum" in field or "const" in field:
        return _values(field.get("enum", [field.get("const")]))
    if field["type"] == "array":
        return f"{_one(field['items'], definitions)}[]"
    if isinstance(field.get("additionalProperties"), dict):
        by = f" by {_type(field['propertyNames'], definitions)}" if "propertyNames" in field else ""
        return f"{_one(field['additionalProperties'], definitions)}{{}}{by}"
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
