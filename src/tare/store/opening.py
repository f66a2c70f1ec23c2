"""Creation and opening of campaigns by location. Other code uses a `Store` without knowing its kind.

This module loads quickly, for commands that only check if a campaign exists.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Protocol

from tare import lazily
from tare.errors import StoreError, UsageError
from tare.plugins import declared, with_plugins
from tare.store import places

if TYPE_CHECKING:
    from tare.store import shared_copy, sqlite
    from tare.store.protocol import Location, Marker, Store
    from tare.store.record import CampaignRecord
    from tare.store.shared_copy import ShareSummary
else:
    shared_copy = lazily.LazyModule("tare.store.shared_copy")
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

    def share(self, location: Location, out: IO[bytes], *, hosts: Iterable[str], users: Iterable[str]) -> ShareSummary:
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

    def share(self, location: Location, out: IO[bytes], *, hosts: Iterable[str], users: Iterable[str]) -> ShareSummary:
        return shared_copy.share(places.require_file(location), out, hosts=hosts, users=users)


@dataclass(frozen=True, slots=True)
class StoreKind:
    """A backend that a plug-in adds; ``name``: the scheme of its locations, ``NAME:/...``."""

    name: str
    backend: Backend


#: Entry point group of plug-ins' stores: a module with ``STORES``.
GROUP: Final = "tare.stores"

_FILES = _Files()
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+")


@functools.cache
def plugin_stores() -> Mapping[str, StoreKind]:
    """Return the stores of plug-ins by scheme. Broken ones are left out."""
    return with_plugins((), GROUP, stores_of)


def stores_of(module: object) -> Sequence[StoreKind]:
    """Return the stores that a module declares. Raises `UsageError` for anything else in ``STORES``."""
    stores = declared(module, "STORES", StoreKind)
    if not stores:
        raise UsageError("has no STORES", fix="STORES = (StoreKind(...),)")
    for kind in stores:
        if not _SCHEME.fullmatch(kind.name):
            raise UsageError(f"names the scheme {kind.name!r}", fix="small letters and digits")
    return stores


def backend(location: Location) -> Backend:
    """Return the backend of a location. Raises `StoreError` if there is none."""
    server = places.server_of(location)
    if server is None:
        return _FILES
    scheme, rest = server
    kind = plugin_stores().get(scheme)
    if kind is None:
        there_are = " and ".join(["files", *(f"{known}:/..." for known in sorted(plugin_stores()))])
        what = f"{scheme}://{rest}: no such store: only {there_are}"
        raise StoreError(what, fix="give a file, such as night.tare")
    return kind.backend


def create_store(location: Location, record: CampaignRecord, marked: Marker | None = None) -> Store:
    """Create a campaign. ``marked``: returns the mark of the record's author (`tare.campaign.execution.provenance`).

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


def share_store(location: Location, out: IO[bytes], *, hosts: Iterable[str], users: Iterable[str]) -> ShareSummary:
    """Write a copy for others, as a file (`tare.store.shared_copy`). Raises `StoreError`."""
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
