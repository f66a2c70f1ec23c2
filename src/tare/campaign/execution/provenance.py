"""The author of a campaign's file: this host or another. A resume runs the workloads of its record as root.

A file that this host wrote has a mark: the record's HMAC with a key that does not leave TARE_HOME. Host names and
machine ids can be copied, and a file that was here before may have been changed elsewhere; the mark detects both.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from tare.campaign.plan.campaign_plan import WorkloadJob, job_of
from tare.errors import Failed, HostError, StoreError, attempt
from tare.host import state
from tare.model import UserProgram
from tare.store import CampaignRecord, Store, WorkloadRecord
from tare.workloads import workload_registry as workloads
from tare.workloads.base import RunWorkload, Surroundings, Workload
from tare.workloads.own import program

KEY = "key"
#: In place of a line end in a word of a command.
_LINE_END = "\N{RETURN SYMBOL}"
_KEY_BYTES = 32
#: Before the record of a lab's file; no record begins so.
_FROM_A_LAB = "from a lab: "
#: Surroundings that suffice for any plan, only to count its commands.
_ANYWHERE = Surroundings(1 << 40, 1, 1 << 50, "192.0.2.1", 5201, 5201, ping="192.0.2.1")


def mark(record: str) -> str:
    """Return the mark of a record that this host writes: its HMAC, in hexadecimal.

    Raises `HostError` for a foreign key.
    """
    return hmac.new(_key(), record.encode(), hashlib.sha256).hexdigest()


def mark_of_lab(record: str) -> str:
    """Return the mark of a record that a lab of this host wrote: it may be added to, and is not resumed unasked."""
    return mark(_FROM_A_LAB + record)


def is_own(store: Store) -> bool:
    """Return True if this host wrote the record, and nobody changed it since."""
    return hmac.compare_digest((store.mark or "").encode(), mark(store.record_text).encode())


def digest(store: Store) -> str:
    """Return the record's SHA-256 in hexadecimal: names the record that a user has agreed to."""
    return hashlib.sha256(store.record_text.encode()).hexdigest()


def require(store: Store, agreed: str) -> None:
    """Raise `StoreError` unless this host wrote the record, or ``agreed`` is its `digest`."""
    if not is_own(store) and agreed != digest(store):
        raise StoreError(
            f"{store.location} was not written by this host, and what it orders would run as root",
            fix="see what it orders: resume it at a terminal, which asks, or with --trust",
        )


def may_be_added_to(store: Store) -> bool:
    """Return True if this host or a lab of it wrote the record, and nobody changed it since."""
    from_a_lab = mark_of_lab(store.record_text).encode()
    return is_own(store) or hmac.compare_digest((store.mark or "").encode(), from_a_lab)


def require_added(store: Store, agreed: str) -> None:
    """Raise `StoreError` unless `may_be_added_to`, or ``agreed`` is the record's `digest`."""
    if not may_be_added_to(store) and agreed != digest(store):
        raise StoreError(
            f"{store.location} was not written by this host, and is not added to unasked",
            fix="give a new file with -o; or add to it at a terminal, which asks, or with --trust",
        )


def jobs_of(record: CampaignRecord) -> tuple[WorkloadJob, ...]:
    """Return the workloads of a recorded campaign.

    Raises `UsageError` for workloads or parameters that this tare has not.
    """
    return tuple(job_of(_workload(entry), entry.params, entry.margin) for entry in record.workloads)


def _workload(entry: WorkloadRecord) -> Workload:
    if entry.program is None:
        return workloads.recorded(entry.name, entry.origin)
    fields = entry.program.model_dump()
    words = {name: tuple(fields[name]) for name in ("argv", "prepare", "cleanup", "packages")}
    return program.of(entry.name, UserProgram(**{**fields, **words}))


def orders(store: Store) -> Iterator[str]:
    """Lines that say what a resume would run. Raises `UsageError` where this tare could not run it."""
    record = store.record
    yield f"platforms: {', '.join(platform.name for platform in record.platforms)}"
    for job in jobs_of(record):
        params = ", ".join(f"{name} {value}" for name, value in job.params.items()) or "no parameters"
        yield f"workload {job.workload.name}: {params}{_commands(job)}"
        if job.workload.program is not None:
            yield from _of_program(job.workload.program)
    length = f"{record.blocks} blocks" if record.blocks is not None else f"{record.time_budget_s or 0:g} s"
    yield f"length: {length}, of {len(record.arms)} instances each; {len(store.done())} trials are done"
    baseline_count = sum(platform == record.baseline for platform, _ in record.arms)
    yield f"as root on this host, in no sandbox: all of {record.baseline}, {baseline_count} of these instances"
    if record.client is not None:
        yield f"the load comes from {record.client.client}, by your ssh, with programs of the image"
    if record.tuning is not None:
        yield "settings of this host are changed meanwhile (--tune)"


def _of_program(ordered: UserProgram) -> Iterator[str]:
    """All that a user's command may do: each line is one, whatever line ends are in a word of it."""
    parts = {
        "runs": shlex.join(ordered.argv),
        "before each run": shlex.join(ordered.prepare),
        "after the last": shlex.join(ordered.cleanup),
        "environment": shlex.join(f"{name}={value}" for name, value in ordered.env.items()),
        "with a copy of the folder": ordered.folder,
        "in the image": ordered.image,
        "with the packages": " ".join(ordered.packages),
    }
    for what, text in parts.items():
        if text:
            yield f"  {what}: {_LINE_END.join(text.splitlines())}"


def _commands(job: WorkloadJob) -> str:
    workload = job.workload
    if not isinstance(workload, RunWorkload):
        return ""
    plan = attempt(lambda: workload.plan(job.params, _ANYWHERE))
    if isinstance(plan, Failed):
        return ""
    count = len((*plan.prepare, *plan.each, *plan.servers, *plan.measures, *plan.cleanup))
    return f"; {count} command{'s' if count > 1 else ''} a run"


def _key() -> bytes:
    place = state.home() / KEY
    try:
        return _read_key(place)
    except FileNotFoundError:
        _make(place)
        return _read_key(place)


def _read_key(place: Path) -> bytes:
    """Return the key. Raises `HostError` where another user could have written or read it."""
    descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        private = stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid() and not facts.st_mode & 0o077
        key = file.read(_KEY_BYTES) if private else b""
    if len(key) != _KEY_BYTES:
        raise HostError(
            f"{place} is not this user's own key", fix="remove it: files that it marked are then asked about"
        )
    return key


def _make(place: Path) -> None:
    """Write a key atomically, and keep one that is there: another tare may write one at the same moment."""
    part = place.with_name(f".{KEY}-{secrets.token_hex(6)}")
    descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
            file.flush()
            os.fsync(descriptor)
        with contextlib.suppress(FileExistsError):
            place.hardlink_to(part)
    finally:
        part.unlink()
