"""The start of an instance from the disk: as `startup`, but the files that it reads are not in the host's page cache.

Before the start the platform's form of the image (folder, ext4 file, the layers in a daemon's store), a guest's kernel
and initramfs, the platform's own programs and their libraries are dropped from the page cache, file by file. Not
dropped are files that other running processes have mapped (libc, a daemon that is not started anew), the kernel's
caches of names and inodes, and caches of the disk itself or of a hypervisor below the host. `startup` is the same start
with warm caches: every platform was started before the first block. Each cold start is that of an instance of its own,
at the end of the block.
"""

from __future__ import annotations

from typing import ClassVar

from tare.workloads.startup.startup import Startup


class StartupCold(Startup):
    """No parameters; the metrics are those of `startup`."""

    name = "startup-cold"
    title = "start of an instance from the disk, from prepared and from nothing, by four definitions"
    by_default = False
    cold: ClassVar[bool] = True


WORKLOAD = StartupCold()
