"""Ends an instance that takes more of the host's disk than it may, before the disk is full for all.

A thread checks the free space of the filesystems that instances write to, which costs some microseconds. What each
instance has taken is counted only once so much is gone that one may be beyond its limit, or the reserve is touched. The
files of an ended instance are removed at once: its trial fails with the reason, and all others go on.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tare.errors import Failed, SessionError, attempt
from tare.host import processes
from tare.host.cgroup import Group
from tare.host.filesystems import volumes
from tare.host.filesystems.roots import Workspace
from tare.host.filesystems.volumes import Room
from tare.session import Session

#: Seconds between two looks. A guest that writes 2 GB/s takes half a gigabyte meanwhile; the reserve is larger.
INTERVAL_S = 0.25
#: Free space that instances must leave on a filesystem: this, or a share of the space free at first; at most half.
MIN_RESERVE = Room(1 << 30, 10_000)
RESERVE_SHARE, MAX_RESERVE_SHARE = 0.1, 0.5
#: The instances' files are counted again only after the disk has changed by this share of what an instance may take.
STEP_SHARE = 1 / 16
#: An instance that has taken less is not ended for a full disk: it did not fill it.
BLAMELESS = Room(64 << 20, 5_000)
EMPTY_LIMIT_S = 60.0
FIX = "see what it writes; --data-size gives every instance a filesystem that it cannot outgrow"


@dataclass(slots=True, eq=False)
class Tenant:
    """An instance whose use of the host's disk is watched, with its limit."""

    space: Workspace
    group: Group  # that has its processes, which a kubelet makes itself
    limit: Room
    folders: set[Path]
    placed: str  # the path of the group that tare made for it
    ended_for: SessionError | None = None
    session: Session | None = None

    def devices(self) -> set[int]:
        """Return the device numbers (``st_dev``) of the filesystems that it writes to."""
        return {folder.stat().st_dev for folder in self.folders if folder.exists()}

    def taken(self) -> Room | None:
        """Return the bytes and files that it has taken so far; None where there are too many files to count."""
        return volumes.taken(self.folders, self.group.pids())

    def end(self, why: str) -> None:
        """Kill all of its processes, and free its space now: its trial may take a while to notice the end."""
        self.ended_for = SessionError(why, fix=FIX)
        if self.session is not None:
            self.session.condemn(self.ended_for)
        self.group.kill()
        waste = [str(folder) for folder in (self.space.data, self.space.folder / "upper") if folder.is_dir()]
        processes.run(["rm", "-rf", "--one-file-system", "--", *waste], time_limit_s=EMPTY_LIMIT_S)


@dataclass(slots=True)
class _Filesystem:
    """A filesystem that tenants write to."""

    place: Path
    reserve: Room
    highest: Room  # the most that was free since the last count
    slack: Room  # by how much that may fall before a tenant may be beyond its limit, or the reserve is touched

    def due(self, now: Room) -> bool:
        """Return True if it is time to count."""
        self.highest = volumes.most(self.highest, now)
        return (self.highest - now).beyond(self.slack)

    def expect(self, now: Room, limits: Sequence[Room]) -> None:
        """Set when to count next: ``limits`` is how much more each tenant may take from now on."""
        step = volumes.least(limits).part(STEP_SHARE)
        self.slack = volumes.most(volumes.least([*limits, now - self.reserve]), step)
        self.highest = now


