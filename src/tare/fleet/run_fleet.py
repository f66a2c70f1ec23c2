"""What a fleet does: bring, start, wait, fetch, forget; and go on with it after whatever ended.

A host that fails is a row with its reason, and ends nothing. A run stays on its host until its file is here, checked
and on the disk.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import time
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from tare import outputs
from tare.errors import Failed, HostError, StoreError, UsageError, attempt, first_invalid
from tare.fleet import packing, playing
from tare.fleet.host_states import ENDED, HostRow, HostState, bounded, cut, data_of, facts, told
from tare.fleet.packing import PackTarget
from tare.fleet.playing import MAX_FILE_BYTES, Inventory
from tare.fsync import fsync_folder
from tare.model import CampaignStatus, Progress
from tare.records import Frozen
from tare.store import read_store

ORDER, ROWS = "fleet.json", "hosts.json"
SCHEMA = "tare.fleet-hosts/1"
#: How often hosts that were killed or lost after their start are tried again by one command, and the pause before.
ROUNDS, PAUSE_S = 3, 5.0
#: A host tells its progress so often: each look costs it a start of Python beside what is measured.
WAIT_S = 30
#: The state of a running fleet is written so often, for `tare fleet status` beside it.
_SAVED_EACH_S = 2.0
_NO_ID = "00000000"
#: Characters of a file's name that are a host's.
_MAX_NAME = 100
OnRows = Callable[[Sequence[HostRow]], None]


class _Written(BaseModel):
    """What `_Fleet.save` wrote."""

    hosts: list[HostRow]


class Order(Frozen):
    """What a fleet's folder keeps: what is run, and where."""

    format: int = 1
    id: str
    words: list[str]
    inventory: list[str]
    limit: str = ""
    wait_s: int = WAIT_S
    made: float

    @property
    def where(self) -> Inventory:
        """The inventories, and the part of them that is meant."""
        return Inventory(tuple(self.inventory), self.limit)


def begin(folder: Path, inventory: Inventory, words: Sequence[str], wait_s: int = WAIT_S) -> Order:
    """Return the order of a folder: an existing one, or a new one. Raises `UsageError` where the two differ."""
    there = read_order(folder) if (folder / ORDER).exists() else None
    if there is not None:
        if words and list(words) != there.words:
            raise UsageError(
                f"{folder} has a fleet with other options: {' '.join(there.words)}",
                fix="leave the options out to continue it, or give -o another folder",
            )
        if not inventory.sources:
            return there.model_copy(update={"limit": inventory.limit or there.limit})
        return there.model_copy(update={"inventory": _named(inventory), "limit": inventory.limit})
    if not inventory.sources:
        raise UsageError(f"there is no fleet in {folder}", fix="name one: tare fleet run -i hosts.ini -- -p runc")
    playing.make_own(folder)
    order = Order(
        id=secrets.token_hex(8),
        words=list(words),
        inventory=_named(inventory),
        limit=inventory.limit,
        wait_s=wait_s,
        made=time.time(),
    )
    with outputs.written(folder / ORDER, new=True) as file:
        file.write(order.model_dump_json(indent=1))
    return order


def _named(inventory: Inventory) -> list[str]:
    return [playing.absolute(source) for source in inventory.sources]


def read_order(folder: Path) -> Order:
    """Read the order that a folder keeps, which is obeyed. Raises `UsageError`, also for another user's folder."""
    playing.require_own(folder)
    try:
        return Order.model_validate_json((folder / ORDER).read_bytes())
    except FileNotFoundError:
        raise UsageError(f"there is no fleet in {folder}", fix="name the folder that tare fleet run -o made") from None
    except (OSError, ValidationError) as error:
        what = first_invalid(error) if isinstance(error, ValidationError) else error.strerror
        raise UsageError(f"{folder / ORDER} cannot be read: {what}", fix="name another folder") from error


