"""Minimal root that can start the agent, for tryouts of platforms, which then need not wait for the image."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from tare.image import image_manifest
from tare.image.image_build import AGENT_INSIDE, HASH_INSIDE, Image
from tare.image.outer import located, with_libraries

#: The host's own programs that are added to the agent. Some platforms start it by a shell, or beside an idle program.
PROGRAMS = ("sh", "sleep", "true")
_FOLDERS = ("data", "dev", "etc", "proc", "root", "run", "sys", "tmp", "usr/bin", "usr/lib", "usr/lib64", "usr/sbin")
_LINKS = ("bin", "lib", "lib64", "sbin")


def make(agent: Path, folder: Path) -> Image:
    """Create the root in an empty folder, in milliseconds and some megabytes. Raises `ImageError`, `OSError`."""
    root = folder / "root"
    for below in _FOLDERS:
        (root / below).mkdir(parents=True)
    for name in _LINKS:
        (root / name).symlink_to(f"usr/{name}")
    for program in PROGRAMS:
        place, *libraries = with_libraries(located(program))
        # The target path is the same wherever this host has the program.
        _copy(Path(place), root / "usr/bin" / program)
        for file in libraries:
            _copy(Path(file), root / file.strip("/"))
    _copy(agent, root / AGENT_INSIDE)
    agent_hash = hashlib.sha256(agent.read_bytes()).hexdigest()
    digest = hashlib.sha256(f"tryout {folder} {agent_hash}".encode()).hexdigest()
    (root / HASH_INSIDE).write_text(f"{digest}\n")
    (root / "etc/os-release").write_text("ID=tare-tryout\n")  # systemd-nspawn recognizes a root by this file.
    manifest = image_manifest.Manifest(suite="none", recipe_hash="none", packages={})
    return Image(digest, root, manifest, agent_hash)


def _copy(file: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.exists():
        shutil.copyfile(file, place)
        place.chmod(0o755)
