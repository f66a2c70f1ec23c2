"""Builds what a lab is made of, each part once: an emulator, a host's disk by flavour, and the payload that goes in.

The emulator is Debian's QEMU of backports in a small root of its own: the host's own QEMU stays as it is. Nothing
here names an archive: the host's own apt sources say where Debian is.
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
from tare.host import distribution, processes, state
from tare.host.filesystems import ext4
from tare.image import build as image_build
from tare.image.places import atomic_directory, locked
from tare.lab import recipe
from tare.lab.recipe import Root
from tare.model import Progress

#: Roots, disks and payload together, with room to work.
NEEDED_DISK = 8 << 30
LIMIT_S = 1800.0
HYPERVISOR_CAP = 64 << 20
#: Where the emulator's root has TARE_HOME.
HOME_INSIDE = "tare"
#: What the host's initramfs loads, and what these need; what is not a module is built in.
MODULES = ("virtio_pci", "virtio_blk", "virtio_console", "virtio_rng", "crc32c_generic", "ext4")


def folder() -> Path:
    """The folder of the lab's parts, below ``TARE_HOME``; made where it is missing."""
    place = state.home() / "lab"
    place.mkdir(exist_ok=True)
    return place


def emulator(progress: Progress) -> Path:
    """The root of the emulator; made if need be. Raises `ImageError`."""
    root_recipe = recipe.load().emulator
    place = folder() / f"qemu-{root_recipe.hash}"
    with locked(folder(), progress, "the lab"):
        if not place.is_dir():
            progress(f"making the emulator's root from {root_recipe.newer} (about half a minute)")
            with atomic_directory(place, "the lab's emulator") as new_folder:
                bootstrap(root_recipe, new_folder / "root")
                (new_folder / "root" / HOME_INSIDE).mkdir()
    return place / "root"


def host(flavour: str, progress: Progress) -> Path:
    """The folder with the disk, kernel and modules of a flavour's host, or of a stock host; made if need be.

    Raises `ImageError`, `UsageError`.
    """
    lab_recipe = recipe.load()
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
    """An ext4 filesystem with all below a folder in it, as a sparse file."""
    result = ext4.make(file, size_bytes, *ext4.AT_ONCE, contents=root)
    result.require(fix="free disk space below TARE_HOME")


def newer_sources(text: str, suite: str, newer: str) -> str:
    """The stanza or line of apt's sources that has a suite, for another suite of the same archive; "" without one."""
    for stanza in re.split(r"\n\s*\n", text):
        lines = [line for line in stanza.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        if any(re.match(rf"Suites:.*\b{suite}(\s|$)", line) for line in lines):
            return "".join(f"Suites: {newer}\n" if line.startswith("Suites:") else f"{line}\n" for line in lines)
        for line in lines:
            if re.match(rf"deb\s.*\s{suite}\s", line):
                return re.sub(rf"\s{suite}\s", f" {newer} ", line) + "\n"
    return ""


def obstacle() -> ImageError | None:
    """Why no root can be made here, as far as can be seen beforehand; None: nothing speaks against it."""
    free = shutil.disk_usage(state.home()).free
    if free < NEEDED_DISK:
        problem = f"{free / 2**30:.1f} GiB are free below {state.home()}, the lab needs {NEEDED_DISK / 2**30:.0f} GiB"
        return ImageError(problem, fix="free some space, or set TARE_HOME to a larger disk")
    if processes.find("mmdebstrap") is None:
        return ImageError("mmdebstrap is not installed", fix=distribution.install("mmdebstrap"))
    return None


def bootstrap(root_recipe: Root, root: Path) -> None:
    """Make a Debian root. Raises `ImageError` with the fix."""
    if why := obstacle():
        raise why
    archives = [*image_build.sources()]
    known_suite = recipe.load().emulator.suite  # the one that `sources` looks for
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
        # No initramfs of Debian's: a lab has one of tare's, and making it takes half a minute.
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
    """A file of sources for another suite, of the archive that this host has ``suite`` from; or that archive's URL."""
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
    """Kernel, hypervisor and the initramfs's modules beside the disk: the emulator reads them from there."""
    kernel = next((root / "boot").glob("vmlinuz-*"))
    shutil.copy(kernel, new_folder / "vmlinuz")
    for hypervisor in sorted((root / "boot").glob("xen-*-amd64.gz"))[:1]:
        # QEMU's multiboot loader takes the plain ELF file.
        unpacked = processes.run(["gzip", "-dc", str(hypervisor)], output_cap=HYPERVISOR_CAP).require().stdout
        (new_folder / "xen").write_bytes(unpacked)
    tree = root / "lib" / "modules" / kernel.name.removeprefix("vmlinuz-")
    (new_folder / "modules").mkdir()
    for number, name in enumerate(loading_order((tree / "modules.dep").read_text(), MODULES)):
        file = new_folder / "modules" / f"{number:02d}-{Path(name).name.removesuffix('.xz')}"
        packed = (tree / name).read_bytes()
        file.write_bytes(lzma.decompress(packed) if name.endswith(".xz") else packed)


def loading_order(dependencies: str, modules: Sequence[str]) -> list[str]:
    """Module files in the order in which they load, from a ``modules.dep``; modules that are not there are built in."""
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
    """The parts that are there, and the disk space that each takes."""
    parts = sorted(path for path in folder().iterdir() if path.is_dir() and not path.name.startswith("new-"))
    return {path.name: _disk_bytes(path) for path in parts}


def _disk_bytes(path: Path) -> int:
    return sum(os.lstat(Path(below, name)).st_blocks * 512 for below, _, names in os.walk(path) for name in names)
