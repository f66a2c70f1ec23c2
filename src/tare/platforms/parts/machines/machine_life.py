"""The life of a QEMU machine by its command, monitor (QMP) and guest channel; its snapshots and their copies."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tare.platforms.base import Life
from tare.platforms.parts.machines import qmp, vm
from tare.platforms.parts.machines.channel import GuestChannel
from tare.platforms.parts.machines.qemu_line import QemuMachine, command


@dataclass(slots=True)
class MachineLife:
    """A machine that lives; a monitor is part of it. ``saved``: where its snapshot is to be."""

    machine: QemuMachine
    monitor: Path
    channel: GuestChannel
    saved: Path
    made_ns: int | None
    _stood_ns: list[int] = field(default_factory=list)

    def life(self, close: Callable[[], None]) -> Life:
        """Return what its users do. ``close``: as of `Life`."""
        return Life(
            start=self._words(),
            execute=(),
            stop=(),
            kill=(),
            restore=self._words(self.saved),
            snapshot_at=self.saved,
            remake=lambda: self._take_disks(self.saved),
            stays=True,
            made_ns=self.made_ns,
            acts={
                "start": lambda _: self.channel.open(),
                "execute": self.channel.run,
                "stop": lambda _: self.channel.switch_off(),
                "kill": lambda _: qmp.ask(self.monitor, "quit"),
                "pause": lambda _: qmp.ask(self.monitor, "stop"),
                "resume": lambda _: qmp.ask(self.monitor, "cont"),
                "snapshot": lambda _: self._snapshot(),
                "restore": lambda _: self._go_on(self.channel.reopen),
            },
            files=self.channel.files(lambda: self._stood_ns[-1]),
            close=close,
        )

    def copy_of(self, other: MachineLife, close: Callable[[], None]) -> Life:
        """Return the same of a copy of another machine's snapshot, whose disks it takes now."""
        self._take_disks(other.saved)
        life = self.life(close)
        start = {"start": lambda _: self._go_on(lambda: self.channel.take_up(other.channel))}
        return replace(life, start=self._words(other.saved), acts={**life.acts, **start})

    def _words(self, snapshot: Path | None = None) -> tuple[str, ...]:
        folder = self.monitor.parent
        incoming = [] if snapshot is None else qmp.incoming(snapshot / "state")
        # What the guest writes to further disks goes to a temporary file there.
        return ("env", f"TMPDIR={folder}", *command(self.machine), *incoming)

    def _disks(self) -> Sequence[Path]:
        """Return the files that it writes to."""
        return [self.machine.root, *([self.machine.data] if self.machine.data is not None else [])]

    def _take_disks(self, snapshot: Path) -> None:
        self.monitor.unlink(missing_ok=True)
        for disk in self._disks():
            vm.copied(snapshot / disk.name, disk)

    def _snapshot(self) -> bytes:
        self.saved.mkdir(exist_ok=True)
        with qmp.connected(self.monitor) as qemu:
            qemu.ask("stop")
            stands = time.monotonic_ns()
            qmp.save(qemu, self.saved / "state")
            for disk in self._disks():
                vm.copied(disk, self.saved / disk.name)  # what is on the disks belongs to what is in memory
            qemu.ask("cont")
            self._stood_ns.append(time.monotonic_ns() - stands)
        return b""

    def _go_on(self, take_up: Callable[[], bytes]) -> bytes:
        """Take up the session in a machine that comes from a state, and let it run once that is read."""
        here = take_up()
        with qmp.connected(self.monitor, begins=True) as qemu:
            qemu.wait_for("query-migrate", "completed")
            qemu.ask("cont")
        return here