class _Fleet:
    """The hosts of one command, and what is known of each."""

    def __init__(self, folder: Path, names: Sequence[str], on_rows: OnRows) -> None:
        self.folder = folder
        self.rows = {name: HostRow(name) for name in names}
        self.facts: dict[str, dict[str, str]] = {}
        self.files = {name: file_name(name) for name in names}
        self._on_rows = on_rows
        self._saved = 0.0
        self.incoming: Path | None = None

    def take(self, event: Mapping[str, Any]) -> None:
        """Take an event of ansible-runner's."""
        data = data_of(event)
        name = str(data.get("host", ""))
        if name not in self.rows:
            return
        row = told(self.rows[name], event, time.time())
        if data.get("task") == "look" and event.get("event") == "runner_on_ok":
            result = data.get("res")
            self.facts[name] = facts(str(result.get("stdout", "")) if isinstance(result, Mapping) else "")
        if row.state is HostState.FETCHED and self.incoming is not None:
            row = self._kept(row, self.incoming / self.files[name] / "run.tare")
        self.put(row)

    def put(self, row: HostRow) -> None:
        """Take a new state of a host, show and save it."""
        ended = row.state in ENDED and row.state is not self.rows[row.host].state
        self.rows[row.host] = row
        self._on_rows(list(self.rows.values()))
        if ended or time.monotonic() > self._saved + _SAVED_EACH_S:
            self.save()

    def save(self) -> None:
        """Write the rows for `tare fleet status`, and for the next command."""
        self._saved = time.monotonic()
        with outputs.written(self.folder / ROWS) as file:
            json.dump({"schema": SCHEMA, "hosts": [asdict(row) for row in self.rows.values()]}, file, indent=1)

    def named(self, *states: HostState) -> list[str]:
        """Return the hosts in one of these states."""
        return [name for name, row in self.rows.items() if row.state in states]

    def have_here(self) -> None:
        """Mark the hosts whose files are here from an earlier command."""
        for row in read_rows(self.folder):
            place = self.folder / f"{self.files.get(row.host, '')}{outputs.CAMPAIGN}"
            if (
                row.host in self.rows
                and row.state is HostState.DONE
                and place.is_file()
                and _digest(place) == row.sha256
            ):
                self.rows[row.host] = row

    def _kept(self, row: HostRow, arrived: Path) -> HostRow:
        """Check the file that a host sent, and put it in its place; the row says what came of it."""
        place = self.folder / f"{self.files[row.host]}{outputs.CAMPAIGN}"
        kept = attempt(lambda: take(arrived, place, row.sha256))
        arrived.unlink(missing_ok=True)
        if isinstance(kept, Failed):
            return replace(row, state=HostState.FAILED, reason=cut(kept.reason))
        return replace(row, state=HostState.DONE, blocks=kept, left_s=None, doing="", reason="")


def take(arrived: Path, place: Path, expected: str) -> int:
    """Move a host's file to its place, and return its number of blocks. Raises `TareError` for what is no such file.

    It is a stranger's, which `read_store` holds to its rules.
    """
    if arrived.is_symlink() or not arrived.is_file() or arrived.stat().st_size > MAX_FILE_BYTES:
        raise HostError("what it sent is no file, or too large")
    if (digest := _digest(arrived)) != expected:
        raise HostError("its file changed on the way")
    try:
        with read_store(arrived) as store:
            if store.status is not CampaignStatus.COMPLETE:
                raise HostError("its file says that the campaign is not complete")
            blocks = len({key.block for key in store.done()})
    except StoreError as error:
        raise HostError(f"what it sent is no campaign: {error.what}") from error
    if place.exists() and _digest(place) != digest:
        raise HostError(f"{place.name} is there, and is of another campaign")
    with arrived.open("rb") as file:
        os.fsync(file.fileno())
    arrived.replace(place)
    fsync_folder(place.parent)
    return blocks


def run(folder: Path, order: Order, on_rows: OnRows, progress: Progress, *, forks: int) -> list[HostRow]:
    """Run the campaign on every host, and fetch the files. Returns how each host ended. Raises `TareError`."""
    with playing.owned(folder) as work:
        fleet = _Fleet(folder, playing.hosts(order.where), on_rows)
        fleet.have_here()
        fleet.incoming = work / "incoming"
        waiting = [name for name in fleet.rows if fleet.rows[name].state is not HostState.DONE]
        forks = min(forks, max(1, len(waiting)))
        for number in range(1 + ROUNDS):
            if not waiting:
                break
            if number:
                time.sleep(PAUSE_S * number)
            _bring_and_run(fleet, work, order, waiting, progress, forks)
            waiting = [name for name in waiting if _worth_another(fleet.rows[name])]
        _forget(fleet, work, order, forks)
        fleet.save()
        return list(fleet.rows.values())


def _worth_another(row: HostRow) -> bool:
    """Whether a host is tried again: one whose run was killed, or that was lost after its start and may come back."""
    return row.state is HostState.KILLED or (row.state is HostState.LOST and row.started)


def _bring_and_run(
    fleet: _Fleet, work: Path, order: Order, names: Sequence[str], progress: Progress, forks: int
) -> None:
    for name in names:
        fleet.rows[name] = replace(fleet.rows[name], state=HostState.WAITING, reason="")
    playing.play("look", order.where, {}, work, fleet.take, forks=forks, limit=names)
    there = [name for name in names if fleet.rows[name].state not in ENDED and name in fleet.facts]
    packed, there = _pack(fleet, there, progress)
    if not there:
        return
    lacking = [name for name in there if packing.image_name() not in fleet.facts[name].get("images", "").split()]
    image = packing.packed_image(progress) if lacking else packing.not_packed_image()
    variables = {
        "tare_fleet_id": order.id,
        "tare_words": order.words,
        "tare_wait_s": order.wait_s,
        "tare_packed": packed,
        "tare_image": image,
        "tare_incoming": str(fleet.incoming),
        "tare_names": fleet.files,
    }
    for wave in waves({name: fleet.rows[name].client for name in there}):
        playing.play("run", order.where, variables, work, fleet.take, forks=forks, limit=wave)


