"""The journal of things that tare makes on a host, written before they exist: they can be removed after any kill.

One small file an entry, in the order of making. An entry is deleted when its resource is gone. `CleanupStack` is how
the rest of tare makes resources: journal first, then make, and remove in reverse by `removers`.

An entry appears whole or not at all: it is written under the name of its writer (`_unfinished_name`), synced, and then
renamed. What cannot be read all the same is another version's, or was damaged: it is reported and never deleted, since
what it names may be on the host.

Root acts on the entries. So an entry counts only when it is a file of the user's who reads it, which nobody else can
write and which has no other name, in such a folder, and when all that it names can be tare's (`claims`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import time
import uuid
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

from pydantic import ValidationError

from tare.errors import HostError
from tare.fsync import fsync_folder
from tare.host import lock, own_namespaces, processes, state
from tare.host.kernel.owner import Owner
from tare.host.resources import claims, removers, unremoved
from tare.host.resources.resource import Fact, HostResource, is_shared
from tare.host.resources.unremoved import Unremoved
from tare.records import Strict

#: The format of entries.
FORMAT: Final = 1
#: What to do about a folder that others may write.
_OWN: Final = "see what its entries name; then remove it, or chown and chmod it to be its user's alone"
#: No entry is nearly as long.
MAX_BYTES: Final = 1 << 16


class _OwnerRecord(Strict):
    pid: int
    start_ticks: int
    boot: str


class _Record(Strict):
    """The contents of an entry. An unknown field is refused: the removal may depend on it."""

    format: Literal[1]
    kind: str
    facts: dict[str, Fact]
    owner: _OwnerRecord


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """A resource in the journal."""

    file: Path
    resource: HostResource
    owner: Owner


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An entry that is not acted on: what it names or who wrote it is not known, or it names what is not tare's."""

    file: Path
    why: str

    def __str__(self) -> str:
        return f"entry {self.file}"


class Journal:
    """The entries below one folder, which is in TARE_HOME. Shared by all runs of tare on the host."""

    def __init__(self, folder: Path, bounds: claims.Bounds | None = None) -> None:
        """``bounds``: where its resources are, if not below the folder's parent."""
        self._folder = folder
        self._bounds = bounds or claims.Bounds(folder.parent.resolve())
        self._owner = Owner.me()

    def write(self, *cleanup: HostResource) -> list[JournalEntry]:
        """Record resources before they are made; on return the entries are on the disk. After an error none is.

        Raises `HostError` where the journal cannot be written, or others could have written in it.
        """
        for resource in cleanup:
            self._require_ours(resource)
        entries: list[JournalEntry] = []
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            whose = _strangers(self._folder.lstat())
            if whose is not None:
                raise HostError(f"the journal {self._folder} is not to be relied on: {whose}", fix=_OWN)
            for resource in cleanup:
                entries.append(self._write(resource))
            fsync_folder(self._folder)
        except BaseException as error:  # an interrupt too: what is not returned is nobody's to remove
            for entry in entries:
                self.forget(entry)
            if not isinstance(error, OSError):
                raise
            raise HostError(
                f"the journal in {self._folder} cannot be written: {error.strerror}",
                fix="run as root, with space on the disk, or set TARE_HOME to a folder that can be written",
            ) from error
        return entries

    def forget(self, entry: JournalEntry) -> None:
        """Delete an entry, whose resource is gone."""
        entry.file.unlink(missing_ok=True)

    def entries(self) -> list[JournalEntry]:
        """All resources that were made and not yet removed, oldest first."""
        return [entry for entry in self._read_all() if isinstance(entry, JournalEntry)]

    def unreadable(self) -> list[Unreadable]:
        """Return the entries that this version of tare cannot read."""
        return [entry for entry in self._read_all() if isinstance(entry, Unreadable)]

    def forget_unfinished(self) -> None:
        """Remove unfinished entries of processes that are dead: a resource is made after its entry is whole."""
        for file in self._folder.glob(".*"):
            writer = _writer(file)
            if writer is not None and not writer.lives() and _strangers(file.lstat()) is None:
                file.unlink(missing_ok=True)

    def _require_ours(self, resource: HostResource) -> None:
        fault = claims.fault(resource, self._bounds)
        if fault is not None:
            raise HostError(
                f"the journal takes nothing that {fault}",
                fix=f"make it below {self._bounds.home / 'work'}, with names that begin with tare"
                " (host/resources/claims.py)",
            )

    def _read_all(self) -> Iterator[JournalEntry | Unreadable]:
        try:
            folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        except OSError as error:
            yield Unreadable(self._folder, f"it is no folder that can be read: {error.strerror}; remove it by hand")
            return
        try:
            whose = _strangers(os.fstat(folder))
            if whose is not None:
                yield Unreadable(self._folder, f"nothing in it is obeyed: {whose}; {_OWN}")
                return
            names = os.listdir(folder)  # noqa: PTH208 (by its descriptor)
            for name in sorted(name for name in names if name.endswith(".json") and name[0] != "."):
                with contextlib.suppress(FileNotFoundError):  # its owner removed it meanwhile
                    yield self._read(folder, name)
        finally:
            os.close(folder)

    def _read(self, folder: int, name: str) -> JournalEntry | Unreadable:
        """Raise `FileNotFoundError` where it is gone."""
        file = self._folder / name
        try:
            record = _Record.model_validate_json(_contents(folder, name))
        except FileNotFoundError:
            raise
        except HostError as error:
            return Unreadable(file, f"it is not obeyed: {error.what}; see what it names, then remove the file by hand")
        except OSError as error:
            return Unreadable(file, f"it cannot be read: {error.strerror}")
        except ValidationError as error:
            return Unreadable(file, _why_unreadable(error))
        resource = HostResource(record.kind, record.facts)
        fault = claims.fault(resource, self._bounds)
        if fault is not None:
            return Unreadable(file, f"it {fault}; {_elsewhere(resource.kind)}")
        return JournalEntry(file, resource, Owner(**record.owner.model_dump()))

    def _write(self, resource: HostResource) -> JournalEntry:
        file = self._folder / f"{time.time_ns():020d}-{resource.kind}-{uuid.uuid4().hex[:8]}.json"
        owner = _OwnerRecord(**asdict(self._owner))
        record = _Record(format=FORMAT, kind=resource.kind, facts=dict(resource.facts), owner=owner)
        unfinished = self._folder / _unfinished_name(file.name, self._owner)
        try:
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with open(descriptor, "wb") as writing:  # noqa: PTH123 (it is to be new, and closed for children)
                writing.write(record.model_dump_json().encode())
                writing.flush()
                os.fsync(descriptor)
            unfinished.rename(file)
        except BaseException:  # an interrupt too: what is not returned is not made
            for written in (unfinished, file):
                written.unlink(missing_ok=True)
            raise
        return JournalEntry(file, resource, self._owner)


