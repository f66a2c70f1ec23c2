"""tare setup: what this host lacks, and its installation."""

from __future__ import annotations

import typer

from tare.setup.components import COMPONENTS, NATIVE

_NAMES = ", ".join(name for name in COMPONENTS if name != NATIVE)


def _component_names(incomplete: str) -> list[str]:
    """For the shell's completion: what a list with commas may end with."""
    first, comma, last = incomplete.rpartition(",")
    return [f"{first}{comma}{name}" for name in (*COMPONENTS, "everything") if name.startswith(last)]


def setup(
    components: str = typer.Option(
        "",
        "--with",
        metavar="NAME,...",
        autocompletion=_component_names,
        help=f"What to install besides native, or everything: {_NAMES}. development is for who changes tare.",
        show_default=False,
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only list what would be installed, and what for."),
) -> None:
    """Say which packages this host lacks, what for, how many and how large they are, and install them by apt.

    Without [bold]--with[/]: for native, the baseline, and for the engines that are here
    already. Nothing is removed for them; services that a package brings start as
    the distribution starts them. Elsewhere than on Debian and its relatives it
    names the packages and installs nothing.

    Examples: [cyan]tare setup --dry-run[/], [cyan]tare setup --with runc,gvisor[/]
    """
    from tare.cli.console import Console
    from tare.setup.carry_out import set_up

    console = Console()
    set_up(components, dry_run=dry_run, tell=lambda line: console.print(line, markup=False, soft_wrap=True))
