"""The payload of a lab besides its host: tare's Python packages, the image, the agent, gVisor, the guest's kernel.

It is a disk of its own, for reading, cached by the hash of what is on it. tare's code itself changes with every edit
and is sent when a lab runs.
"""

from __future__ import annotations

import compileall
import functools
import hashlib
import importlib.util
import io
import marshal
import os
import re
import shutil
import sys
import sysconfig
import tarfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import tare
from tare.features.kernel.lab import lab_build, lab_recipes
from tare.host import locked_packages
from tare.host.daemons import runtimes
from tare.host.filesystems.disk_copies import copy
from tare.image import blackbox_guest, forms, guest, image_build
from tare.image.build_places import atomic_directory, locked
from tare.image.image_build import Image
from tare.model import Progress
from tare.platforms.parts.machines.vm import ROOT_BYTES

#: Large, and of no use in a lab.
LEFT_OUT = ("mypy", "mypyc", "ruff", "pip", "setuptools")
#: Room for the filesystem's own tables.
SPARE_BYTES = 256 << 20
#: Of a checkout: what its tests read, and what starts a Docker daemon.
HOME_IN_LAB = "/lab/checkout"
#: Of a checkout, what starts a Docker daemon for a command.
DOCKER = "scripts/with_dockerd.py"
#: Header of a compiled module that is taken as it is: a flag, and room for a hash that is not checked.
_UNCHECKED = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)
CHECKOUT = ("src", "tests", "docs", "protocol", "scripts", "README.md", "pyproject.toml")


def ensure(image: Image, progress: Progress, python: tuple[int, int] = lab_recipes.PYTHON) -> Path:
    """The disk with the payload, as a file; made if need be. Raises `ImageError`, `HostError`.

    ``python``: what the host runs tare by, as compiled packages fit one version only.
    """
    guests = [guest.ensure(kind) for kind in guest.MODULES if kind not in blackbox_guest.KINDS.values()]
    guests += [blackbox_guest.ensure(vmm) for vmm in blackbox_guest.KINDS]
    packages = Path(sysconfig.get_paths()["purelib"])
    built = [path for path in map(runtimes.find, runtimes.BUILT) if path is not None]
    named = [path.name for vm_guest in guests for path in (vm_guest.kernel, vm_guest.initramfs)]
    facts = [image.hash, "root.tar", *named, _listing(packages), *map(_digest, built)]
    another_python = sys.version_info[:2] != python
    facts += [locked_packages.lock()] if another_python else []
    version = "{}.{}".format(*python)
    place = lab_build.folder() / f"payload-{version}-{hashlib.sha256(repr(facts).encode()).hexdigest()[:16]}"
    with locked(lab_build.folder(), progress, "the lab"):
        if not place.is_dir():
            progress("packing what goes into the lab (about half a minute)")
            with atomic_directory(place, "the lab's payload") as new_folder:
                tree = new_folder / "tree"
                _fill(tree, image, guests, built)
                if another_python:
                    _install_packages(tree / "site-packages", packages, version, progress)
                else:
                    _copy_packages(tree / "site-packages", packages)
                lab_build.disk(tree, new_folder / "payload.ext4", forms.disk_bytes(tree) * 9 // 8 + SPARE_BYTES)
                shutil.rmtree(tree)
            _prune(place, version)
    return place / "payload.ext4"


def _prune(place: Path, version: str) -> None:
    """Remove older payloads but for the newest of them, which a lab that is starting now may be about to use."""
    older = [path for path in lab_build.folder().glob(f"payload-{version}-*") if path != place]
    for folder in sorted(older, key=lambda path: path.stat().st_mtime)[:-1]:
        shutil.rmtree(folder, ignore_errors=True)


def checkout() -> bytes:
    """The code of tare itself as a tar, with compiled modules, which save seconds; of a checkout, its tests.

    All modules are compiled here before: by emulation, each command in the lab would do it again.
    """
    package = Path(tare.__file__).parent
    top = package.parent.parent
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        compileall.compile_dir(package, quiet=2)
        if (top / "pyproject.toml").is_file() and package.parent.name == "src":
            compileall.compile_dir(top / "tests", maxlevels=0, quiet=2)  # what programs in a lab import
            for name in CHECKOUT:
                if (top / name).exists():
                    tar.add(top / name, name)
        else:
            tar.add(package, "src/tare")
    return packed.getvalue()


@functools.cache
def code() -> bytes:
    """The code of tare itself as a tar that is the same wherever and whenever it is made of the same code.

    Modules are compiled, for the Python that runs this, and are taken without a look at their sources.
    """
    package = Path(tare.__file__).parent
    top = package.parent.parent
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for file in sorted(path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
            name = f"src/tare/{file.relative_to(package)}"
            _add(tar, name, file)
            if file.suffix == ".py":
                compiled = marshal.dumps(compile(file.read_bytes(), f"{HOME_IN_LAB}/{name}", "exec", dont_inherit=True))
                place = PurePosixPath(name)
                cached = place.parent / "__pycache__" / f"{place.stem}.{sys.implementation.cache_tag}.pyc"
                _add(tar, str(cached), _UNCHECKED + compiled)
        if (top / DOCKER).is_file():
            _add(tar, DOCKER, top / DOCKER)
    return packed.getvalue()


def _add(tar: tarfile.TarFile, name: str, source: Path | bytes) -> None:
    contents = source if isinstance(source, bytes) else source.read_bytes()
    info = tarfile.TarInfo(name)
    info.size = len(contents)
    info.mode = source.stat().st_mode & 0o755 if isinstance(source, Path) else 0o644
    tar.addfile(info, io.BytesIO(contents))


def _fill(tree: Path, image: Image, guests: Sequence[guest.Guest], built: Sequence[str]) -> None:
    home = tree / "home"
    place = image.root.parent
    inside = home / "images" / place.name
    inside.mkdir(parents=True)
    # What engines take of the image is made here: by emulation it takes half a minute.
    for source in (image.root, place / "manifest.json", forms.oci_tar(image), forms.ext4(image, ROOT_BYTES)):
        copy(source, inside)
    base = image_build.base_place()
    (home / "images" / base.name).mkdir()
    copy(base / "manifest.json", home / "images" / base.name)
    (home / "guest").mkdir()
    for source in (
        guests[0].kernel.parent.parent,
        blackbox_guest.place(),
        *(vm_guest.initramfs for vm_guest in guests),
    ):
        copy(source, home / "guest")
    (home / "bin").mkdir()
    for program in built:
        copy(Path(program), home / "bin")
    copy(image_build.agent_path(), tree / "tare-agent")


def _copy_packages(target: Path, packages: Path) -> None:
    """Copy the Python packages that tare runs with here."""
    target.mkdir()
    for source in packages.iterdir():
        if source.name.split("-")[0] not in LEFT_OUT and not source.name.startswith("__editable__"):
            copy(source, target)


def _install_packages(target: Path, packages: Path, version: str, progress: Progress) -> None:
    """Install the same packages for another Python."""
    names = installed(packages) - {*LEFT_OUT, "tare-bench"}
    locked_packages.install_locked(target, names, version, progress, where="the lab")


def installed(packages: Path) -> set[str]:
    """The names of the distributions in a folder of packages, as a lock has them."""
    names = (path.name.removesuffix(".dist-info").rpartition("-")[0] for path in packages.glob("*.dist-info"))
    return {re.sub(r"[-_.]+", "-", name).lower() for name in names}


def _listing(packages: Path) -> str:
    return " ".join(sorted(entry.name for entry in os.scandir(packages) if entry.name.endswith(".dist-info")))


def _digest(program: str) -> str:
    with Path(program).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
