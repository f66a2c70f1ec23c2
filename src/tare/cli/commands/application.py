"""tare app: a user's own application."""

from __future__ import annotations

from pathlib import Path

import typer

from tare import outputs
from tare.cli.commands.instances import MEMORY

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="Bring an application of your own: a file of TOML describes it, and no Python is needed.",
)


@app.command("init")
def init(
    file: Path = typer.Argument(Path("app.toml"), metavar="FILE", help="The file to write."),
) -> None:
    """Write a file to begin with, which says what can be in it."""
    outputs.check_new(file)

    from tare.cli.application import write

    write(file)


@app.command("check")
def check(
    file: Path = typer.Argument(..., metavar="FILE", help="The file of the application."),
    memory: int = MEMORY,
) -> None:
    """Say all that is wrong with a file, with its lines; then start the application on native and run its load once."""
    from tare.cli.application import examine

    examine(file, memory << 20)