def _unfinished_name(name: str, writer: Owner) -> str:
    """Return the name of an entry while it is written: it has the writer in it, as the contents are not whole yet."""
    return f".{name}.{writer.pid}.{writer.start_ticks}.{writer.boot}"


def _writer(file: Path) -> Owner | None:
    """Return the writer of an unfinished entry; None for another file."""
    parts = re.fullmatch(r"\..+\.json\.(\d+)\.(\d+)\.([0-9a-f-]+)", file.name)
    return None if parts is None else Owner(int(parts[1]), int(parts[2]), parts[3])


def _contents(folder: int, name: str) -> bytes:
    """Return an entry's bytes.

    Raises `HostError` where another could have written them, `FileNotFoundError`, `OSError`.
    """
    try:
        # Without waiting: what has the name of an entry may be a pipe.
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO}:
            raise HostError("it is no regular file") from error
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise HostError("it is no regular file")
        if status.st_nlink == 0:
            raise FileNotFoundError(errno.ENOENT, "its owner removed it meanwhile")
        if status.st_nlink != 1:
            raise HostError(f"it has {status.st_nlink} names")
        whose = _strangers(status)
        if whose is not None:
            raise HostError(whose)
        if status.st_size > MAX_BYTES:
            raise HostError(f"it has {status.st_size} bytes, and no entry has more than {MAX_BYTES}")
        return os.read(descriptor, MAX_BYTES)
    finally:
        os.close(descriptor)


def _strangers(status: os.stat_result) -> str | None:
    """Return the users besides this process's own who could have written a file or a folder, in words, or None."""
    if status.st_uid != os.geteuid():
        return f"it is user {status.st_uid}'s, and this is user {os.geteuid()}"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write it ({stat.filemode(status.st_mode)})"
    return None


def _elsewhere(kind: str) -> str:
    """Return what a user can do about an entry that names what this tare would not have made here."""
    package, colon, _ = kind.partition(":")
    if colon and claims.of(kind) is None:
        return f"install the package {package} again, and then `tare clean`"
    if colon:
        return "clean with the version of the plug-in that made it"
    if kind not in claims.kinds():
        return "clean with the version that made it"
    return "if it is another TARE_HOME's, clean with that; else see what it names, then remove the file by hand"


def _why_unreadable(error: ValidationError) -> str:
    """Return what of it this version does not understand, and what a user can do."""
    problems = error.errors(include_url=False)
    fields = {".".join(map(str, problem["loc"])): problem for problem in problems}
    if "format" in fields and fields["format"]["type"] != "missing":
        reason = f"its format is {fields['format']['input']!r}, and this version of tare knows up to {FORMAT}"
        return f"{reason}; clean with the version that made it"
    unknown = [name for name, problem in fields.items() if problem["type"] == "extra_forbidden"]
    if unknown:
        reason = f"this version of tare does not know its {', '.join(unknown)}"
        return f"{reason}; clean with the version that made it"
    return "it is no whole entry; see what it names, remove that by hand, and then this file"


