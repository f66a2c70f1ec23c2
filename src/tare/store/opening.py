"""Creation and opening of campaigns by location. Other code uses a `Store` without knowing its kind.

This module loads quickly, for commands that only check if a campaign exists.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from tare import lazily
from tare.errors import StoreError
from tare.store import places

if TYPE_CHECKING:
    from tare.store import share, sqlite
    from tare.store.record import CampaignRecord
    from tare.store.share import Shared
    from tare.store.store import Location, Marker, Store
else:
    share = lazily.LazyModule("tare.store.share")
    sqlite = lazily.LazyModule("tare.store.sqlite")

_kept_in: list[Location] = []


class Backend(Protocol):
    """A way to store campaigns."""

    def create(self, location: Location, record: CampaignRecord, marked: Marker | None = None) -> Store:
        """See `create_store`."""

    def open(self, location: Location) -> Store:
        """See `open_store`."""

    def read(self, location: Location) -> Store:
        """See `read_store`."""

    def exists(self, location: Location) -> bool:
        """See `exists`."""

    def share(self, location: Location, out: IO[bytes], *, hosts: Iterable[str], users: Iterable[str]) -> Shared:
        """See `share_store`."""


class _Files:
    """Campaigns in files, by SQLite."""

    def create(self, location: Location, record: CampaignRecord, marked: Marker | None = None) -> Store:
        return sqlite.SqliteStore.create(Path(location), record, marked)

    def open(self, location: Location) -> Store:
        return sqlite.SqliteStore.open(places.require_file(location))

    def read(self, location: Location) -> Store:
        return sqlite.SqliteStore.read(places.require_file(location))

    def exists(self, location: Location) -> bool:
        return Path(location).exists()

    def share(self, location: Location, out: IO[bytes], *, hosts: Iterable[str], users: Iterable[str]) -> Shared:
        return share.share(places.require_file(location), out, hosts=hosts, users=users)


_FILES = _Files()
#: Further backends, by the scheme of their locations: ``SCHEME:/...``.
BACKENDS: dict[str, Backend] = {}


def backend(location: Location) -> Backend:
    """Return the backend of a location. Raises `StoreError` if there is none."""
    server = places.server_of(location)
    if server is None:
        return _FILES
    scheme, rest = server
    if scheme not in BACKENDS:
        there_are = " and ".join(["files", *(f"{known}:/..." for known in sorted(BACKENDS))])
        what = f"{scheme}://{rest}: no such store: only {there_are}"
        raise StoreError(what, fix="give a file, such as night.tare")
    return BACKENDS[scheme]


def create_store(location: Location, record: CampaignRecord, marked: Marker | None = None) -> Store:
    """Create a campaign. ``marked``: returns the mark of the record's author (`tare.campaign.execution.trust`).

    Raises `StoreError` if the location exists (nothing is ever overwritten) or cannot be created.
    """
    store = backend(location).create(location, record, marked)
    _kept_in.append(location)
    return store


def open_store(location: Location) -> Store:
    """Open a campaign to continue it. Raises `StoreError`, also if another process is writing to it."""
    store = backend(location).open(location)
    _kept_in.append(location)
    return store


def read_store(location: Location) -> Store:
    """Open for reading only, also while a run is writing. Raises `StoreError`."""
    return backend(location).read(location)


def exists(location: Location) -> bool:
    """Return True if the location exists. Raises `StoreError` if that cannot be determined."""
    return backend(location).exists(location)


def share_store(location: Location, out: IO[bytes], *, hosts: Iterable[str], users: Iterable[str]) -> Shared:
    """Write a copy for others, as a file (`tare.store.share`). Raises `StoreError`."""
    return backend(location).share(location, out, hosts=hosts, users=users)


def file_of(location: Location) -> Path | None:
    """Return the file that a campaign is stored in, or None. Raises `StoreError` like `backend`."""
    return Path(location) if backend(location) is _FILES else None


def require_file_of(location: Location, why: str) -> Path:
    """Return the file that a campaign is stored in. Raises `StoreError`, with the reason ``why``, if there is none."""
    file = file_of(location)
    if file is None:
        raise StoreError(f"{location} is in no file: {why}", fix="name a file")
    return file


def kept_in() -> list[Location]:
    """Return the campaigns that this process created or continued, which hold the results after an interrupt."""
    return list(_kept_in)
