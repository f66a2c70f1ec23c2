"""Builder of the parts of a lab, each built once: an emulator, a host's disk by flavour, and the payload.

The emulator is QEMU from Debian's backports, in a small root of its own, so the host's own QEMU stays as it is. This
module contains no archive's address: it takes the archive from the host's own apt sources.
"""

from __future__ import annotations

import json
import lzma
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tare.errors import ImageError
from tare.features.kernel.lab import lab_recipes
from tare.features.kernel.lab.lab_recipes import Root
from tare.host import distribution, processes, state
from tare.host.filesystems import ext4
from tare.image import image_build
from tare.image.build_places import atomic_directory, locked
from tare.model import Progress

#: Roots, disks and payload together, with room to work.
NEEDED_DISK = 8 << 30
LIMIT_S = 1800.0
HYPERVISOR_CAP = 64 << 20
#: TARE_HOME inside the emulator's root.
HOME_INSIDE = "tare"
#: Modules that the host's initramfs loads, with their dependencies. A missing module is built in.
MODULES = ("virtio_pci", "virtio_blk", "virtio_console", "virtio_rng", "crc32c_generic", "ext4")


def folder() -> Path:
    """Return the folder of the lab's parts, below ``TARE_HOME``. Create it if it is missing."""
    place = state.home() / "lab"
    place.mkdir(exist_ok=True)
    return place


def emulator(progress: Progress) -> Path:
    """Return the root of the emulator. Build it if it is missing. Raises `ImageError`."""
    root_recipe = lab_recipes.load().emulator
    place = folder() / f"qemu-{root_recipe.hash}"
    with locked(folder(), progress, "the lab"):
        if not place.is_dir():
            progress(f"making the emulator's root from {root_recipe.newer} (about half a minute)")
            with atomic_directory(place, "the lab's emulator") as new_folder:
                bootstrap(root_recipe, new_folder / "root")
                (new_folder / "root" / HOME_INSIDE).mkdir()
    return place / "root"


def host(flavour: str, progress: Progress) -> Path:
    """Return the folder with a host's disk, kernel and modules. Build it if it is missing.

    ``flavour``: a flavour of the lab or a stock host. Raises `ImageError`, `UsageError`.
    """
    lab_recipe = lab_recipes.load()
    flavour = lab_recipe.resolved(flavour)[0]
    root_recipe = lab_recipe.host(flavour)
    place = folder() / f"host-{flavour}-{root_recipe.hash}"
    with locked(folder(), progress, "the lab"):
        if not place.is_dir():
            progress(f"making the host {flavour} (one to three minutes)")
            with atomic_directory(place, "the lab's host") as new_folder:
                root = new_folder / "root"
                bootstrap(root_recipe, root)
                _take_kernel(root, new_folder)
                (new_folder / "packages.json").write_text(json.dumps(image_build.installed(root), indent=1))
                (root / "lab").mkdir()
                disk(root, new_folder / "disk.ext4", lab_recipe.disk_bytes)
                shutil.rmtree(root)
    return place


def disk(root: Path, file: Path, size_bytes: int) -> None:
    """Create an ext4 filesystem with the contents of a folder, as a sparse file."""
    result = ext4.make(file, size_bytes, *ext4.AT_ONCE, contents=root)
    result.require(fix="free disk space below TARE_HOME")


