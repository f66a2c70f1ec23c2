"""A cold start: the files that it reads are not in the host's page cache.

Dropped from the cache, file by file: the platform's form of the image (and the kernel and initramfs of a guest), the
platform's own programs, and the shared libraries that those are linked with; nothing else of the host. Not dropped:
pages that a running process has mapped (libc, which tare itself uses; a daemon's program, as it is not restarted), the
kernel's caches of names and inodes, the programs that tare uses itself (sh, bash and ip, for the surroundings), and the
caches of a disk or of a hypervisor below the host.
"""

from __future__ import annotations

import functools
from pathlib import Path

from tare.errors import HostError
from tare.host import libraries, processes
from tare.host.filesystems import roots
from tare.image.image_build import Image
from tare.platforms import platform_contract
from tare.platforms.base import Platform


def drop_start_files(platform: Platform, image: Image) -> None:
    """Write back the files that a start of the platform reads, and drop them from the page cache.

    Raises `HostError` where these files are not known.
    """
    form = platform_contract.prepared(platform, image)
    if not form.files or platform.elsewhere:
        raise HostError(
            f"which files of this host a start of {platform.name} reads is not known: none of its starts is cold",
            fix=f"leave startup-cold out for {platform.name}",
        )
    for path in (*form.files, *_programs(form.programs)):
        roots.drop_page_cache(path)


@functools.cache
def _programs(names: tuple[str, ...]) -> tuple[Path, ...]:
    programs = filter(None, map(processes.find, names))
    files = (file for program in programs for file in (program, *libraries.linked(program).values()))
    return tuple(dict.fromkeys(Path(file).resolve() for file in files if file is not None))
