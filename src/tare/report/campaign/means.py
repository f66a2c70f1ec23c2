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
    if figures.sd is None or figures.n_blocks < 2:
        return Mean(figures.mean, 0.0)
    return Mean(figures.mean, half_width(figures.sd / math.sqrt(figures.n_blocks), figures.n_blocks - 1))
