"""The life of a Firecracker machine by its command, its API and the guest channel; its snapshots and their copies."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tare.platforms.base import Life
from tare.platforms.parts.machines import firecracker_api, vm
from tare.platforms.parts.machines.channel import GuestChannel
from tare.platforms.parts.machines.firecracker_api import MEMORY, PAUSE, RESUME, SNAPSHOT_LIMIT_S, STATE, Api

#: The agent connects again after a snapshot, which ends a guest's connections, and ends the machine by a reset, as
#: Firecracker has no power switch for its guest.
AGENT_OPTIONS = ("--again", "--reset")
#: Names of its sockets in its working folder, which stay when it has ended.
API, VSOCK = "api", "v"
NO_API = "firecracker is started without its API (--no-api), which alone does it: take firecracker-api"


@dataclass(slots=True)
class MicroVmLife:
    """A machine that lives in a working folder of its own, from which the names of its files begin.

    So copies of its snapshot have disks and sockets of their own by the same names, as in a jail.
    """

    folder: Path
    command: Sequence[str]
    kill: tuple[str, ...]  # the command that kills it
    channel: GuestChannel
    disks: Sequence[Path]
    made_ns: int | None
    tap: str
    _stood_ns: list[int] = field(default_factory=list)

    @property
    def saved(self) -> Path:
        """Where its snapshot is to be."""
        return self.folder / "saved"

    def by_file(self) -> Life:
        """Return what users do with a machine that a file configures."""
        return Life(
            start=self._words(),
            execute=(),
            stop=(),
            kill=self.kill,
            remove=self._removed(),
            lacks=dict.fromkeys(("pause", "resume", "snapshot", "restore"), NO_API),
            stays=True,
            made_ns=self.made_ns,
            acts={
                "start": lambda _: self.channel.open(),
                "execute": self.channel.run,
                "stop": lambda _: self.channel.switch_off(),
            },
            close=self.channel.close,
        )

    def by_api(self, puts: Sequence[tuple[str, dict[str, Any]]], close: Callable[[], None]) -> Life:
        """Return the same with an API. ``puts``: the requests that configure and start it; ``close``: as of `Life`."""
        life = self.by_file()
        return replace(
            life,
            restore=self._words(),
            snapshot_at=self.saved,
            remake=self._remake,
            lacks={},
            acts={
                **life.acts,
                "start": lambda _: self._configured(puts),
                "pause": lambda _: self._tell(PAUSE),
                "resume": lambda _: self._tell(RESUME),
                "snapshot": lambda _: self._snapshot(),
                "restore": lambda _: self._load(self, self.channel),
            },
            files=self.channel.files(lambda: self._stood_ns[-1]),
            close=close,
        )

    def copy_of(self, other: MicroVmLife, close: Callable[[], None]) -> Life:
        """Return the life of a copy of another machine's snapshot, whose disks it takes now."""
        self._take_disks(other.saved)
        life = self.by_api((), close)
        return replace(life, acts={**life.acts, "start": lambda _: self._load(other, other.channel)})

    @property
    def _api(self) -> Path:
        return self.folder / API

    def _words(self) -> tuple[str, ...]:
        return ("env", f"--chdir={self.folder}", *self.command)

    def _removed(self) -> tuple[str, ...]:
        return ("rm", "-f", "--", str(self._api), str(self.folder / VSOCK))

    def _configured(self, puts: Sequence[tuple[str, dict[str, Any]]]) -> bytes:
        firecracker_api.configure(self._api, puts)
        return self.channel.open()

    def _tell(self, request: tuple[str, str, dict[str, str]]) -> bytes:
        with contextlib.closing(Api(self._api)) as api:
            api.tell(*request)
        return b""

    def _snapshot(self) -> bytes:
        self.saved.mkdir(exist_ok=True)
        with contextlib.closing(Api(self._api, limit_s=SNAPSHOT_LIMIT_S)) as api:
            api.tell(*PAUSE)
            stands = time.monotonic_ns()
            api.tell(*firecracker_api.snapshot(*self._files()))
            for disk in self.disks:
                vm.copied(disk, self.saved / disk.name)  # what is on the disks belongs to what is in memory
            api.tell(*RESUME)
            self._stood_ns.append(time.monotonic_ns() - stands)
        self.channel.expect(self.channel)
        return b""

    def _load(self, other: MicroVmLife, former: GuestChannel) -> bytes:
        """Become the machine of a snapshot; its agent connects once a command is asked of it."""
        tap = None if other is self else self.tap
        firecracker_api.configure(self._api, [firecracker_api.load(*other._files(), tap)])
        self.channel.expect(former)
        return b"here"

    def _files(self) -> tuple[str, str]:
        return str(self.saved / STATE), str(self.saved / MEMORY)

    def _take_disks(self, snapshot: Path) -> None:
        for disk in self.disks:
            vm.copied(snapshot / disk.name, disk)

    def _remake(self) -> None:
        self._take_disks(self.saved)
        self.channel.forget_waiting()
