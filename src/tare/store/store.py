"""The protocol of a campaign's store: what a campaign writes, and what analysis and report read of it.

A store that is no file is one more class with these methods, named in `tare.store.opening`;
`tests/store/test_store_contract.py` checks it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

import polars as pl

from tare.footprint_model import Footprint, Surface
from tare.model import CampaignStatus, Tick, Trial, TrialKey
from tare.store.packed import Output
from tare.store.record import CampaignRecord
from tare.store.segments import Segment

Location = Path | str
#: Makes the mark from the record's text: what shows who wrote it (`tare.campaign.execution.trust`).
Marker = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Event:
    """Something worth knowing that happened while the campaign ran; ``at`` is UNIX time."""

    at: float
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What the host was doing while a campaign ran, as counters: windows are differences of neighbouring ticks.

    ``host``: a row a tick; ``cpus``: a row a tick and CPU; ``instances``: a row a tick and running instance, with
    ``platform`` and ``replica``. Columns and units are those of `tare.model.Tick` and its parts.
    """

    host: pl.DataFrame
    cpus: pl.DataFrame
    instances: pl.DataFrame


class Store(Protocol):
    """One campaign. `tare.store.opening` makes and opens them; a context manager, closing on exit.

    Every write is durable and whole when it returns, or nothing of it is there. All methods raise `StoreError` for what
    cannot be read or written. A store belongs to the thread that opened it.
    """

    @property
    def location(self) -> str:
        """Where it is, as messages name it."""

    @property
    def name(self) -> str:
        """The last part of that, as a report names it."""

    @property
    def record(self) -> CampaignRecord:
        """What the campaign recorded of itself."""

    @property
    def record_text(self) -> str:
        """The text of the record exactly as it was written."""

    @property
    def unknown_fields(self) -> tuple[str, ...]:
        """Fields of the record that this tare does not know. They stay in it, and no campaign goes on with them."""

    @property
    def mark(self) -> str | None:
        """What shows who wrote the record; None where an older tare did."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def close(self) -> None:
        """Close it; another process may write to it then."""

    # --- what a campaign writes ----------------------------------------------------------------------------

    def working(self, boot: str | None = None) -> AbstractContextManager[None]:
        """Time in here is the campaign's work. Every write keeps how far it came: a kill loses what came after.

        ``boot``: the kernel's id of this boot.
        """

    def set_status(self, status: CampaignStatus) -> None:
        """Set the campaign's status."""

    def add_event(self, level: str, text: str) -> None:
        """Record something worth knowing, with the time."""

    def add_attachment(self, name: str, data: bytes) -> None:
        """Keep a file that explains something (say, a console log); the same name may occur more than once."""

    def plan_block(self, block: int, keys: Sequence[TrialKey]) -> None:
        """Append a block's trials to the schedule, in order. Raises `StoreError` when one is there already."""

    def commit_trials(self, trials: Sequence[Trial], telemetry: Sequence[Tick] = ()) -> None:
        """Write trials with all that belongs to them, and the ticks that came meanwhile.

        Raises `StoreError` for a trial that is there already, or one that the record does not know.
        """

    def add_footprint(self, footprint: Footprint) -> None:
        """Keep what ran in the host's kernel."""

    def add_surface(self, surface: Surface) -> None:
        """Keep what a platform may ask of the host's kernel; those of the platform that are there stay beside it."""

    # --- what is read of it --------------------------------------------------------------------------------

    def snapshot(self) -> AbstractContextManager[None]:
        """All that is read inside is of one instant, also while a run is writing."""

    @property
    def status(self) -> CampaignStatus:
        """How the campaign stands."""

    def segments(self) -> list[Segment]:
        """When the campaign was at work, in order; where it is not recorded, `tare.store.segments.estimated`."""

    def events(self) -> list[Event]:
        """All events in order."""

    def attachments(self) -> list[tuple[str, bytes]]:
        """All attachments in order, as name and contents."""

    def schedule(self) -> list[TrialKey]:
        """All planned trials in order; a trial's ``seq`` is its place here."""

    def done(self) -> set[TrialKey]:
        """The trials that are in it, however they ended."""

    def outputs(self, key: TrialKey) -> dict[str, Output]:
        """The raw outputs of a trial by name; empty when it has none."""

    def samples(self, first: int = 0, end: int | None = None) -> pl.DataFrame:
        """Every sample of every trial that ended ok, in blocks from ``first`` to before ``end`` (None: the last).

        Columns: block, workload, platform, replica, metric, round, value. What a failed trial left is there and in
        `tare export`, and never in an estimate.
        """

    def trials(self) -> pl.DataFrame:
        """Every trial, in order of the schedule: its key, how it ended and why, and what the host saw of it.

        Columns: seq, block, workload, platform, replica, status, reason, started (UNIX s), wall_ns, cpu_ns,
        daemon_cpu_ns, steal, pressure, load; null where the host could not see it; clock_offset_ns,
        clock_offset_error_ns, clock_rate_low, clock_rate_high: `tare.model.ClockFacts`, null where nothing was timed
        by a clock inside; turn_s (`tare.store.durations`).
        """

    def slices(self) -> pl.DataFrame:
        """Every slice of every trial, in ns of the host's monotonic clock.

        Columns: block, workload, platform, replica, round, position, start_ns, wall_ns, cpu_ns, daemon_cpu_ns, late_ns.
        """

    def telemetry(self) -> Telemetry:
        """What the host was doing meanwhile; empty frames where nothing is known of it."""

    def rows(self) -> Iterator[dict[str, object]]:
        """Every sample with the facts of its trial, whatever its status; a trial without samples gives one row.

        Keys: the columns of `trials` but those of the clock inside and turn_s, then metric, round and value (None where
        there is no sample). Streams.
        """

    def footprints(self) -> Iterator[Footprint]:
        """All footprints in order, one after the other; the names of what ran are the same objects throughout."""

    def surfaces(self) -> Iterator[Surface]:
        """All surfaces in the order in which they were stored."""