def waves(clients: Mapping[str, str]) -> list[list[str]]:
    """Split hosts so that no client loads two at once. ``clients``: by host the name of its client, or ""."""
    turns: list[list[str]] = []
    taken: Counter[str] = Counter()
    for name, client in clients.items():
        turn = taken[client]
        if client:
            taken[client] += 1
        if turn == len(turns):
            turns.append([])
        turns[turn].append(name)
    return turns


def _pack(fleet: _Fleet, names: Sequence[str], progress: Progress) -> tuple[dict[str, Any], list[str]]:
    """Pack the needs of each kind of host; return them, and the hosts that can be served."""
    packed: dict[str, Any] = {}
    served = []
    for name in names:
        target = PackTarget(fleet.facts[name].get("version", ""), fleet.facts[name].get("machine", ""))
        if not re.fullmatch(r"3\.[0-9]{1,2}-[a-z0-9_]{1,16}", str(target)):
            fleet.put(replace(fleet.rows[name], state=HostState.FAILED, reason="it answers strangely: no kind of host"))
            continue
        if str(target) not in packed:
            made = attempt(lambda target=target: packing.packed_for(target, progress))  # type: ignore[misc]
            packed[str(target)] = made
        if isinstance(failed := packed[str(target)], Failed):
            fleet.put(replace(fleet.rows[name], state=HostState.FAILED, reason=cut(failed.reason)))
        else:
            served.append(name)
    return {kind: made for kind, made in packed.items() if not isinstance(made, Failed)}, served


def _forget(fleet: _Fleet, work: Path, order: Order, forks: int) -> None:
    """Remove the runs whose files are here from their hosts; one that cannot be reached now keeps its own."""
    rows = {name: fleet.rows[name] for name in fleet.named(HostState.DONE)}
    if not rows:
        return
    gone: set[str] = set()

    def heard(event: Mapping[str, Any]) -> None:
        data = data_of(event)
        if event.get("event") == "runner_on_ok" and data.get("task") == "forget":
            gone.add(str(data.get("host")))

    variables = {"tare_fleet_id": order.id, "tare_step": "forget", "tare_names": fleet.files}
    with suppress(HostError):
        playing.play("one", order.where, variables, work, heard, forks=forks, limit=list(rows))
    for name, row in rows.items():
        if name not in gone:
            fleet.put(replace(row, note="its run is still on the host: tare fleet clean removes it"))


def status(folder: Path, on_rows: OnRows, *, forks: int, fetched: bool = False) -> list[HostRow]:
    """How each host stands, asked now; ``fetched``: and fetch what is complete. Raises `TareError`."""
    order = read_order(folder)
    try:
        with playing.owned(folder) as work:
            fleet = _Fleet(folder, playing.hosts(order.where), on_rows)
            fleet.have_here()
            fleet.incoming = work / "incoming"
            names = [name for name, row in fleet.rows.items() if row.state is not HostState.DONE]
            variables = {
                "tare_fleet_id": order.id,
                "tare_step": "status",
                "tare_fetch": fetched,
                "tare_incoming": str(fleet.incoming),
                "tare_names": fleet.files,
            }
            if names:
                playing.play("one", order.where, variables, work, fleet.take, forks=forks, limit=names)
            if fetched:
                _forget(fleet, work, order, forks)
            fleet.save()
            return list(fleet.rows.values())
    except HostError:
        if fetched or not (rows := read_rows(folder)):
            raise
        on_rows(rows)  # a controller is at work, which writes them
        return rows


def fetch(folder: Path, on_rows: OnRows, *, forks: int) -> list[HostRow]:
    """Fetch the files of the campaigns that are complete. Raises `TareError`."""
    return status(folder, on_rows, forks=forks, fetched=True)


def clean(folder: Path, inventory: Inventory, on_rows: OnRows, *, forks: int, force: bool) -> list[HostRow]:
    """Remove from the hosts all that fleets brought. ``folder``: for the work of this command. Raises `TareError`."""
    with playing.owned(folder) as work:
        fleet = _Fleet(folder, playing.hosts(inventory), on_rows)
        variables = {"tare_fleet_id": _NO_ID, "tare_step": "clean", "tare_force": force, "tare_names": fleet.files}
        playing.play("one", inventory, variables, work, fleet.take, forks=forks, limit=list(fleet.rows))
        return list(fleet.rows.values())


def read_rows(folder: Path) -> list[HostRow]:
    """Read the rows that the last command wrote; none if they cannot be read."""
    try:
        return [bounded(row) for row in _Written.model_validate_json((folder / ROWS).read_bytes()).hosts]
    except (OSError, ValidationError):
        return []


def file_name(host: str) -> str:
    """Return a file's name for a host; a checksum keeps names apart whose characters were replaced."""
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", host).lstrip(".-") or "host"
    return (
        plain if plain == host and len(plain) <= _MAX_NAME else f"{plain[:_MAX_NAME]}-{zlib.crc32(host.encode()):08x}"
    )


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
