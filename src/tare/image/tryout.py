"""A root with just enough in it to start the agent: for tryouts of platforms, which need not wait for the image."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from tare.image import manifests
from tare.image.build import AGENT_INSIDE, HASH_INSIDE, Image
from tare.image.outer import located, with_libraries

#: Besides the agent: the host's own. Some platforms start the agent by a shell, or beside a program that does nothing.
PROGRAMS = ("sh", "sleep", "true")
_FOLDERS = ("data", "dev", "etc", "proc", "root", "run", "sys", "tmp", "usr/bin", "usr/lib", "usr/lib64", "usr/sbin")
_LINKS = ("bin", "lib", "lib64", "sbin")


def make(agent: Path, folder: Path) -> Image:
    """Make it in an empty folder; takes some megabytes and milliseconds. Raises `ImageError`, `OSError`."""
    root = folder / "root"
    for below in _FOLDERS:
        (root / below).mkdir(parents=True)
    for name in _LINKS:
        (root / name).symlink_to(f"usr/{name}")
    for program in PROGRAMS:
        place, *libraries = with_libraries(located(program))
        _copy(Path(place), root / "usr/bin" / program)  # wherever this host has it
        for file in libraries:
            _copy(Path(file), root / file.strip("/"))
    _copy(agent, root / AGENT_INSIDE)
    agent_hash = hashlib.sha256(agent.read_bytes()).hexdigest()
    digest = hashlib.sha256(f"tryout {folder} {agent_hash}".encode()).hexdigest()
    (root / HASH_INSIDE).write_text(f"{digest}\n")
    (root / "etc/os-release").write_text("ID=tare-tryout\n")  # what systemd-nspawn knows a root by
    manifest = manifests.Manifest(suite="none", recipe_hash="none", packages={})
    return Image(digest, root, manifest, agent_hash)


def _copy(file: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.exists():
        shutil.copyfile(file, place)
        place.chmod(0o755)
