"""Published studies as data: their printed figures, their slips, and how tare repeats them (docs/literature.md)."""

from typing import TYPE_CHECKING

from tare import lazily
from tare.features.studies.literature.catalogue import names

if TYPE_CHECKING:
    from tare.features.studies.literature.library import load, studies
    from tare.features.studies.literature.model import (
        Beside,
        Figure,
        Region,
        Run,
        RunJob,
        RunPlatform,
        StatedInWords,
        Study,
    )

__all__ = [
    "Beside",
    "Figure",
    "Region",
    "Run",
    "RunJob",
    "RunPlatform",
    "StatedInWords",
    "Study",
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
            ("Beside", "Figure", "Region", "Run", "RunJob", "RunPlatform", "StatedInWords", "Study"), "model"
        ),
    },
)