@dataclass(slots=True)
class DiskWatch:
    """Knows the instances that write to the host's disk; ends those that take too much while `watching`."""

    interval_s: float = INTERVAL_S
    failed: Failed | None = None  # why a look failed last
    _tenants: list[Tenant] = field(default_factory=list)
    _filesystems: dict[int, _Filesystem] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Watch all tenants while the context lasts."""
        end = threading.Event()
        thread = threading.Thread(target=self._run, args=(end,), name="disk watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()

    def add(self, space: Workspace, group: Group, volume: int | None) -> Tenant:
        """Add an instance that is about to start. ``volume``: bytes of its own filesystem; None: it has none."""
        place, limit = volumes.bounds(space.folder, volume)
        limit = volumes.most(limit, BLAMELESS)  # where others have left less than that
        tenant = Tenant(space, group, limit, {place}, group.path)
        with self._lock:
            remaining = [earlier for earlier in self._tenants if earlier.space.folder.exists()]  # others are stopped
            self._tenants = [*remaining, tenant]
            self._expect(place, limit)
        return tenant

    def started(self, tenant: Tenant, session: Session) -> None:
        """Complete a tenant that runs now: with the folders that it writes to, and the session to end with a reason."""
        tenant.session = session
        if tenant.ended_for is not None:
            session.condemn(tenant.ended_for)
        for folder in volumes.upper_folders(tenant.group.pids()):
            if folder.is_relative_to(tenant.space.folder):
                continue
            tenant.folders.add(folder)
            with self._lock:
                self._expect(folder, tenant.limit)

    def why_ended(self, group: str) -> SessionError | None:
        """Return why the instance that tare made this control group for was ended; None where it was not."""
        return next((tenant.ended_for for tenant in self._tenants if tenant.placed == group), None)

    def look(self) -> None:
        """Check once: count on the filesystems where it is due, and end the instances that have taken too much."""
        for device, filesystem in list(self._filesystems.items()):
            now = volumes.free(filesystem.place)
            if filesystem.due(now):
                self._count(device, filesystem, now)

    def _run(self, end: threading.Event) -> None:
        while not end.wait(self.interval_s):
            looked = attempt(self.look)
            if isinstance(looked, Failed):
                self.failed = looked

    def _expect(self, place: Path, limit: Room) -> None:
        now, device = volumes.free(place), place.stat().st_dev
        if device not in self._filesystems:
            share, most = now.part(RESERVE_SHARE), now.part(MAX_RESERVE_SHARE)
            reserve = volumes.least([volumes.most(MIN_RESERVE, share), most])
            self._filesystems[device] = _Filesystem(volumes.top(place), reserve, now, now)
        filesystem = self._filesystems[device]
        filesystem.slack = volumes.least([filesystem.slack, limit, now - filesystem.reserve])

    def _count(self, device: int, filesystem: _Filesystem, now: Room) -> None:
        with self._lock:
            tenants = [tenant for tenant in self._tenants if tenant.ended_for is None and device in tenant.devices()]
        counted = {tenant: tenant.taken() for tenant in tenants}
        short = filesystem.reserve.beyond(now)
        greedy = [tenant for tenant, taken in counted.items() if taken is None or taken.beyond(tenant.limit)]
        for tenant in greedy or (_largest(counted, now, filesystem.reserve) if short else ()):
            tenant.end(_why(counted.pop(tenant), tenant.limit, now if tenant not in greedy else None))
        limits = [tenant.limit - taken for tenant, taken in counted.items() if taken is not None]
        with self._lock:
            filesystem.expect(volumes.free(filesystem.place), limits or [filesystem.reserve])


def _largest(counted: dict[Tenant, Room | None], now: Room, reserve: Room) -> list[Tenant]:
    """Return the tenant that has taken most of what is short, bytes or files; empty where all have taken little."""
    files = now.bytes >= reserve.bytes
    taken = {tenant: room for tenant, room in counted.items() if room is not None and room.beyond(BLAMELESS)}
    return sorted(taken, key=lambda tenant: taken[tenant].files if files else taken[tenant].bytes)[-1:]


def _why(taken: Room | None, limit: Room, free: Room | None) -> str:
    amount = "more files than can be counted" if taken is None else str(taken)
    if free is not None:
        return f"the host's disk was nearly full ({free} left), and this instance had taken most of all: {amount}"
    return f"the instance took more of the host's disk than it may: {amount}, of {limit}"
