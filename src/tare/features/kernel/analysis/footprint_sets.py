"""Footprints of one level as sets: what a platform ran of the host's kernel, compared with the idle host.

Sets are made as by Anjali, Caraza-Harter and Swift (VEE 2020, section 3.3): each workload's own, then the union over
workloads. Repeats of a workload are treated as one longer run: their hits and seconds are added up first, so that a
union over repeats does not collect the noise of each repeat's background.

If reading a counter is itself counted, empty readings measure these hits. They are subtracted before rates are
computed, because they do not depend on how long the window was. As a rate, half of them would remain in a window of
twice the length.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tare.analysis.refusals import NoAnswer, RefusalKind
from tare.footprint_model import EMPTY, IDLE, Footprint, Phase, Scope
from tare.model import Level

Things = frozenset[str]
_NOTHING: Mapping[str, int] = {}
_Key = tuple[str, Scope, Phase, str | None]  # Platform, scope, phase, workload.


class View(StrEnum):
    """Selection of the counted things that are attributed to a platform."""

    HOST = "host"  # All that ran on the host, without the readings.
    BEYOND_IDLE = "beyond-idle"  # Things of the host's view that ran more often than on the idle host.
    INSTANCE = "instance"  # Things that ran for processes of the instance: no background to subtract.

    @property
    def scope(self) -> Scope:
        """The scope of the footprints that the view is made from."""
        return Scope.INSTANCE if self is View.INSTANCE else Scope.HOST


#: The views, the best first: that of the instance alone needs no background to be subtracted.
_BEST = (View.INSTANCE, View.BEYOND_IDLE, View.HOST)


@dataclass(frozen=True, slots=True)
class PooledFootprints:
    """Several footprints as one: hits, and the seconds of counting."""

    hits: Mapping[str, int]
    seconds: float
    lost: int
    footprints: int

    def rate(self, thing: str) -> float:
        """Return the hits of one thing a second, over all of the pool's time; 0 if it has none."""
        return self.hits.get(thing, 0) / self.seconds

    @property
    def whole_rate(self) -> float:
        """Return the hits of all things a second, over all of the pool's time."""
        return sum(self.hits.values()) / self.seconds


def pooled(footprints: Iterable[Footprint], reading_hits: Mapping[str, int] = _NOTHING) -> PooledFootprints | None:
    """Return the sum of these footprints minus ``reading_hits`` for each reading; None without footprints.

    A thing with no more hits than the readings themselves is left out: it was not shown to have run.
    """
    whole = summed(PooledFootprints(footprint.hits, footprint.seconds, footprint.lost, 1) for footprint in footprints)
    return whole and replace(whole, hits=_beyond_readings(whole.hits, reading_hits, whole.footprints))


def summed(pools: Iterable[PooledFootprints]) -> PooledFootprints | None:
    """Return several pools as one; None without pools."""
    hits: defaultdict[str, int] = defaultdict(int)
    seconds, lost, count = 0.0, 0, 0
    for pool in pools:
        for name, number in pool.hits.items():
            hits[name] += number
        seconds += pool.seconds
        lost += pool.lost
        count += pool.footprints
    return PooledFootprints(hits, seconds, lost, count) if count else None


def left_by_readings(empty: Iterable[Footprint]) -> dict[str, int]:
    """Return the hits that a reading itself causes: for each thing, the maximum over these empty readings.

    The maximum and not the mean: readings vary, and their variation must not look like work. So rather too much is
    subtracted than too little, from the idle host as from all others.
    """
    most_hits: dict[str, int] = {}
    for reading in empty:
        for name, hits in reading.hits.items():
            most_hits[name] = max(hits, most_hits.get(name, 0))
    return most_hits


def _beyond_readings(hits: Mapping[str, int], reading_hits: Mapping[str, int], readings: int) -> dict[str, int]:
    return {
        name: remaining
        for name, count in hits.items()
        if (remaining := count - readings * reading_hits.get(name, 0)) > 0
    }


def beyond(pool: PooledFootprints, idle: PooledFootprints) -> Things:
    """Return the things whose rate of hits exceeds that of the idle host (Anjali 2020, section 3.3).

    The comparison is strict and has no error term: for the background's own things it is a toss-up, "we minimize the
    noise from the background processes, though we cannot eliminate it completely".
    """
    # Multiply out, because a quotient would round equal rates to unequal ones.
    return frozenset(
        name for name, hits in pool.hits.items() if hits * idle.seconds > idle.hits.get(name, 0) * pool.seconds
    )


