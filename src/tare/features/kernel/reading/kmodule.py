"""Files of the kernel module that counts functions: prebuilt, or built for the running kernel."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from tare.errors import HostError
from tare.host import distribution, processes, state
from tare.image.build_places import atomic_directory

NAME = "tare_fcount"
SOURCE = Path(__file__).with_name("fcount")
#: Environment variable with the path of a module built elsewhere for this kernel. A lab gets its module this way.
BROUGHT = "TARE_FCOUNT"
LIMIT_S = 300.0
MODULES = Path("/lib/modules")


def find() -> Path:
    """Return the module's file for this kernel. Build it once if it is missing. Raises `HostError` with the fix."""
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
    """Return 8 hexadecimal digits that identify the module's source."""
    files = sorted(path for path in SOURCE.iterdir() if path.is_file())
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:8]


def build(headers: Path, folder: Path) -> None:
    """Build the module in a folder, against a kernel's headers, with this host's compiler."""
    for file in SOURCE.iterdir():
        if file.is_file():
            shutil.copy(file, folder)
    done = processes.run(["make", "-C", str(headers), f"M={folder}", "modules"], time_limit_s=LIMIT_S)
    done.require(fix="let a lab do it: without --here")
