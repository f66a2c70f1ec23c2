"""The kernel module that counts functions: a file that was built elsewhere, or built for the running kernel."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from tare.errors import HostError
from tare.host import distribution, processes, state
from tare.image.places import atomic_directory

NAME = "tare_fcount"
SOURCE = Path(__file__).with_name("fcount")
#: Names the file of a module that was built elsewhere for this kernel: a lab gets its own so.
BROUGHT = "TARE_FCOUNT"
LIMIT_S = 300.0
MODULES = Path("/lib/modules")


def find() -> Path:
    """The module's file for this kernel; built, once, if need be. Raises `HostError` with the fix."""
    brought = os.environ.get(BROUGHT)
    if brought:
        if not Path(brought).is_file():
            raise HostError(f"{BROUGHT} names {brought}, which is no file", fix=f"unset {BROUGHT}")
        return Path(brought)
    release = os.uname().release
    place = state.home() / "lab" / f"module-{NAME}-here-{release}-{digest()}"
    if not place.is_dir():
        headers = MODULES / release / "build"
        if not headers.is_dir():
            raise HostError(
                f"the headers of the kernel {release}, by which a module is built, are not installed",
                fix=f"{distribution.install(f'linux-headers-{release}', 'make')}, or let a lab do it: without --here",
            )
        place.parent.mkdir(exist_ok=True)
        with atomic_directory(place, "the module that counts functions") as new_folder:
            build(headers, new_folder)
    return place / f"{NAME}.ko"


def digest() -> str:
    """8 hexadecimal digits over the module's source."""
    files = sorted(path for path in SOURCE.iterdir() if path.is_file())
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:8]


def build(headers: Path, folder: Path) -> None:
    """Build the module in a folder, against the headers of a kernel, with this host's compiler."""
    for file in SOURCE.iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    done = processes.run(["make", "-C", str(headers), f"M={folder}", "modules"], time_limit_s=LIMIT_S)
    done.require(fix="let a lab do it: without --here")
