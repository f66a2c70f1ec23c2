"""`tare lab`: boots a lab for a command, builds what labs consist of, unpacks the kernel's sources."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from tare.cli.console import Console, Passing
from tare.features.kernel.lab import fixes, kernel, lab_build, lab_recipes
from tare.features.kernel.lab import forwarded_run as lab_run
from tare.image.build_places import atomic_directory
from tare.model import Progress
from tare.outputs import written


def run_in_lab(command: lab_run.LabCommand) -> int:
    """Run a command in a lab, pass its output on, and return its exit code."""
    return lab_run.run(command, Passing(), _progress())


def build_labs(names: Sequence[str]) -> None:
    """Build the parts of these flavours and stock hosts, and print their sizes.

    None: all flavours but those with a kernel of tare's own.
    """
    lab_recipe = lab_recipes.load()
    for name in names:
        lab_recipe.require(name)
    for name in names or lab_recipe.hosts:
        lab_run.ensure(name, _progress(), renew=True)
    console = Console()
    for name, size in lab_build.built().items():
        console.print(f"{name:<28} {size / 2**20:6,.0f} MiB", markup=False)


def unpack_sources(folder: Path) -> None:
    """Unpack the sources of the kernel that counts its lines, and its functions' files as CSV, into a new folder."""
    counting = kernel.ensure("lines", _progress())
    assert counting is not None, "that flavour has a kernel of its own"
    with atomic_directory(folder, "the sources") as new_folder:
        counting.unpack_sources(new_folder / "linux")
        shutil.copyfile(counting.functions, new_folder / "functions.csv")


def write_weights(file: Path, changelog: Path) -> None:
    """Write weights of the kernel's files and directories, from the changelog of Debian's kernel, to a new file."""
    history = fixes.read(changelog)
    counting = kernel.ensure("lines", _progress())
    assert counting is not None, "that flavour has a kernel of its own"
    lines = {path: len(numbers) for path, numbers in counting.lines().items()}
    weights = fixes.densities(history, lines, counting.config)
    with written(file, new=True) as out:
        out.write(fixes.as_toml(weights))
    summary = f"{weights.placed} of {weights.of} CVEs are in code of this kernel, {len(weights.by_path)} places"
    Console().print(summary, markup=False)


def _progress() -> Progress:
    console = Console(stderr=True)
    return lambda message: console.print(f"lab: {message}", markup=False, style="dim", soft_wrap=True)
