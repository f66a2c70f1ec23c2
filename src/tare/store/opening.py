"""The one place at which a campaign is made or opened, by its location: other code knows a `Store`, and not which."""

from __future__ import annotations

from typing import Protocol

from tare.store.places import local
from tare.store.record import CampaignRecord
from tare.store.sqlite import SqliteStore
from tare.store.store import Location, Marker, Store

_kept_in: list[Location] = []


class Backend(Protocol):
    """A way to keep campaigns."""

    def create(self, location: Location, record: CampaignRecord, marked: Marker | None = None) -> Store:
        """See `create_store`."""

    def open(self, location: Location) -> Store:
        """See `open_store`."""

    def read(self, location: Location) -> Store:
        """See `read_store`."""


def backend(location: Location) -> Backend:
    """The backend of a location. Raises `StoreError` where there is none."""
    local(location)
    return SqliteStore


def create_store(location: Location, record: CampaignRecord, marked: Marker | None = None) -> Store:
    """A new campaign. ``marked``: makes of the record's text what shows who wrote it (`tare.campaign.execution.trust`).

    Raises `StoreError` when there is something already (nothing is ever overwritten) or nothing can be made there.
    """
    store = backend(location).create(location, record, marked)
    _kept_in.append(location)
    return store


def open_store(location: Location) -> Store:
    """To go on with a campaign. Raises `StoreError`; another process that writes to it counts."""
    store = backend(location).open(location)
    _kept_in.append(location)
    return store


def read_store(location: Location) -> Store:
    """To read only, also while a run is writing. Raises `StoreError`."""
    return backend(location).read(location)


def kept_in() -> list[Location]:
    """The campaigns that this process made or went on with: after an interrupt, where what was measured is."""
    return list(_kept_in)
