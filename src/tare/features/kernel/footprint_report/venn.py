"""Venn diagrams of two or three sets as circles: areas of sets and of pairwise intersections are in proportion.

No library draws them. matplotlib-venn places three circles by the same rule, but refuses sets that contain one another
(VennRegionException; native's set is nearly always within a container's), and needs matplotlib, which would be a
dependency for this alone and has no dark theme. Four sets and more are shown as an UpSet plot: circles cannot show all
their regions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tare import lazily
from tare.features.kernel.analysis.overlaps import Region, shared

if TYPE_CHECKING:
    from scipy import optimize
else:
    optimize = lazily.LazyModule("scipy.optimize")

Floats = NDArray[np.float64]

#: Size of the drawing, and the margin around the circles.
WIDTH, HEIGHT = 340.0, 240.0
_MARGIN = 6.0
#: Room that a number needs in its region: above and below its middle, and per character to either side (half a digit at
#: the page's font size). Numbers that do not fit are listed below the diagram.
_CLEAR, _CHARACTER = 7.5, 4.3
_GRID = 160
#: Distance of the centres of disjoint circles, as a multiple of the sum of their radii.
_APART = 1.04


@dataclass(frozen=True, slots=True)
class SetKey:
    """A set's name and size; ``number``: its place among all names, from 1: the same style in all diagrams."""

    number: int
    name: str
    things: int


@dataclass(frozen=True, slots=True)
class Circle:
    """One set that is not empty; ``number`` is that of its `SetKey`."""

    number: int
    x: float
    y: float
    r: float


@dataclass(frozen=True, slots=True)
class Number:
    """The size of a region, written in its middle."""

    things: int
    names: tuple[str, ...]
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Venn:
    """A diagram; ``below``: the numbers of regions that are too small to be written into."""

    keys: tuple[SetKey, ...]  # of all sets, the empty ones too
    circles: tuple[Circle, ...]
    numbers: tuple[Number, ...]
    below: tuple[tuple[tuple[str, ...], int], ...]


def venn(names: Sequence[str], regions: Mapping[Region, int], all_names: Sequence[str] = ()) -> Venn | None:
    """The diagram of up to three sets; None for more, and where all are empty. ``all_names``: those of all diagrams."""
    sizes = {name: shared(regions, [name]) for name in names}
    drawn = [name for name in names if sizes[name]]
    if not drawn or len(names) > 3:
        return None
    radii = np.sqrt(np.array([sizes[name] for name in drawn]) / math.pi)
    centres, radii = _fitted(_centres(radii, _pairs(drawn, regions)), radii)
    numbers, below = [], []
    field = _Field(centres, radii)
    for region, count in regions.items():
        place = field.middle([name in region for name in drawn], _CHARACTER * len(f"{count:,}"))
        if place is None:
            below.append((region, count))
        else:
            numbers.append(Number(count, region, *place))
    number = {name: at for at, name in enumerate(all_names or names, 1)}
    keys = tuple(SetKey(number[name], name, size) for name, size in sizes.items())
    circles = tuple(
        Circle(number[name], x, y, r) for name, (x, y), r in zip(drawn, centres.tolist(), radii.tolist(), strict=True)
    )
    return Venn(keys, circles, tuple(numbers), tuple(below))


def lens(d: float, r: float, s: float) -> float:
    """The area that two circles of radii ``r`` and ``s`` share, their centres ``d`` apart."""
    if d >= r + s:
        return 0.0
    if d <= abs(r - s):
        return math.pi * min(r, s) ** 2
    a = r * r * math.acos(_cosine((d * d + r * r - s * s) / (2 * d * r)))
    b = s * s * math.acos(_cosine((d * d + s * s - r * r) / (2 * d * s)))
    kite = (-d + r + s) * (d + r - s) * (d - r + s) * (d + r + s)
    return a + b - 0.5 * math.sqrt(max(0.0, kite))


def distance(r: float, s: float, area: float) -> float:
    """The distance of the centres of circles of radii ``r`` and ``s`` that share ``area``; the inverse of `lens`."""
    near, far = abs(r - s), r + s
    if area <= 0:
        return far * _APART
    if area >= math.pi * min(r, s) ** 2 * (1 - 1e-12):
        return near
    return float(optimize.brentq(lambda d: lens(d, r, s) - area, near, far))


