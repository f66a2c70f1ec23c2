"""`tare bundle`: packs a campaign for reviewers, and verifies what others packed."""

from __future__ import annotations

from pathlib import Path

from tare.cli.console import Console
from tare.cli.exit_codes import ExitCode
from tare.outputs import written
from tare.report.formats import bundled, crate


def write_bundle(file: Path, output: Path, named: crate.Credits, *, force: bool = False) -> None:
    """Write it whole, and say what is in it. Raises `TareError`."""
    with written(output, "wb", new=not force) as out:
        members = crate.write(file, out, named)
    console = Console()
    for member in members:
        console.print(f"{member.name}: {member.description}", markup=False, soft_wrap=True)
    line = f"written: {output}; others check it by: tare bundle --verify {output.name}"
    console.print(line, markup=False, soft_wrap=True)


def verify_bundle(file: Path) -> ExitCode:
    """Print what is wrong with it, or that nothing is. Raises `TareError`."""
    verified = bundled.verify(file)
    console = Console()
    for problem in verified.problems:
        console.print(f"broken: {problem}", markup=False, soft_wrap=True)
    if verified.problems:
        return ExitCode.NO
    console.print(
        f"whole: {verified.members} files as they were bundled by tare {verified.tare}; of campaign "
        f"{verified.campaign} {verified.recomputed:,} figures computed again are the same",
        markup=False,
        soft_wrap=True,
    )
    return ExitCode.DONE
