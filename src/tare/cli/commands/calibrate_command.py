"""tare calibrate: does the instrument tell the truth on this machine, and what can it resolve?"""

from __future__ import annotations

from pathlib import Path

import typer

from tare.cli.choices import NEIGHBOURS, Load
from tare.cli.commands import given
from tare.cli.commands.given import TRUST
from tare.errors import UsageError

#: Blocks with added work.
ADDED_BLOCKS = 40


def calibrate(
    comparisons: int = typer.Option(200, "--comparisons", help="How often the baseline is compared with itself."),
    under: Load = typer.Option(
        Load.BOTH, "--load", help=f"quiet: as the machine is now. loaded: with {NEIGHBOURS} busy processes a CPU."
    ),
    platform: list[str] = typer.Option(
        ["docker", "gvisor"], "-p", "--platform", help="Platforms that get added work, beside native; may be repeated."
    ),
    blocks: int = typer.Option(ADDED_BLOCKS, "--blocks", help="Blocks with added work; 0 skips them."),
    output: Path | None = typer.Option(
        None, "-o", "--output", help="Folder for the files. Existing ones are used, unfinished ones are continued."
    ),
    trust: bool = TRUST,
    as_json: bool = typer.Option(False, "--json", help="Print JSON (schema tare.calibration/1)."),
) -> None:
    """Compare what does not differ, and find work that was added: the instrument's own error on this machine.

    Prints the false-positive rate (how often a difference is claimed where there is none), how often intervals contain
    the true value, what is found of added work, and the smallest effect that is resolved in 1, 5 and 30 minutes.
    `tare run` tells these from then on.

    Platforms and places are tried before anything is measured, and what was measured is shown however it ends.

    Examples: [cyan]tare calibrate[/] (an hour or two),
    [cyan]tare calibrate --load quiet --comparisons 30 --blocks 0[/],
    [cyan]tare calibrate -o FOLDER[/] (of an earlier run: what is missing there is measured)
    """
    if comparisons < 1:
        raise UsageError(f"{comparisons} comparisons are too few", fix="give --comparisons 200")
    if blocks < 0 or blocks == 1:
        raise UsageError(f"{blocks} blocks with added work are too few", fix="give --blocks 40, or 0 for none")
    if blocks:
        given.require_platforms(platform)

    from tare.cli.calibrate import CalibrationRequest, run_calibration

    run_calibration(CalibrationRequest(comparisons, under, platform, blocks, output, trust), as_json=as_json)