class Exposure:
    """All footprints of one level in a campaign file, and the sets made of them.

    ``phase`` None in its methods: the start and the work together. ``workload`` None: the union over all. ``left``: the
    hits that a reading itself causes, from the file's empty readings; None if it has none.
    """

    def __init__(self, footprints: Iterable[Footprint]) -> None:
        """Index the footprints. Raises `NoAnswer` if there are none, and for footprints of different levels."""
        all_footprints = list(footprints)
        levels = {footprint.level for footprint in all_footprints}
        if len(levels) != 1:
            raise NoAnswer(RefusalKind.LEVELS, levels=len(levels))
        self.level: Level = levels.pop()
        empty = [footprint for footprint in all_footprints if footprint.platform == EMPTY]
        self.left: Mapping[str, int] | None = left_by_readings(empty) if empty else None
        self.idle = pooled(
            (footprint for footprint in all_footprints if footprint.platform == IDLE and footprint.scope is Scope.HOST),
            self.left or {},
        )
        self._parts: dict[_Key, list[Footprint]] = {}
        for footprint in all_footprints:
            if footprint.platform not in {IDLE, EMPTY}:
                self._parts.setdefault(
                    (footprint.platform, footprint.scope, footprint.phase, footprint.workload), []
                ).append(footprint)
        self.platforms: tuple[str, ...] = tuple(dict.fromkeys(key[0] for key in self._parts))
        self.workloads: tuple[str, ...] = tuple(dict.fromkeys(key[3] for key in self._parts if key[3] is not None))
        # Modules are loaded and unloaded between two footprints, so take the largest number at any time.
        self.known: int | None = max(
            (footprint.known for footprint in all_footprints if footprint.known is not None), default=None
        )
        self._pools: dict[_Key, PooledFootprints] = {}
        self._things: dict[tuple[str, View, Phase, str | None], Things] = {}

    def views(self) -> tuple[View, ...]:
        """Return the views for which there are footprints."""
        scopes = {key[1] for key in self._parts}
        return tuple(
            view for view in View if view.scope in scopes and (view is not View.BEYOND_IDLE or self.idle is not None)
        )

    def best_view(self) -> View | None:
        """Return the view to use if only one is shown; None if only the idle host was counted."""
        return next((view for view in _BEST if view in self.views()), None)

    def phases(self) -> tuple[Phase, ...]:
        """Return the phases that were counted."""
        counted = {key[2] for key in self._parts}
        return tuple(phase for phase in Phase if phase in counted)

    def parts(self, platform: str, scope: Scope, phase: Phase, workload: str | None) -> Sequence[Footprint]:
        """Return the footprints of exactly this phase and workload, as they were read: one for each repeat."""
        return self._parts.get((platform, scope, phase, workload), ())

    def hits(self, footprint: Footprint) -> Mapping[str, int]:
        """Return the hits of a footprint without those of its reading."""
        reading_hits = self._reading_hits(footprint.scope)
        return _beyond_readings(footprint.hits, reading_hits, 1) if reading_hits else footprint.hits

    def counted(
        self, platform: str, scope: Scope, phase: Phase | None = None, workload: str | None = None
    ) -> list[Footprint]:
        """Return all matching footprints of every repeat; empty if it was not counted."""
        return [footprint for key in self._keys(platform, scope, phase, workload) for footprint in self._parts[key]]

    def pool(
        self, platform: str, scope: Scope, phase: Phase | None = None, workload: str | None = None
    ) -> PooledFootprints | None:
        """Return all repeats as one, without the hits of their readings; None if it was not counted."""
        return summed(self._pool(key) for key in self._keys(platform, scope, phase, workload))

    def things(self, platform: str, view: View, phase: Phase | None = None, workload: str | None = None) -> Things:
        """Return what a platform ran: each workload's repeats as one run, then the union; empty if not counted."""
        if view not in self.views():
            return frozenset()
        sets = (self._ran(key, view) for key in self._keys(platform, view.scope, phase, workload))
        return frozenset().union(*sets)

    def repeats(
        self, platform: str, view: View, phase: Phase | None = None, workload: str | None = None
    ) -> tuple[Things, ...]:
        """Return the `things` of a platform by repeat, one set for each.

        A repeat in which a part of the union was not counted has no set.

        The platform's things are selected once, from all repeats. If each repeat were compared with the idle host by
        itself, toss-ups among the background's things would look like rare things of the platform.
        """
        keys = self._keys(platform, view.scope, phase, workload)
        if view not in self.views() or not keys:
            return ()
        by_key = [
            {
                footprint.repeat: self._ran(key, view).intersection(self.hits(footprint))
                for footprint in self._parts[key]
            }
            for key in keys
        ]
        whole = set(by_key[0]).intersection(*by_key[1:])
        return tuple(frozenset().union(*(by_repeat[number] for by_repeat in by_key)) for number in sorted(whole))

    def lacking(self, platform: str, scope: Scope) -> tuple[str, ...]:
        """Return the workloads in which others were counted but not this platform, so its union covers fewer."""
        platform_workloads = {key[3] for key in self._parts if key[:2] == (platform, scope)}
        anywhere = {key[3] for key in self._parts if key[1] is scope}
        return tuple(name for name in self.workloads if name in anywhere - platform_workloads)

    def _keys(self, platform: str, scope: Scope, phase: Phase | None, workload: str | None) -> list[_Key]:
        keys = [key for key in self._parts if key[:2] == (platform, scope) and phase in {None, key[2]}]
        return keys if workload is None else [key for key in keys if key[3] in {None, workload}]

    def _ran(self, key: _Key, view: View) -> Things:
        cached = (key[0], view, *key[2:])
        if cached not in self._things:
            pool = self._pool(key)
            idle = self.idle if view is View.BEYOND_IDLE else None
            self._things[cached] = frozenset(pool.hits) if idle is None else beyond(pool, idle)
        return self._things[cached]

    def _pool(self, key: _Key) -> PooledFootprints:
        if key not in self._pools:
            pool = pooled(self._parts[key], self._reading_hits(key[1]))
            assert pool is not None, "a key has footprints"
            self._pools[key] = pool
        return self._pools[key]

    def _reading_hits(self, scope: Scope) -> Mapping[str, int]:
        """Return the hits of a reading itself: tare's own work, which is in no instance's scope."""
        return _NOTHING if self.left is None or scope is Scope.INSTANCE else self.left