def _cosine(value: float) -> float:
    return min(1.0, max(-1.0, value))


def _pairs(names: Sequence[str], regions: Mapping[Region, int]) -> dict[tuple[int, int], int]:
    return {
        (i, j): shared(regions, [names[i], names[j]]) for i, j in itertools.combinations(range(len(names)), 2)
    }  # fmt: skip


def _centres(radii: Floats, pairs: Mapping[tuple[int, int], int]) -> Floats:
    """Centres, shape (n, 2), at which each two circles share their area in ``pairs``; for three, nearly so."""
    apart = {(i, j): distance(radii[i], radii[j], area) for (i, j), area in pairs.items()}
    centres = np.zeros((radii.size, 2))
    if radii.size == 1:
        return centres
    centres[1, 0] = apart[0, 1]
    if radii.size == 2:
        return centres
    ab, ac, bc = apart[0, 1], apart[0, 2], apart[1, 2]
    x = 0.0 if ab == 0 else (ac * ac - bc * bc + ab * ab) / (2 * ab)
    height = ac * ac - x * x
    if ab > 0 and height > 0:
        # The third circle goes below the other two.
        centres[2] = (x, -math.sqrt(height))
        return centres
    # The distances make no triangle: start with the third on the line of the first two, at its distance from the first.
    centres[2] = (math.copysign(ac, x), -1e-3 * radii.max())
    return _nearest(centres, radii, pairs)


def _nearest(centres: Floats, radii: Floats, pairs: Mapping[tuple[int, int], int]) -> Floats:
    """The centres with the least squared error of the shared areas, where the distances make no triangle."""

    def wrong(flat: Floats) -> float:
        at = flat.reshape(3, 2)
        total = 0.0
        for (i, j), area in pairs.items():
            total += (lens(float(np.hypot(*(at[i] - at[j]))), radii[i], radii[j]) - area) ** 2
        return total

    solution = optimize.minimize(
        wrong, centres.ravel(), method="Nelder-Mead", options={"maxiter": 2_000, "fatol": 1e-3}
    )
    return np.asarray(solution.x).reshape(3, 2)


def _fitted(centres: Floats, radii: Floats) -> tuple[Floats, Floats]:
    """Centres and radii scaled to the drawing and moved into its middle."""
    low, high = (centres - radii[:, None]).min(axis=0), (centres + radii[:, None]).max(axis=0)
    room = (WIDTH - 2 * _MARGIN, HEIGHT - 2 * _MARGIN)
    scale = float(min(room[0] / (high[0] - low[0]), room[1] / (high[1] - low[1])))
    middle = (low + high) / 2
    moved = (centres - middle) * scale * np.array([1.0, -1.0]) + np.array([WIDTH / 2, HEIGHT / 2])
    return moved, radii * scale


class _Field:
    """The drawing as a grid of points: for each, the circles that it is in, and its distance from the nearest edge."""

    def __init__(self, centres: Floats, radii: Floats) -> None:
        x, y = np.meshgrid(np.linspace(0, WIDTH, _GRID), np.linspace(0, HEIGHT, _GRID))
        away = np.hypot(x[..., None] - centres[:, 0], y[..., None] - centres[:, 1]) - radii
        self._x, self._y = x, y
        self._inside, self._clear = away < 0, np.abs(away).min(axis=-1)

    def middle(self, region: Sequence[bool], half: float) -> tuple[float, float] | None:
        """The point of a region with most room for a number of width 2 ``half``; None where it does not fit.

        ``region``: for each circle, whether the point is to be in it.
        """
        clear = np.where((self._inside == region).all(axis=-1), self._clear, -1.0)
        steps = math.ceil(half / WIDTH * (_GRID - 1))
        wide = np.full_like(clear, -1.0)
        ends = np.minimum(clear[:, : -2 * steps], clear[:, 2 * steps :])
        wide[:, steps:-steps] = np.minimum(clear[:, steps:-steps], ends)
        at = int(wide.argmax())
        return (float(self._x.flat[at]), float(self._y.flat[at])) if wide.flat[at] >= _CLEAR else None
