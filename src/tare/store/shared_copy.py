"""Copy of a campaign's file for others, without names of the machine or its people in texts and outputs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import zstandard

from tare.store import connection
from tare.store.limits import ATTACHMENT_CAP
from tare.store.packed import unpack
from tare.store.record import CampaignRecord
from tare.store.redact import UNAME, Redactor

#: Kept facts, for the user who shares a file. `Shared.facts` lists all other facts of a record.
KEPT = (
    "the figures, and when each trial began",
    "the processor's model, the kernel, the distribution, sizes of memory and disk",
    "platforms, their versions and options, parameters of workloads",
    "what tools printed and reasons of failures, where neither names nor addresses are in it",
)


@dataclass(frozen=True, slots=True)
class ShareSummary:
    """Summary: replacements by kind, names of the host's facts that stayed, number of raw outputs searched."""

    removed: dict[str, int]
    facts: tuple[str, ...]
    outputs: int
    kept: tuple[str, ...] = KEPT


def share(file: Path, out: IO[bytes], *, hosts: Iterable[str], users: Iterable[str]) -> ShareSummary:
    """Write the copy. ``hosts``, ``users``: names of this machine to remove, in addition to the file's own.

    Raises `StoreError` for a file that cannot be read.
    """
    source, stored = connection.view(file)
    record = stored.record
    names = {platform.name for platform in record.platforms} | {left_out.platform for left_out in record.left_out}
    remote_hosts, remote_users = _of_record(record, names)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        with closing(source), connection.translated(file):
            source.backup(db)
        hosts = {*hosts, *remote_hosts, *_of_uname(db)}
        # Packages create users with platforms' names (libvirt-qemu), which identify nobody.
        platforms = {name for name in names if ":" not in name}
        redactor = Redactor(hosts=hosts, users={*users, *remote_users}, kept={record.id, *platforms})
        outputs = _redact(db, redactor)
        db.execute("VACUUM")  # Otherwise replaced texts would stay in free pages.
        out.write(db.serialize())
    return ShareSummary(dict(redactor.removed), tuple(record.host), outputs)


def _of_record(record: CampaignRecord, platforms: Iterable[str]) -> tuple[set[str], set[str]]:
    """Return the hosts and users whom a record names: platforms' arguments, a cluster's node, another client."""
    hosts, users = set(), set()
    for name in platforms:
        kind, _, place = name.partition(":")
        if kind == "ssh":
            user, host = _target(place)
        elif kind == "libvirt":
            user, host = _of_uri(place)
        else:
            user, host = place if kind == "podman-rootless" else "", ""
        hosts.add(host)
        users.add(user)
    hosts |= {str(platform.details.get("node", "")) for platform in record.platforms}
    if record.client is not None:
        user, host = _target(record.client.client.partition(":")[2])
        hosts |= {host, record.client.name}
        users.add(user)
    return hosts - {""}, users - {""}


def _of_uri(text: str) -> tuple[str, str]:
    try:
        uri = urlsplit(text)
        return uri.username or "", uri.hostname or ""
    except ValueError:  # no URI, in a file that others wrote
        return "", ""


def _target(place: str) -> tuple[str, str]:
    """Return user and host of ``[USER@]HOST[:PORT][,...]``."""
    user, _, host = place.rpartition("@")
    return user, host.partition(":")[0].partition(",")[0]


def _of_uname(db: sqlite3.Connection) -> set[str]:
    """Return hosts' names that tools printed with the kernel's, because they may occur without it elsewhere."""
    packed = db.execute("SELECT zstd FROM output")
    texts = (unpack(data, ATTACHMENT_CAP).decode(errors="replace") for (data,) in packed)
    return {name for text in texts for name in UNAME.findall(text)}


def _redact(db: sqlite3.Connection, redactor: Redactor) -> int:
    """Redact every text and every packed output of every table, in place. Return the number of outputs."""
    squeeze = zstandard.ZstdCompressor()
    db.create_function("redacted", 1, redactor.text)
    db.create_function("packed", 1, lambda data: squeeze.compress(redactor.bytes(unpack(data, ATTACHMENT_CAP))))
    outputs = 0
    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    db.execute("BEGIN")
    for table in tables:
        for _, column, kind, *_ in db.execute(f"PRAGMA table_info({table})").fetchall():
            # The schema is ours, as checked when the file was opened. Its names are not a guest's texts. Packed data
            # that are not text (the hits of footprints) are numbers.
            if kind == "TEXT":
                db.execute(f"UPDATE {table} SET {column} = redacted({column}) WHERE {column} IS NOT NULL")  # noqa: S608
            elif column == "zstd":
                outputs += db.execute(f"UPDATE {table} SET {column} = packed({column})").rowcount  # noqa: S608
    db.execute("COMMIT")
    return outputs