class CleanupStack:
    """Resources that are removed together, in reverse order. Use as a context manager, or call `release`."""

    def __init__(self, journal: Journal | None = None) -> None:
        """``journal``: by default this host's."""
        self.journal = journal or Journal(state.journal())
        self.noting_ns = 0  # the time that went into writing the journal: tare's own, and no part of what is made
        self.removing_ns: Counter[str] = Counter()  # how long removing took, by kind of resource
        self._entries: list[JournalEntry] = []

    def own(self, *cleanup: HostResource) -> None:
        """Journal resources; call just before they are made. `release` removes them even if half made."""
        began = time.monotonic_ns()
        self._entries += self.journal.write(*cleanup)
        self.noting_ns += time.monotonic_ns() - began

    def learn(self, resource: HostResource, more: Mapping[str, Fact]) -> None:
        """Add facts to an owned resource that are only known once it is made, and that its remover may need."""
        place = next(at for at, entry in enumerate(self._entries) if entry.resource == resource)
        [entry] = self.journal.write(HostResource(resource.kind, {**resource.facts, **more}))
        self.journal.forget(self._entries[place])
        self._entries[place] = entry

    def release(self) -> None:
        """Remove everything. Goes on after an error, and raises the first at the end; what failed stays journaled."""
        errors: list[HostError] = []
        removers.let_go(entry.resource for entry in self._entries)
        while self._entries:
            entry = self._entries[-1]
            began = time.monotonic_ns()
            error = _removed(entry)
            self.removing_ns[entry.resource.kind] += time.monotonic_ns() - began
            if error is None:
                self.journal.forget(entry)
            self._entries.pop()  # only now: an interrupt leaves it here
            if error is not None:
                unremoved.note(_unremoved(entry, error))
                errors.append(error)
        if errors:
            raise errors[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.release()
            return
        with contextlib.suppress(HostError):  # the error under way matters more; what stays is noted (`unremoved`)
            self.release()


def _remove(journal: Journal, entry: JournalEntry) -> HostError | None:
    """Remove a resource and its entry; where that fails the entry stays, and the error is returned."""
    error = _removed(entry)
    if error is None:
        journal.forget(entry)
    return error


def _removed(entry: JournalEntry) -> HostError | None:
    try:
        removers.remove(entry.resource)
    except HostError as error:
        return error
    return None


def _unremoved(entry: JournalEntry, error: HostError) -> Unremoved:
    group = str(entry.resource.facts.get("path", "")) if entry.resource.kind == "cgroup" else ""
    return Unremoved(entry.file, str(entry.resource), str(error), group)


@dataclass(frozen=True, slots=True)
class Swept:
    """One step of a sweep: what was (or would be) removed, or why it was not."""

    resource: HostResource | Unreadable
    kept: str | None = None  # the reason why it stays
    unremoved: Unremoved | None = None  # where it should not have stayed: its owner is dead, or unknown


def sweep(journal: Journal, *, dry_run: bool = False) -> Iterator[Swept]:
    """Remove the resources that dead runs of tare left, newest first, and yield a step for each.

    Those of living runs stay, and those that a living run uses by the same name, also one with another TARE_HOME.
    """
    entries = journal.entries()
    if not dry_run:
        processes.end_commands_of({entry.owner for entry in entries if not entry.owner.lives()})
        removers.let_go(entry.resource for entry in entries if not entry.owner.lives())
    for entry in reversed(entries):
        yield _sweep(journal, entry, dry_run=dry_run)
    for unreadable in journal.unreadable():
        yield Swept(unreadable, unreadable.why, Unremoved(unreadable.file, str(unreadable), unreadable.why))
    if not dry_run:
        journal.forget_unfinished()


def _sweep(journal: Journal, entry: JournalEntry, *, dry_run: bool) -> Swept:
    if entry.owner.lives():
        return Swept(entry.resource, f"its run (process {entry.owner.pid}) is still going")
    with lock.held_if_free() if is_shared(entry.resource) else contextlib.nullcontext() as holder:
        if holder is not None:
            return Swept(entry.resource, f"another run uses it: {holder}")
        if own_namespaces.inside() and entry.resource.kind in removers.OF_NAMESPACES:
            error = None
            if not dry_run:
                journal.forget(entry)  # it went with the namespaces that it was in, and here is none of that name
        else:
            error = None if dry_run else _remove(journal, entry)
    return Swept(entry.resource) if error is None else Swept(entry.resource, str(error), _unremoved(entry, error))


def clear_the_way(journal: Journal) -> None:
    """Sweep before something is made. What could not be removed is noted (`unremoved`)."""
    for step in sweep(journal):
        if step.unremoved is not None:
            unremoved.note(step.unremoved)


def remove_rest(journal: Journal, before: Collection[JournalEntry]) -> None:
    """Remove what this process made and nobody owns anymore: an interrupt can come between making and owning.

    ``before``: entries to keep. What cannot be removed is noted (`unremoved`).
    """
    for entry in reversed(journal.entries()):
        if entry.owner == Owner.me() and entry not in before:
            error = _remove(journal, entry)
            if error is not None:
                unremoved.note(_unremoved(entry, error))


def of_this_process() -> list[JournalEntry]:
    """Return the entries of resources that this very process made and that are still in the host's journal."""
    return [entry for entry in Journal(state.home_if_any() / state.JOURNAL).entries() if entry.owner == Owner.me()]
