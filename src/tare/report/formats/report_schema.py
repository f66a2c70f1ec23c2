"""The JSON schema of the report, from its models: what ``tare report --schema`` prints, and the docs' tables say."""

from __future__ import annotations

import json
from typing import Any

from pydantic import Field, TypeAdapter, create_model

from tare.report.model import SCHEMA, SCHEMA_MANY, ManyReports, Report
from tare.report.section import sections


def schema() -> dict[str, Any]:
    """Return what ``tare report --json`` prints, of one campaign or of several, as JSON Schema (draft 2020-12).

    Fields may be added under one number of the form: those that were may be missing in an older report, and those that
    will be are allowed.
    """
    fields: dict[str, Any] = {
        section.name: (section.printed | None, Field(None, description=section.description))
        for section in sections().values()
        if section.printed is not None
    }
    report = create_model("Report", __base__=Report, __module__=__name__, **fields)
    report.__doc__ = Report.__doc__
    reports = Field(description=ManyReports.model_fields["reports"].description)
    several = create_model("ManyReports", __base__=ManyReports, __module__=__name__, reports=(list[report], reports))  # type: ignore[valid-type]
    several.__doc__ = ManyReports.__doc__
    either: Any = report | several
    whole = TypeAdapter(either).json_schema(by_alias=True, mode="serialization")
    for definition in whole["$defs"].values():
        if definition.get("additionalProperties") is False:
            del definition["additionalProperties"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{SCHEMA}, or {SCHEMA_MANY} of several campaigns",
        **whole,
    }


def text() -> str:
    """The schema, indented."""
    return json.dumps(schema(), indent=2, ensure_ascii=False)
