"""The tables of a campaign that can be exported, and their formats."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """A format of an export."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"
    LATEX = "latex"
    MARKDOWN = "markdown"
    FOLDED = "folded"  # of stacks only
    OPENMETRICS = "openmetrics"  # of the figures, not the samples
    INFLUX = "influx"  # the same in InfluxDB's line protocol


class QueryFormat(StrEnum):
    """A format of the rows that a query gives: those of `Format` that any table can have."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"
    LATEX = "latex"
    MARKDOWN = "markdown"


class Picture(StrEnum):
    """A format of a figure, by its file's suffix."""

    PDF = "pdf"
    SVG = "svg"
    PNG = "png"


class Prose(StrEnum):
    """A form of a paragraph."""

    TEXT = "text"
    LATEX = "latex"
    MARKDOWN = "markdown"


class Show(StrEnum):
    """The content of a figure."""

    OVERHEADS = "overheads"  # with intervals
    BLOCKS = "blocks"  # each block's median


class CampaignTable(StrEnum):
    """A table of a campaign."""

    RESULTS = "results"
    OVERHEADS = "overheads"  # for people only
    SAMPLES = "samples"
    TRIALS = "trials"
    OUTPUT = "output"
    HOST = "telemetry"
    CPUS = "telemetry-cpus"
    INSTANCES = "telemetry-instances"
    FOOTPRINTS = "footprints"
    SURFACES = "surfaces"
    STACKS = "stacks"
