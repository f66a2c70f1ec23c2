"""Footprints of one level as a table a workload: what each platform ran, how often, and what only it did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tare.footprint.model import EMPTY, IDLE, Footprint, Phase, Scope


@dataclass(frozen=True, slots=True)
class Pool:
    """Repeats as one longer run. ``seconds``: of all of them."""

    names: frozenset[str]
    hits: int
    seconds: float
    lost: int

    @property
    def rate(self) -> float:
        """Hits a second."""
        return self.hits / self.seconds

    @classmethod
    def of(cls, footprints: Iterable[Footprint]) -> Pool | None:
        """None where there are none."""
        every = list(footprints)
        if not every:
            return None
        return cls(
            frozenset(name for one in every for name in one.hits),
            sum(sum(one.hits.values()) for one in every),
            sum(one.seconds for one in every),
            sum(one.lost for one in every),
        )


@dataclass(frozen=True, slots=True)
class Row:
    """A platform's start and one workload on it; None where it was not counted."""

    platform: str
    start: Pool | None  # of the instance, as the next
    steady: Pool | None
    everybody: Pool | None  # of the workload
    #: what no other platform of the table ran, in the start or in the workload; empty where only everybody's is known
    only: tuple[str, ...]


def rows(footprints: Sequence[Footprint], workload: str | None) -> list[Row]:
    """A row a platform, in the order in which they first come; last the idle host and empty readings, where counted.

    ``workload`` None: of the start alone.
    """
    mine = [one for one in footprints if one.workload in {workload, None}]
    names = list(dict.fromkeys(one.platform for one in mine if one.platform not in {IDLE, EMPTY}))
    own = {name: _names(one for one in mine if (one.platform, one.scope) == (name, Scope.INSTANCE)) for name in names}
    table = [_row(mine, name, own) for name in names]
    others = {name: Pool.of(one for one in mine if one.platform == name) for name in (IDLE, EMPTY)}
    return [*table, *(Row(name, None, None, pool, ()) for name, pool in others.items() if pool)]


def workloads(footprints: Iterable[Footprint]) -> list[str]:
    """All that were counted, in the order in which they first come."""
    return list(dict.fromkeys(one.workload for one in footprints if one.workload is not None))


def _row(mine: Sequence[Footprint], name: str, own: dict[str, frozenset[str]]) -> Row:
    here = [one for one in mine if one.platform == name]
    others = frozenset[str]().union(*(names for other, names in own.items() if other != name))
    return Row(
        platform=name,
        start=_pool(here, Phase.START, Scope.INSTANCE),
        steady=_pool(here, Phase.STEADY, Scope.INSTANCE),
        everybody=_pool(here, Phase.STEADY, Scope.HOST),
        only=tuple(sorted(own[name] - others)),
    )


def _pool(here: Sequence[Footprint], phase: Phase, scope: Scope) -> Pool | None:
    return Pool.of(one for one in here if (one.phase, one.scope) == (phase, scope))


def _names(footprints: Iterable[Footprint]) -> frozenset[str]:
    return frozenset(name for one in footprints for name in one.hits)
