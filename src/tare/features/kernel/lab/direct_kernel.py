"""Kernel of microVMs that boot without an initramfs (`direct.config`): Debian's cloud kernel with virtio built in.

It is stored with the guests' kernels (`tare.image.guest.direct`). The build needs a Debian host, and takes half an hour
on two processors.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from importlib import resources
from pathlib import Path

from tare.features.kernel.lab import kernel, lab_build, lab_recipes
from tare.image import guest
from tare.image.build_places import atomic_directory, locked
from tare.model import Progress

#: Approximate number of files to compile, for the progress display.
OBJECTS = 2100
#: Further packages for the build: Debian's configuration embeds keys in the kernel.
_BESIDE = ("libssl-dev",)


def ensure(progress: Progress) -> Path:
    """Return the folder of the kernel. Build it if it is missing. Raises `ImageError`."""
    place = guest.direct_folder()
    with locked(lab_build.folder(), progress, "the kernel without an initramfs"):
        if not place.is_dir():
            with atomic_directory(place, "the kernel without an initramfs") as new_folder:
                _make(new_folder, progress)
    return place


def _make(new_folder: Path, progress: Progress) -> None:
    recipes = lab_recipes.load()
    base = next(like for _, like in recipes.variants.values())
    versions = {package: kernel.candidate_of(package) for package in (base.source, base.compiler)}
    root, log = new_folder / "root", new_folder / "build.log"
    progress(f"making the root in which {base.source} {versions[base.source]} is built (about a minute)")
    lab_build.bootstrap(lab_recipes.build_root(replace(base, packages=(*base.packages, *_BESIDE)), versions), root)
    (new_folder / "packages.json").write_text(json.dumps(versions, indent=1))
    asked = resources.files("tare.features.kernel.lab").joinpath("direct.config").read_text()
    (root / "wanted.config").write_text(asked)
    shutil.copyfile(guest.config(), root / "base.config")
    kernel.build_in(root, log, new_folder, asked, base.compiler, OBJECTS, progress)
    tree = root / kernel.TOP.lstrip("/")
    shutil.copyfile(tree / "arch/x86/boot/bzImage", new_folder / guest.PACKED)
    release = (tree / "include/config/kernel.release").read_text().strip()
    (new_folder / guest.RELEASE).write_text(release)
    shutil.rmtree(root)
