"""Checks of the data that every estimate makes before it gives a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tare.analysis.refusals import NoAnswer, RefusalKind

#: A figure farther from 1 than this factor is a tool's garbage; its powers would leave the range of floats.
EXTREME = 1e30

Floats = NDArray[np.float64]


def sample(values: ArrayLike, name: str, *, at_least: int = 1, varied: bool = False, positive: bool = False) -> Floats:
    """One sample as an array of finite numbers. Raises `NoAnswer`.

    ``varied``: values that are all the same are refused. ``positive``: so are zeros and negative ones.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise NoAnswer(RefusalKind.DIMENSIONS, name, dimensions=array.ndim)
    if array.size < at_least:
        raise NoAnswer(RefusalKind.TOO_FEW, name, values=array.size, at_least=at_least)
    bad = int((~np.isfinite(array)).sum())
    if bad:
        raise NoAnswer(RefusalKind.NOT_FINITE, name, bad=bad, values=array.size)
    refuse_extremes(array, name)
    if positive and (array <= 0).any():
        raise NoAnswer(RefusalKind.NOT_POSITIVE, name, bad=int((array <= 0).sum()), values=array.size)
    if varied and not spread(array):
        raise NoAnswer(RefusalKind.ALL_ALIKE, name, values=array.size)
    return array


def samples(groups: Mapping[str, ArrayLike], *, at_least: int, varied: bool = False) -> dict[str, Floats]:
    """At least two samples by name, each as `sample` wants it. Raises `NoAnswer`."""
    if len(groups) < 2:
        raise NoAnswer(RefusalKind.ONE_GROUP)
    return {name: sample(values, name, at_least=at_least, varied=varied) for name, values in groups.items()}


def refuse_extremes(values: Floats, name: str) -> None:
    """Raise `NoAnswer` for figures (NaN aside) beyond `EXTREME` or, but for zero, closer to zero than its inverse."""
    size = np.abs(values[np.isfinite(values) & (values != 0)])
    wild = size[(size > EXTREME) | (size < 1 / EXTREME)]
    if wild.size:
        raise NoAnswer(RefusalKind.EXTREME, name, value=float(wild[0]), least=1 / EXTREME, most=EXTREME)


def spread(values: Floats) -> bool:
    """Whether values differ by more than rounding errors.

    Three values of 0.1 have a variance that is not quite zero, by rounding alone; no test means anything there.
    """
    return bool(np.ptp(values) > 1e-12 * np.abs(values).max())


def level_of(level: float) -> float:
    """A level of confidence, above 0 and below 1. Raises `NoAnswer`."""
    if not 0 < level < 1:
        raise NoAnswer(RefusalKind.LEVEL, level=level)
    return level


def names_of(names: Sequence[str], count: int) -> tuple[str, ...]:
    """The names, checked: as many as there are columns, all different. Raises `NoAnswer`."""
    if len(names) != count or len(set(names)) != count:
        raise NoAnswer(RefusalKind.NAMES, ", ".join(names), columns=count)
    return tuple(names)
