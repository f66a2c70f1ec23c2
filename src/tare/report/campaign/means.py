"""Means over blocks with their 95 % intervals, as drawings and tables of absolute figures show them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tare.estimates.intervals import half_width
from tare.report.model import PlatformReport


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over blocks; ``half``: half of its 95 % interval, 0 of a single block."""

    value: float
    half: float

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.value - self.half

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.value + self.half


def mean_of(figures: PlatformReport) -> Mean | None:
    """The mean of a platform's blocks; None where it has no figure."""
    if figures.mean is None:
        return None
    # The baseline has two values a block, which are not independent: blocks count where it takes part.
    blocks = figures.n_blocks or figures.n_values
    if figures.sd is None or blocks < 2:
        return Mean(figures.mean, 0.0)
    return Mean(figures.mean, half_width(figures.sd / math.sqrt(blocks), blocks - 1))
