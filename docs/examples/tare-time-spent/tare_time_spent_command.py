"""The command `tare time-spent`. `tare` imports this module for its list of commands, so that it loads nothing slow."""

from pathlib import Path

import typer

from tare.extensions import CommandEntry

COMMANDS = (CommandEntry("time-spent", "Show what a campaign spent its time on.", "tare_time_spent_command:show"),)


def show(file: Path = typer.Argument(..., help="A campaign file.")) -> None:
    """Show the time that each workload's trials took.

    Examples: [cyan]tare time-spent night.tare[/]
    """
    from tare_time_spent import terminal, time_spent

    from tare.cli.console import Console
    from tare.errors import UsageError
    from tare.report.section import Screen
    from tare.store import read_store

    with read_store(file) as store:
        spent = time_spent(store)
    if spent is None:
        raise UsageError(f"{file} has no trials", fix="name a campaign: tare run -o night.tare")
    console = Console()
    for part in terminal(spent, Screen(console.width)):
        console.print(part)
