"""A user's own build of a runtime, beside the one that is installed: two builds of one runtime are two platforms."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from tare.errors import UsageError
from tare.host.daemons import runtimes
from tare.platforms.base import Availability, Platform, PlatformFamily
from tare.platforms.parts.bundles import genuine

#: The family of platforms of an own build, by the program that it is a build of.
FAMILY_OF: Mapping[str, str] = {"runc": "runc", "crun": "crun", "youki": "youki", "runsc": "gvisor"}


def family(platform: str, program: str, make: Callable[[str, str], Platform]) -> Mapping[str, PlatformFamily]:
    """``FAMILIES`` of a runtime's module. ``make``: the platform, from its name and the path of its program."""
    return {
        platform: PlatformFamily(
            lambda file: make(f"{platform}:{file}", located(file)),
            "FILE",
            f"your own build of {program}, beside the one that is installed",
            f"name a file: -p {platform}:./{program}",
        )
    }


def located(file: str) -> str:
    """Return the path of a user's own build. Raises `UsageError` for what no program is."""
    place = Path(file).resolve()
    if not place.is_file() or not os.access(place, os.X_OK):
        what = "is not executable" if place.is_file() else "is no file"
        raise UsageError(f"{file} {what}", fix="name a build of the runtime, such as runc:./runc")
    return str(place)


def unfit(path: str, program: str) -> Availability | None:
    """Return why an own build is not measured; None: it is. ``program``: what it is to be a build of."""
    if runtimes.find(program) is None:
        reason = f"{program} is not installed, which removes what a killed tare leaves of another build"
        return Availability(False, reason=reason, fix=f"tare setup --with {FAMILY_OF[program]}")
    return genuine.other(path, program)


def details(path: str) -> dict[str, str]:
    """Which build it is: two of one version differ in this."""
    return {"program": path, "sha256": hashlib.sha256(Path(path).read_bytes()).hexdigest()}
