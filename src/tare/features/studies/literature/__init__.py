"""Published studies as data: their printed figures, their slips, and how tare repeats them (docs/literature.md)."""

from typing import TYPE_CHECKING

from tare import lazily
from tare.features.studies.literature.catalogue import names

if TYPE_CHECKING:
    from tare.features.studies.literature.library import load, studies
    from tare.features.studies.literature.study_model import (
        MetricBeside,
        PrintedFigure,
        Region,
        RunJob,
        RunPlatform,
        StatedInWords,
        Study,
        StudyRun,
    )

__all__ = [
    "MetricBeside",
    "PrintedFigure",
    "Region",
    "RunJob",
    "RunPlatform",
    "StatedInWords",
    "Study",
    "StudyRun",
    "load",
    "names",
    "studies",
]

__getattr__ = lazily.exports(
    __name__,
    {
        "load": "library",
        "studies": "library",
        **dict.fromkeys(
            ("MetricBeside", "PrintedFigure", "Region", "StudyRun", "RunJob", "RunPlatform", "StatedInWords", "Study"),
            "study_model",
        ),
    },
)
