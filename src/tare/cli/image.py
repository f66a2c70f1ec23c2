"""`tare image`: the image's base as a file, and out of one."""

from __future__ import annotations

from pathlib import Path

from tare import outputs
from tare.cli.console import Console, emit
from tare.host import own_namespaces, state
from tare.image import archive


def write(file: Path) -> None:
    """Export, and print how it is taken elsewhere. Raises `TareError`."""
    console = Console(stderr=True)
    with outputs.written(file, "wb", new=True) as target:
        digest = archive.export(target, lambda message: console.print(message, markup=False))
    console.print(f"{file}: {file.stat().st_size / 1e6:.0f} MB; there:", markup=False, soft_wrap=True)
    emit(f"tare image import {file.name} --sha256 {digest}")


def read(file: Path, sha256: str) -> None:
    """Import, and say what is there now; for a user in a user namespace, as files have owners. Raises `TareError`."""
    own_namespaces.enter(state.home())
    console = Console(stderr=True)
    manifest = archive.bring_in(file, sha256, lambda message: console.print(message, markup=False))
    console.print(f"the image of {manifest.suite} is there, with {len(manifest.packages)} packages", markup=False)
