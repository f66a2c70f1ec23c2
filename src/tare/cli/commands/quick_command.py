"""tare quick: from nothing to the first answer."""

from __future__ import annotations

import time
from pathlib import Path

import typer

from tare import outputs
from tare.cli.commands import names
from tare.cli.commands.given import require_platforms
from tare.setup.components import COMPONENTS, FIRST

_WITH = typer.Option(
    ",".join(FIRST),
    "--with",
    metavar="NAME,...",
    help="Platforms to compare with the bare host. Missing ones are installed.",
)


def quick(
    asked: str = _WITH,
    output: Path | None = typer.Option(None, "-o", "--output", help="Campaign file. Default: quick-DATE-TIME.tare"),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only list what would be installed, and what for."),
) -> None:
    """Set up what is missing, weigh Docker, gVisor and runc against the bare host, and print the answer.

    It says first what it installs and how large that is: Debian's packages by apt, and gVisor's runsc, which is built
    from its Go module in some minutes. A Docker daemon that runs is used as it is; where none does, one is started for
    the time of the measuring, and stopped. Then it measures for a minute an arm, 6 minutes for the usual ones.

    Examples: [cyan]tare quick[/], [cyan]tare quick --with runc,podman[/], [cyan]tare quick --dry-run[/]
    """
    platforms = list(dict.fromkeys(names.platforms([asked])))
    require_platforms(platforms)
    file = output or Path(time.strftime("quick-%Y%m%d-%H%M%S.tare"))
    outputs.check_new_campaign(file)
    outputs.check_new(outputs.page_of(file), f"the page of {file}")

    from tare.cli.quick import first_answer

    first_answer([name for name in platforms if name in COMPONENTS], platforms, file, dry_run=dry_run)
