"""Builder of the emulator's plug-in that counts instructions; from icount/, for one version of QEMU's interface."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from tare.errors import ImageError
from tare.features.kernel.lab import btf, kallsyms, lab_build, lab_recipes
from tare.host import processes
from tare.image.build_places import atomic_directory, locked
from tare.model import Progress

SOURCE = Path(__file__).with_name("icount")
NAME = "icount.so"
_FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden")
LIMIT_S = 120.0


def kernel_facts(kernel: bytes) -> tuple[dict[str, str], str]:
    """Return the plug-in's arguments for a kernel, and the kernel's symbols, from its ELF file. Raises `ImageError`."""
    offsets = btf.offsets(btf.section(kernel, ".BTF"), {**btf.OWNER, **btf.CODE})
    symbols = "".join(f"{address:x} {name}\n" for address, name in kallsyms.functions(kernel))
    return {"memory": "1", **{name: str(offset) for name, offset in offsets.items()}}, symbols


def ensure(progress: Progress) -> Path:
    """Return the plug-in. Build it if it is missing. Raises `ImageError`."""
    root_recipe = lab_recipes.load().plugin
    files = sorted(SOURCE.iterdir())
    hashed = hashlib.sha256(f"{root_recipe.hash} {_FLAGS}\n".encode())
    for file in files:
        hashed.update(f"{file.name}\n".encode() + file.read_bytes())
    place = lab_build.folder() / f"icount-{hashed.hexdigest()[:16]}"
    with locked(lab_build.folder(), progress, "the lab"):
        if not place.is_dir():
            progress("building the emulator's plug-in (about half a minute)")
            with atomic_directory(place, "the emulator's plug-in") as new_folder:
                root = new_folder / "root"
                lab_build.bootstrap(root_recipe, root)
                for file in files:
                    shutil.copy(file, root)
                compiler = ["chroot", str(root), "gcc", *_FLAGS, "-o", f"/{NAME}", "/plugin.c"]
                done = processes.run(compiler, time_limit_s=LIMIT_S)
                if done.code != 0:
                    lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
                    raise ImageError(f"the emulator's plug-in is not built: {lines[0]}", fix="report it, it is a bug")
                shutil.copyfile(root / NAME, new_folder / NAME)
                shutil.rmtree(root)
    return place / NAME
