"""Files on the data volume: bytes of one that is in the page cache, and files made and removed.

Reads and writes are of the file's beginning (pread, pwrite), so that they stay in the cache; what is written back is a
page now and then. `file-fsync` waits for the disk before the file is closed: its rate is that of the disk below, and of
what lies between.
"""

from __future__ import annotations

from tare.workloads.kernel.unit import unit_cost

WORKLOADS = (
    unit_cost("file-read-1b", "read of 1 byte of a cached file in /data", "file-read-1b"),
    unit_cost("file-read-4k", "read of 4 KiB of a cached file in /data", "file-read-4k"),
    unit_cost("file-write-1b", "write of 1 byte to a cached file in /data", "file-write-1b"),
    unit_cost("file-write-4k", "write of 4 KiB to a cached file in /data", "file-write-4k"),
    unit_cost("file-create", "a file in /data made, closed and removed", "file-create", "file"),
    unit_cost("file-fsync", "a file in /data made, synced, closed and removed", "file-fsync", "file"),
)
