"""What tare makes on a host, written down before it exists, so that it can be removed after any kill.

One small file an entry, in the order of making. An entry is forgotten when its thing is gone. `Belongings` is how
the rest of tare makes things: journal first, then make, and remove in reverse through the one janitor.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tare.errors import HostError
from tare.host import janitor
from tare.host.janitor import Fact, Thing


@dataclass(frozen=True, slots=True)
class Owner:
    """The process that made a thing: a pid alone could have been given to another since."""

    pid: int
    start_ticks: int
    boot: str

    @classmethod
    def me(cls) -> Owner:
        """The process that asks."""
        return cls(os.getpid(), _start_ticks(os.getpid()) or 0, boot_id())

    def lives(self) -> bool:
        """Whether that very process still runs."""
        return self.boot == boot_id() and _start_ticks(self.pid) == self.start_ticks


@dataclass(frozen=True, slots=True)
class Entry:
    """A thing in the journal."""

    file: Path
    thing: Thing
    owner: Owner


class Journal:
    """The entries below one folder. Shared by all runs of tare on the host."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._owner = Owner.me()

    def write(self, *things: Thing) -> list[Entry]:
        """Record things that are about to be made; on return they are on the disk."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            entries = [self._write(thing) for thing in things]
            _sync_folder(self._folder)
        except OSError as error:
            raise HostError(
                f"the journal in {self._folder} cannot be written: {error.strerror}",
                fix="run as root, with space on the disk, or set TARE_HOME to a folder that can be written",
            ) from error
        return entries

    def forget(self, entry: Entry) -> None:
        """The thing is gone."""
        entry.file.unlink(missing_ok=True)

    def entries(self) -> list[Entry]:
        """All things that were made and not yet removed, oldest first."""
        if not self._folder.is_dir():
            return []
        found = (self._read(file) for file in sorted(self._folder.glob("*.json")))
        return [entry for entry in found if entry is not None]

    def _write(self, thing: Thing) -> Entry:
        name = f"{time.time_ns():020d}-{thing.kind}-{uuid.uuid4().hex[:8]}.json"
        file = self._folder / name
        owner = {"pid": self._owner.pid, "start_ticks": self._owner.start_ticks, "boot": self._owner.boot}
        text = json.dumps({"kind": thing.kind, "facts": dict(thing.facts), "owner": owner})
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, text.encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return Entry(file, thing, self._owner)

    @staticmethod
    def _read(file: Path) -> Entry | None:
        try:
            data = json.loads(file.read_bytes())
            facts: dict[str, Fact] = data["facts"]
            return Entry(file, Thing(str(data["kind"]), facts), Owner(**data["owner"]))
        except FileNotFoundError:
            return None  # its owner removed it meanwhile
        except (ValueError, KeyError, TypeError):
            # Killed while this entry was being written: its thing was never made.
            file.unlink(missing_ok=True)
            return None


class Belongings:
    """Things that belong together and go together, in reverse order. Use as a context manager or `release`."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._entries: list[Entry] = []

    def own(self, *things: Thing) -> None:
        """Journal things; call just before they are made. They are removed by `release` even if half made."""
        self._entries += self.journal.write(*things)

    def learn(self, thing: Thing, more: Mapping[str, Fact]) -> None:
        """Note more of a thing that is owned: what is only known once it is made, and its remover may need."""
        place = next(at for at, entry in enumerate(self._entries) if entry.thing == thing)
        [entry] = self.journal.write(Thing(thing.kind, {**thing.facts, **more}))
        self.journal.forget(self._entries[place])
        self._entries[place] = entry

    def release(self) -> None:
        """Remove everything. Goes on after an error, and raises the first at the end; what failed stays noted."""
        errors: list[HostError] = []
        while self._entries:
            entry = self._entries.pop()
            try:
                janitor.remove(entry.thing)
            except HostError as error:
                errors.append(error)
            else:
                self.journal.forget(entry)
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
        with contextlib.suppress(HostError):  # the error under way matters more; the journal keeps the rest
            self.release()


@dataclass(frozen=True, slots=True)
class Swept:
    """One step of a sweep: what was (or would be) removed, or why it was not."""

    thing: Thing
    kept: str | None = None  # the reason why it stays


def sweep(journal: Journal, *, dry_run: bool = False) -> Iterator[Swept]:
    """Remove all that dead runs of tare left, newest first, and yield each. Things of living runs stay."""
    for entry in reversed(journal.entries()):
        if entry.owner.lives():
            yield Swept(entry.thing, f"its run (process {entry.owner.pid}) is still going")
            continue
        if not dry_run:
            try:
                janitor.remove(entry.thing)
            except HostError as error:
                yield Swept(entry.thing, str(error))
                continue
            journal.forget(entry)
        yield Swept(entry.thing)


def _start_ticks(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[19])


def boot_id() -> str:
    """What this start of the host's kernel is called: in every namespace the same."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
