"""A table as Parquet: each column with its unit and meaning in its field's metadata, where Arrow's readers find them.

polars has no metadata of fields: nanoarrow (3 MB, nothing else) makes the schema, where pyarrow would be 40 MB.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from tare import __version__
from tare.report.formats.columns import COLUMNS
from tare.report.formats.extras import load
from tare.report.formats.tables import CampaignTable

SCHEMA = "tare.export/1"


def write(frame: pl.DataFrame, table: CampaignTable, out: BinaryIO | Path, *, campaign: str) -> None:
    """Write a frame of the table's columns. Raises `UsageError` where nanoarrow is missing."""
    facts = {"tare.schema": SCHEMA, "tare.table": table.value, "tare.version": __version__, "tare.campaign": campaign}
    frame.write_parquet(out, metadata=facts, arrow_schema=_described(frame, table))


def _described(frame: pl.DataFrame, table: CampaignTable) -> Any:
    plain = load("nanoarrow", "Parquet").c_schema(frame.schema)
    columns = {column.name: column for column in COLUMNS[table]}
    children = [
        child.modify(metadata={"unit": columns[child.name].unit, "description": columns[child.name].meaning})
        for child in plain.children
    ]
    return plain.modify(children=children)
