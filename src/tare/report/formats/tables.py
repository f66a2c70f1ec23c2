"""What can be exported, and in which form."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """A form of the export."""

    CSV = "csv"
    JSONL = "jsonl"
    FOLDED = "folded"  # of stacks only


class Table(StrEnum):
    """What is exported."""

    SAMPLES = "samples"
    OUTPUT = "output"
    HOST = "telemetry"
    CPUS = "telemetry-cpus"
    INSTANCES = "telemetry-instances"
    FOOTPRINTS = "footprints"
    SURFACES = "surfaces"
    STACKS = "stacks"
