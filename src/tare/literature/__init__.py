"""The published studies as data: their printed figures, their slips, and how tare repeats them (docs/literature.md)."""

from tare.literature.library import load, names, studies
from tare.literature.model import Beside, Figure, Region, Run, RunJob, RunPlatform, Scale, Study, Told

__all__ = [
    "Beside",
    "Figure",
    "Region",
    "Run",
    "RunJob",
    "RunPlatform",
    "Scale",
    "Study",
    "Told",
    "load",
    "names",
    "studies",
]
