"""A connection to the catalogue, its tables by migrations, and errors of a database in words for a user."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tare.catalogue.address import EXAMPLE, CatalogueAddress
from tare.errors import StoreError
from tare.report.formats.extras import load
from tare.safe_text import clean, encodable

_HERE = Path(__file__).parent
MIGRATIONS = _HERE / "migrations"
#: Seconds for a connection, and for a statement that waits for a lock of somebody else's.
_CONNECT_S, _LOCK_S = 10, 60
#: Characters that are read, and shown, of the database's reason.
_MAX_READ, _MAX_REASON = 10_000, 300


@functools.cache
def statement(name: str) -> bytes:
    """Read one of our statements, by its name."""
    return (_HERE / "sql" / f"{name}.sql").read_bytes()


@contextlib.contextmanager
def connected(address: CatalogueAddress, feature: str, *, read_only: bool) -> Iterator[Any]:
    """Connect (psycopg) in one transaction, which the end of the context commits.

    ``feature``: the command that needs it. Raises `StoreError` for what the database refuses, and `UsageError` where
    psycopg is not installed.
    """
    psycopg = load("psycopg", feature, extra="postgres")
    with _translated(psycopg, address):
        settings = {"application_name": "tare"} | _unless_given(address, "connect_timeout", _CONNECT_S)
        with psycopg.connect(address.url, **settings) as connection:
            connection.read_only = read_only
            if read_only:  # all that is read is of one instant
                connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            else:
                connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_S}s'".encode())
            _refuse_stranger(connection, address)
            yield connection


def _refuse_stranger(connection: Any, address: CatalogueAddress) -> None:
    """Raise `StoreError` where a superuser would run what another role has put into the tables: triggers, views."""
    owner = connection.execute(statement("stranger")).fetchone()
    if owner is not None:
        raise StoreError(
            f"{address.masked(address.url)}: the catalogue is {encodable(owner[0])}'s, and its triggers would run as a"
            " superuser",
            fix="connect as a role that is no superuser, with rights to the schema tare alone",
        )


def _unless_given(address: CatalogueAddress, name: str, value: int) -> dict[str, int]:
    return {} if f"{name}=" in address.url else {name: value}


@contextlib.contextmanager
def _translated(psycopg: Any, address: CatalogueAddress) -> Iterator[None]:
    try:
        yield
    except psycopg.OperationalError as error:
        raise StoreError(
            f"{address.masked(address.url)}: {_reason(address, error)}",
            fix=f"see that it answers and takes this user: psql {address.masked(address.url)};"
            " PGPASSFILE or PGPASSWORD gives a password",
        ) from None
    except psycopg.errors.InsufficientPrivilege as error:
        raise StoreError(
            f"{address.masked(address.url)}: {_reason(address, error)}",
            fix="the first tare store push needs CREATE on the database, later ones the tables of the schema tare",
        ) from None
    except psycopg.ProgrammingError as error:
        fix = f"give an address such as {EXAMPLE}"
        raise StoreError(f"{address.masked(address.url)}: {_reason(address, error)}", fix=fix) from None
    except psycopg.Error as error:
        raise StoreError(f"{address.masked(address.url)}: {_reason(address, error)}") from None


def _reason(address: CatalogueAddress, error: Exception) -> str:
    """Return the database's reason in one line; who answers may be anybody."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = address.masked(clean(lines[0][:_MAX_READ])) if lines else type(error).__name__
    return text if len(text) <= _MAX_REASON else f"{text[: _MAX_REASON - 1]}…"


def newest(folder: Path = MIGRATIONS) -> int:
    """Return the version of the tables that this tare knows."""
    return max(int(file.stem) for file in folder.glob("*.sql"))


def migrate(connection: Any, address: CatalogueAddress, folder: Path = MIGRATIONS) -> None:
    """Make the tables, or bring them up to this tare's, in the connection's transaction: all or nothing of it is done.

    Raises `StoreError` for tables of a newer tare.
    """
    connection.execute(statement("prepare"), prepare=False)
    version = _version(connection)
    _refuse_newer(version, address, folder)
    for file in sorted(folder.glob("*.sql")):
        number = int(file.stem)
        if number > version:
            connection.execute(file.read_bytes(), prepare=False)
            connection.execute(statement("set_version"), {"number": number})


def require_tables(connection: Any, address: CatalogueAddress) -> None:
    """Raise `StoreError` where there is no catalogue, or one of another version of tare."""
    exists = connection.execute(statement("has_catalogue")).fetchone()[0]
    version = _version(connection) if exists else 0
    if not version:
        raise StoreError(
            f"{address.masked(address.url)} has no catalogue of tare's",
            fix="fill it: tare store push FILE.tare ADDRESS",
        )
    _refuse_newer(version, address, MIGRATIONS)
    if version < newest():
        raise StoreError(
            f"{address.masked(address.url)} has the catalogue of an older tare (version {version} of {newest()})",
            fix="bring it up, by any push: tare store push FILE.tare ADDRESS",
        )


def _version(connection: Any) -> int:
    return int(connection.execute(statement("version")).fetchone()[0])


def _refuse_newer(version: int, address: CatalogueAddress, folder: Path) -> None:
    if version > newest(folder):
        raise StoreError(
            f"{address.masked(address.url)} has the catalogue of a newer tare (version {version}, this one knows"
            f" {newest(folder)})",
            fix="use a newer tare",
        )
