"""Python packages of tare's lock, installed for another Python than this one."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from pathlib import Path

from tare.errors import HostError
from tare.host import processes
from tare.model import Progress

#: The lock of a clone; the wheel has it beside this module.
LOCK = "requirements.lock"
PIP_LIMIT_S = 900.0


def install_locked(
    target: Path, names: Collection[str], version: str, progress: Progress, *, where: str = "what is packed"
) -> None:
    """Install packages for another Python: the files whose hashes are in the lock, and no others. Raises `HostError`.

    ``where``: what they are installed for, as a message names it.
    """
    requirements = lock_entries(lock(), names)
    if unlocked := sorted({*names} - requirements.keys()):
        progress(f"left out of {where}, as the lock has no hashes of them: {', '.join(unlocked)}")
    file = target.with_name(LOCK)
    file.write_text("".join(requirements.values()))
    pip = [sys.executable, "-I", "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--target"]
    pip += [str(target), "--only-binary=:all:", "--python-version", version, "--require-hashes", "-r", str(file)]
    fix = f"see that pip of {sys.executable} reaches its index, which has wheels for Python {version}"
    processes.run(pip, time_limit_s=PIP_LIMIT_S, env=processes.kept(*processes.BUILDS)).require(fix=fix)
    file.unlink()


def lock() -> str:
    """Return the lock that tare was built with: versions and hashes of Python packages. Raises `HostError`."""
    return lock_place().read_text(encoding="utf-8")


def lock_place() -> Path:
    """Return the place of the lock: in the wheel, or in the clone. Raises `HostError`."""
    for place in (Path(__file__).with_name(LOCK), Path(__file__).parents[3] / LOCK):
        if place.is_file():
            return place
    raise HostError(f"this tare was installed without {LOCK}", fix="install the wheel that `make wheel` builds")


def lock_entries(text: str, names: Collection[str]) -> dict[str, str]:
    """Return the entries of a lock for these packages, by name; one that depends on the Python may have several."""
    entries: dict[str, str] = {}
    for entry in re.findall(r"^\S.*\n(?:\s+.*\n)*", text, re.MULTILINE):
        name = entry.partition("==")[0]
        if name in names:
            entries[name] = entries.get(name, "") + entry
    return entries
