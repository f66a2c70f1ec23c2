"""Bottomley's horizontal attack profile: what a platform runs of the host's kernel, weighted by the density of bugs.

J. Bottomley, "Measuring the Horizontal Attack Profile of Nabla Containers" (2018): the chance that a tenant escapes
through the kernel is assumed to grow with the code that it makes the kernel run, times the density of bugs in that
code. "Horizontal" means attacks of a tenant on its neighbours through shared code. Without densities, every thing
counts 1, and the profile is a count. It does not measure security: it ignores how grave a bug is, checks on the way,
and code that an attacker would run and a benchmark does not.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from tare.errors import UsageError
from tare.features.kernel.analysis.footprint_sets import Things
from tare.features.kernel.analysis.overlaps import Place
from tare.inputs import parse_toml, read_text
from tare.records import Frozen, of_a_file

_FIX = 'in TOML: title, default and [density] with "net/" = 2.5; in CSV: the columns name and density'
_MIN_SCORE = 1e-12

Density = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class BugDensities(Frozen):
    """Densities of bugs, in any one unit: by directory or file ("net/", "net/core/dev.c"), by name, by "tcp_*"."""

    title: str = "uniform"
    default: Density = 1.0
    density: Mapping[Annotated[str, Field(min_length=1)], Density] = {}

    @property
    def uniform(self) -> bool:
        """True if all things have the same density."""
        return not self.density

    def of(self, thing: str, path: str | None) -> float | None:
        """Return the density of a thing: by its name, else by the longest part of its file's path, else by its prefix.

        None: no key matches, so the default applies.
        """
        if thing in self.density:
            return self.density[thing]
        keys = [*_prefixes(path), *(f"{thing[:end]}*" for end in range(len(thing), 0, -1))]
        return next((self.density[key] for key in keys if key in self.density), None)


@dataclass(frozen=True, slots=True)
class AttackProfile:
    """A platform's profile: the sum, the number of things, and the number of these with the default density."""

    score: float
    things: int
    by_default: int

    def of(self, other: AttackProfile) -> float | None:
        """Return the score divided by the other's, or None if that is zero."""
        return self.score / other.score if other.score > _MIN_SCORE else None


def attack_profile(reached: Things | AbstractSet[str], densities: BugDensities, place: Place) -> AttackProfile:
    """Return the sum of densities over these things. ``place`` gives the source file of a thing, or None."""
    if not densities.density:
        return AttackProfile(densities.default * len(reached), len(reached), len(reached))
    of_each = [densities.of(name, place(name)) for name in reached]
    score = math.fsum(densities.default if density is None else density for density in of_each)
    return AttackProfile(score, len(reached), of_each.count(None))


def load_densities(file: Path) -> BugDensities:
    """Load densities from a TOML or (by its name) CSV file. Raises `UsageError` with one line."""
    return parse(read_text(file, _FIX), str(file))


def parse(text: str, name: str) -> BugDensities:
    """Parse densities from TOML or (by the name's end) CSV text. Raises `UsageError`.

    ``name``: for the title and for errors.
    """
    content = _of_csv(text, name) if name.endswith(".csv") else parse_toml(text, name, _FIX)
    return of_a_file(BugDensities, {"title": Path(name).name, **content}, name, _FIX)


def _of_csv(text: str, name: str) -> dict[str, object]:
    """Parse CSV with one row for each name; the name ``default`` stands for all that are not listed."""
    try:
        rows: Sequence[dict[str, str]] = list(csv.DictReader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise UsageError(f"{name} is not CSV: {error}", fix=_FIX) from error
    if not rows or set(rows[0]) != {"name", "density"}:
        raise UsageError(f"{name} does not have the two columns name and density", fix=_FIX)
    density = {row["name"]: row["density"] for row in rows}
    default = density.pop("default", None)
    return {"density": density} | ({} if default is None else {"default": default})


def _prefixes(path: str | None) -> list[str]:
    """Return a path and the directories above it, nearest first, with and without a slash at the end."""
    if path is None:
        return []
    parts = path.split("/")
    above = ["/".join(parts[:depth]) for depth in range(len(parts) - 1, 0, -1)]
    return [path, *(prefix for directory in above for prefix in (f"{directory}/", directory))]
