"""Snapshots of an instance that has touched 64 or 512 MiB of memory, by the platform's own commands, and restores.

``snapshot``: from the command until it has returned; ``silent``: the longest time that the instance did not answer
meanwhile; ``size``: what lies on the disk then. The instance is killed and removed, and restored twice: its files
dropped from the page cache, and kept there. ``restore``: until the platform says that it runs; ``first-command``: until
a command run inside has returned; ``read-again``: what reading up to 128 MiB of the former memory takes then. The host
checks that the memory is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.model import Direction, Metric
from tare.workloads.apart import Snapshot, SnapshotWorkload
from tare.workloads.base import Outcome, Params
from tare.workloads.life.programs import remembers


class _Snapshots(SnapshotWorkload):
    """Parameters: ``time_s``, ``memory_mib``."""

    metrics = (
        Metric("snapshot", "ms", Direction.LOWER, "until the snapshot is written"),
        Metric("silent", "ms", Direction.LOWER, "the longest time that the instance did not answer meanwhile"),
        Metric("size", "MiB", Direction.LOWER, "the snapshot's size on the disk"),
        Metric("cpu", "ms", Direction.LOWER, "CPU time of a snapshot"),
        Metric("restore", "ms", Direction.LOWER, "until the platform says that it runs, files in the page cache"),
        Metric(
            "first-command", "ms", Direction.LOWER, "until a first command has returned, files in it", headline=True
        ),
        Metric("restore-dropped", "ms", Direction.LOWER, "until the platform says that it runs, page cache dropped"),
        Metric("first-command-dropped", "ms", Direction.LOWER, "until a first command has returned, dropped"),
        Metric("read", "ms", Direction.LOWER, "reading of up to 128 MiB of its memory before"),
        Metric("read-again", "ms", Direction.LOWER, "the same after the restore"),
        Metric("read-again-dropped", "ms", Direction.LOWER, "the same after the restore, page cache dropped"),
    )
    work_unit = "snapshot"

    def read(self, snapshots: Sequence[Snapshot]) -> Outcome:
        series: dict[str, Sequence[float | None]] = {
            "snapshot": [snapshot.wall_ns / 1e6 for snapshot in snapshots],
            "silent": [snapshot.silent_ns / 1e6 for snapshot in snapshots],
            "size": [snapshot.disk_bytes / 2**20 for snapshot in snapshots],
            "cpu": [snapshot.cpu_ns / 1e6 for snapshot in snapshots],
            "restore": [snapshot.warm.done_ns / 1e6 for snapshot in snapshots],
            "first-command": [snapshot.warm.command_ns / 1e6 for snapshot in snapshots],
            "restore-dropped": [snapshot.dropped.done_ns / 1e6 for snapshot in snapshots],
            "first-command-dropped": [snapshot.dropped.command_ns / 1e6 for snapshot in snapshots],
            "read": [snapshot.read_ns / 1e6 for snapshot in snapshots],
            "read-again": [snapshot.warm.read_ns / 1e6 for snapshot in snapshots],
            "read-again-dropped": [snapshot.dropped.read_ns / 1e6 for snapshot in snapshots],
        }
        return Outcome({}, len(snapshots), series)


class Small(_Snapshots):
    """Parameters: ``time_s``, ``memory_mib``."""

    name = "snapshot-64"
    title = "a snapshot of an instance with 64 MiB in use, and its restore"
    touched_mib = read_mib = 64
    payload = remembers(64, 64)
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"time_s": 3, "memory_mib": 384},
        "full": {"time_s": 20, "memory_mib": 384},
    }


class Large(_Snapshots):
    """Parameters: ``time_s``, ``memory_mib``."""

    name = "snapshot-512"
    title = "a snapshot of an instance with 512 MiB in use, and its restore"
    touched_mib, read_mib = 512, 128
    payload = remembers(512, 128)
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"time_s": 3, "memory_mib": 1024},
        "full": {"time_s": 20, "memory_mib": 1024},
    }


WORKLOADS = (Small(), Large())
