"""Builder of modules for the kernel of a lab's host, with the compiler and headers that Debian built that kernel with.

The tools are in a root of their own: neither the lab's host nor this host gets a compiler.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
from pathlib import Path

from tare.errors import ImageError
from tare.features.kernel.lab import lab_build, lab_recipes
from tare.host import processes
from tare.image import image_build
from tare.image.build_places import atomic_directory, locked
from tare.model import Progress

LIMIT_S = 300.0


def release(host: Path) -> tuple[str, str]:
    """Return the release (``uname -r``) and package version of the kernel on a host's disk. Raises `ImageError`."""
    installed: dict[str, str] = json.loads((host / "packages.json").read_text())
    for name, version in installed.items():
        match = re.fullmatch(r"linux-image-(\d.*)", name)
        if match is not None:
            return match[1], version
    raise ImageError(f"the lab's host {host.name} has no kernel", fix=f"rm -r {host}; tare lab build")


def module(host: Path, source: Path, name: str, progress: Progress) -> Path:
    """Return the module ``name``.ko for the kernel of a host (a folder of `build.host`). Build it if it is missing.

    ``source``: a folder with a Makefile for the kernel's build system. Raises `ImageError`.
    """
    kernel, version = release(host)
    place = lab_build.folder() / f"module-{name}-{_digest(source, kernel, version)}"
    with locked(lab_build.folder(), progress, "the lab"):
        if not place.is_dir():
            root = _root(kernel, version, progress)
            progress(f"building the module {name} for {kernel} (some seconds)")
            with atomic_directory(place, f"the module {name}") as new_folder:
                compiled = _compile(root, kernel, source, name)
                (new_folder / f"{name}.ko").write_bytes(compiled)
    return place / f"{name}.ko"


def _digest(source: Path, kernel: str, version: str) -> str:
    hashed = hashlib.sha256(f"{kernel} {version}\n".encode())
    for file in sorted(path for path in source.iterdir() if path.is_file()):
        hashed.update(f"{file.name} {file.stat().st_size}\n".encode() + file.read_bytes())
    return hashed.hexdigest()[:16]


def _root(kernel: str, version: str, progress: Progress) -> Path:
    """Return a root with ``make``, the headers and their compiler. The caller holds the lock."""
    root_recipe = lab_recipes.load().headers(kernel)
    place = lab_build.folder() / f"headers-{root_recipe.hash}"
    stale = f"rm -r the folder host-* of that kernel in {lab_build.folder()}; it is then rebuilt"
    if not place.is_dir():
        progress(f"making a root with the headers of {kernel} (about half a minute)")
        with atomic_directory(place, "the lab's headers") as new_folder:
            try:
                lab_build.bootstrap(root_recipe, new_folder / "root")
            except ImageError as error:
                if "Unable to locate package" not in error.what:
                    raise
                raise ImageError(f"Debian's archive has no headers of {kernel} any more", fix=stale) from error
    installed = image_build.installed(place / "root").get(f"linux-headers-{kernel}")
    if installed != version:
        shutil.rmtree(place)
        raise ImageError(
            f"the headers of {kernel} are of version {installed}, the lab's kernel is of {version}", fix=stale
        )
    return place / "root"


def _compile(root: Path, kernel: str, source: Path, name: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="build-", dir=root) as scratch:
        for file in source.iterdir():
            if file.is_file():
                shutil.copy(file, scratch)
        inside = f"/{Path(scratch).name}"
        make = ["make", "-C", f"/usr/src/linux-headers-{kernel}", f"M={inside}", "modules"]
        done = processes.run(["chroot", str(root), *make], time_limit_s=LIMIT_S)
        if done.code != 0:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            cause = next((line for line in lines if "error" in line), lines[-1] if lines else "no message")
            raise ImageError(f"the module {name} is not built for {kernel}: {cause}", fix="report it, it is a bug")
        return Path(scratch, f"{name}.ko").read_bytes()
