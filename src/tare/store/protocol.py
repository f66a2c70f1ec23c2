"""Protocol of a campaign's store: written by a campaign, read by analysis and report.

A store that is not a file is one more class with these methods, named in `tare.store.opening`;
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
#: Makes the mark of the record's author from the record's text (`tare.campaign.execution.provenance`).
Marker = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Event:
    """An event worth knowing during the campaign; ``at`` is UNIX time."""

    at: float
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The host's activity during a campaign, as counters: windows are differences of neighbouring ticks.

    ``host``: a row for each tick; ``cpus``: a row for each tick and CPU; ``instances``: a row for each tick and running
    instance, with ``platform`` and ``replica``. Columns and units are those of `tare.model.Tick` and its parts.
    """

    host: pl.DataFrame
    cpus: pl.DataFrame
    instances: pl.DataFrame


class Store(Protocol):
    """One campaign. `tare.store.opening` creates and opens stores; a context manager, closing on exit.

    Every write is durable and complete when it returns, or has no effect. All methods raise `StoreError` for data that
    cannot be read or written. A store belongs to the thread that opened it.
    """

    @property
    def location(self) -> str:
        """Its location, as messages name it."""

    @property
    def name(self) -> str:
        """The last part of the location, as a report names it."""

    @property
    def record(self) -> CampaignRecord:
        """The campaign's record of itself."""

    @property
    def record_text(self) -> str:
        """The text of the record exactly as it was written."""

    @property
    def unknown_fields(self) -> tuple[str, ...]:
        """Fields of the record that this tare does not know. They stay in it, and the campaign cannot be continued."""

    @property
    def mark(self) -> str | None:
        """The mark of the record's author; None if the record is not marked."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def close(self) -> None:
        """Close it. Another process may write to it then."""

    # --- what a campaign writes ----------------------------------------------------------------------------

    def working(self, boot: str | None = None) -> AbstractContextManager[None]:
        """Count the time inside as the campaign's work. Every write stores it: a kill loses only later time.

        ``boot``: the kernel's id of this boot.
        """

    def set_status(self, status: CampaignStatus) -> None:
        """Set the campaign's status."""

    def add_event(self, level: str, text: str) -> None:
        """Record an event worth knowing, with the time."""

    def add_attachment(self, name: str, data: bytes) -> None:
        """Store a file that explains something (a console log, for example). A name may occur more than once."""

    def plan_block(self, block: int, keys: Sequence[TrialKey]) -> None:
        """Append a block's trials to the schedule, in order. Raises `StoreError` for a duplicate trial."""

    def commit_trials(self, trials: Sequence[Trial], telemetry: Sequence[Tick] = ()) -> None:
        """Write trials with all their data, and the ticks since the last write.

        Raises `StoreError` for a trial that already exists, or that the record does not know.
        """

    def add_footprint(self, footprint: Footprint) -> None:
        """Store what ran in the host's kernel."""

    def add_surface(self, surface: Surface) -> None:
        """Store the kernel calls that a platform allows, beside earlier surfaces of the platform."""

    # --- what is read of it --------------------------------------------------------------------------------

    def snapshot(self) -> AbstractContextManager[None]:
        """Make all reads inside see the same state, also while a run is writing."""

    @property
    def status(self) -> CampaignStatus:
        """Return the campaign's status."""

    def segments(self) -> list[Segment]:
        """Return the working periods in order; if none is recorded, `tare.store.segments.estimated`."""

    def events(self) -> list[Event]:
        """Return all events in order."""

    def attachments(self) -> list[tuple[str, bytes]]:
        """Return all attachments in order, as name and contents."""

    def schedule(self) -> list[TrialKey]:
        """Return all planned trials in order; a trial's ``seq`` is its position here."""

    def done(self) -> set[TrialKey]:
        """Return the stored trials, however they ended."""

    def outputs(self, key: TrialKey) -> dict[str, Output]:
        """Return the raw outputs of a trial by name; empty if it has none."""

    def samples(self, first: int = 0, end: int | None = None) -> pl.DataFrame:
        """Return every sample of every successful trial, in blocks from ``first`` to before ``end`` (None: the last).

        Columns: block, workload, platform, replica, metric, round, value. Samples of a failed trial are in the store
        and in `tare export`, but never in an estimate.
        """

    def trials(self) -> pl.DataFrame:
        """Return every trial, in order of the schedule: its key, status and reason, and the host's observations.

        Columns: seq, block, workload, platform, replica, status, reason, started (UNIX s), wall_ns, cpu_ns,
        daemon_cpu_ns, steal, pressure, load; null if the host could not see it; clock_offset_ns, clock_offset_error_ns,
        clock_rate_low, clock_rate_high: `tare.model.ClockFacts`, null if a clock inside timed nothing; turn_s
        (`tare.store.durations`).
        """

    def slices(self) -> pl.DataFrame:
        """Return every slice of every trial, in ns of the host's monotonic clock.

        Columns: block, workload, platform, replica, round, position, start_ns, wall_ns, cpu_ns, daemon_cpu_ns, late_ns.
        """

    def telemetry(self) -> Telemetry:
        """Return the host's activity during the campaign; empty frames if it is unknown."""

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield every sample with the facts of its trial, whatever its status; a trial without samples yields one row.

        Keys: the columns of `trials` without those of the clock inside and turn_s, then metric, round and value (None
        without a sample). Streams.
        """

    def footprints(self) -> Iterator[Footprint]:
        """Yield all footprints in order. A name is the same object in all of them."""

    def surfaces(self) -> Iterator[Surface]:
        """Yield all surfaces in the order in which they were stored."""
