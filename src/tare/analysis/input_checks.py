"""Checks of the input data of every estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tare.analysis.refusals import NoAnswer, RefusalKind

#: A figure farther from 1 than this factor is a tool's garbage, and its powers would overflow.
EXTREME = 1e30

Floats = NDArray[np.float64]


def sample(values: ArrayLike, name: str, *, at_least: int = 1, varied: bool = False, positive: bool = False) -> Floats:
    """Return one sample as an array of finite numbers. Raises `NoAnswer`.

    ``varied``: refuse values that are all equal. ``positive``: refuse zeros and negative values.
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
    """Return at least two samples by name, each as from `sample`. Raises `NoAnswer`."""
    if len(groups) < 2:
        raise NoAnswer(RefusalKind.ONE_GROUP)
    return {name: sample(values, name, at_least=at_least, varied=varied) for name, values in groups.items()}


def refuse_extremes(values: Floats, name: str) -> None:
    """Raise `NoAnswer` for figures (not NaN) beyond `EXTREME` or, unless zero, closer to zero than its inverse."""
    size = np.abs(values[np.isfinite(values) & (values != 0)])
    wild = size[(size > EXTREME) | (size < 1 / EXTREME)]
    if wild.size:
        raise NoAnswer(RefusalKind.EXTREME, name, value=float(wild[0]), least=1 / EXTREME, most=EXTREME)


def spread(values: Floats) -> bool:
    """Return True if values differ by more than rounding errors.

    By rounding alone, three values of 0.1 have a variance that is not quite zero, and any test would be meaningless.
    """
    return bool(np.ptp(values) > 1e-12 * np.abs(values).max())


def level_of(level: float) -> float:
    """Return a valid level of confidence, above 0 and below 1. Raises `NoAnswer`."""
    if not 0 < level < 1:
        raise NoAnswer(RefusalKind.LEVEL, level=level)
    return level


def names_of(names: Sequence[str], count: int) -> tuple[str, ...]:
    """Return the names after a check: as many as columns, all different. Raises `NoAnswer`."""
    if len(names) != count or len(set(names)) != count:
        raise NoAnswer(RefusalKind.NAMES, ", ".join(names), columns=count)
    return tuple(names)