def newer_sources(text: str, suite: str, newer: str) -> str:
    """Return the part of apt's sources for one suite, rewritten for another suite of the same archive; "" if none."""
    for stanza in re.split(r"\n\s*\n", text):
        lines = [line for line in stanza.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        if any(re.match(rf"Suites:.*\b{suite}(\s|$)", line) for line in lines):
            return "".join(f"Suites: {newer}\n" if line.startswith("Suites:") else f"{line}\n" for line in lines)
        for line in lines:
            if re.match(rf"deb\s.*\s{suite}\s", line):
                return re.sub(rf"\s{suite}\s", f" {newer} ", line) + "\n"
    return ""


def obstacle() -> ImageError | None:
    """Return the reason why no root can be made here, as far as it is known in advance, or None."""
    free = shutil.disk_usage(state.home()).free
    if free < NEEDED_DISK:
        problem = f"{free / 2**30:.1f} GiB are free below {state.home()}, the lab needs {NEEDED_DISK / 2**30:.0f} GiB"
        return ImageError(problem, fix="free some space, or set TARE_HOME to a larger disk")
    if processes.find("mmdebstrap") is None:
        return ImageError("mmdebstrap is not installed", fix=distribution.install("mmdebstrap"))
    return None


def bootstrap(root_recipe: Root, root: Path) -> None:
    """Create a Debian root. Raises `ImageError` with the fix."""
    if why := obstacle():
        raise why
    archives = [*image_build.sources()]
    known_suite = lab_recipes.load().emulator.suite  # Must match the suite that `sources` searches for.
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        if root_recipe.suite != known_suite:
            archives = [_other_suite(folder, archives, known_suite, root_recipe.suite)]
        elif root_recipe.newer:
            archives.append(_other_suite(folder, archives, known_suite, root_recipe.newer))
        hooks = []
        if root_recipe.hook:
            (folder / "hook").write_text(f"#!/bin/sh\n{root_recipe.hook}")
            (folder / "hook").chmod(0o755)
            hooks = [f"--customize-hook={folder / 'hook'}"]
        # Skip Debian's initramfs: a lab uses one of tare's, and building Debian's takes half a minute.
        env = {**processes.kept(*processes.DOWNLOADS), "INITRD": "No"}
        done = processes.run(_command(root_recipe, root, archives, hooks), time_limit_s=LIMIT_S, env=env)
    if done.code != 0:
        output = done.stderr.decode(errors="replace")
        if root_recipe.newer and root_recipe.newer in output:
            problem = f"the lab's QEMU comes from {root_recipe.newer}, and that suite is not reached or lacks it"
            raise ImageError(
                f"{problem}: {image_build.explain(output, timed_out=done.timed_out).what}",
                fix=f"see that this host's Debian archive has {root_recipe.newer}, then tare lab build",
            )
        raise image_build.explain(output, timed_out=done.timed_out)


def _other_suite(scratch: Path, archives: Sequence[str], suite: str, other: str) -> str:
    """Write a file of sources for another suite, from the archive of this host's ``suite``; or return its URL."""
    if archives and not Path(archives[0]).is_file():
        return archives[0]
    stanza = newer_sources(Path(archives[0]).read_text() if archives else "", suite, other)
    if not stanza:
        raise ImageError(
            f"this host's apt sources show no archive with {suite}, so where {other} is, is not known",
            fix=f"build the lab on Debian 12, whose sources have {suite}",
        )
    file = scratch / f"other{Path(archives[0]).suffix}"
    file.write_text(stanza)
    return str(file)


def _command(root_recipe: Root, root: Path, archives: Sequence[str], hooks: Sequence[str]) -> list[str]:
    options = [*hooks]
    options += [f"--dpkgopt=path-exclude={pattern}" for pattern in root_recipe.left_out]
    if root_recipe.newer:
        options.append(f'--aptopt=APT::Default-Release "{root_recipe.newer}"')
    options += ["--mode=root", "--format=directory", "--variant=minbase", f"--include={','.join(root_recipe.packages)}"]
    return ["mmdebstrap", *options, root_recipe.suite, str(root), *archives]


def _take_kernel(root: Path, new_folder: Path) -> None:
    """Copy the kernel, hypervisor and initramfs modules to beside the disk, where the emulator reads them."""
    kernel = next((root / "boot").glob("vmlinuz-*"))
    shutil.copy(kernel, new_folder / "vmlinuz")
    for hypervisor in sorted((root / "boot").glob("xen-*-amd64.gz"))[:1]:
        # QEMU's multiboot loader accepts only a plain ELF file.
        unpacked = processes.run(["gzip", "-dc", str(hypervisor)], output_cap=HYPERVISOR_CAP).require().stdout
        (new_folder / "xen").write_bytes(unpacked)
    tree = root / "lib" / "modules" / kernel.name.removeprefix("vmlinuz-")
    (new_folder / "modules").mkdir()
    for number, name in enumerate(loading_order((tree / "modules.dep").read_text(), MODULES)):
        file = new_folder / "modules" / f"{number:02d}-{Path(name).name.removesuffix('.xz')}"
        packed = (tree / name).read_bytes()
        file.write_bytes(lzma.decompress(packed) if name.endswith(".xz") else packed)


def loading_order(dependencies: str, modules: Sequence[str]) -> list[str]:
    """Return module files in the order in which they load, from a ``modules.dep``. Missing modules are built in."""
    needs = {name: rest.split() for name, _, rest in (line.partition(":") for line in dependencies.splitlines())}
    by_stem = {Path(name).name.split(".")[0].replace("-", "_"): name for name in needs}
    order: list[str] = []

    def add(name: str) -> None:
        for needed in needs[name]:
            add(needed)
        if name not in order:
            order.append(name)

    for stem in modules:
        if stem in by_stem:
            add(by_stem[stem])
    return order


def built() -> dict[str, int]:
    """Return the parts that exist, with the disk space of each."""
    parts = sorted(path for path in folder().iterdir() if path.is_dir() and not path.name.startswith("new-"))
    return {path.name: _disk_bytes(path) for path in parts}


def _disk_bytes(path: Path) -> int:
    return sum(os.lstat(Path(below, name)).st_blocks * 512 for below, _, names in os.walk(path) for name in names)
