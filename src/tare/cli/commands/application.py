"""tare app: a user's own application."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tare import outputs
from tare.cli.commands.instances import MEMORY
from tare.errors import UsageError

if TYPE_CHECKING:
    from tare.workloads.own.lines import Mistake

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

    from importlib import resources

    from tare.cli.console import emit

    text = resources.files("tare.workloads.own").joinpath("example.toml").read_text()
    with outputs.written(file, new=True) as target:
        target.write(text.replace("{FILE}", str(file)))
    emit(f"{file} is written: change it, then tare app check {file}")


@app.command("check")
def check(
    file: Path = typer.Argument(..., metavar="FILE", help="The file of the application."),
    memory: int = MEMORY,
) -> None:
    """Say all that is wrong with a file, with its lines; then start the application on native and run its load once."""
    from tare.workloads.own import file as own_file

    described, mistakes = own_file.examine(file)
    if described is None:
        _refuse(file, mistakes)
        return

    from tare.cli.application import try_once

    try_once(described, memory << 20)


def _refuse(file: Path, mistakes: Sequence[Mistake]) -> None:
    from tare.cli.console import emit

    for mistake in mistakes:
        emit(f"{file}:{mistake.line}: {mistake.what}{f' (fix: {mistake.fix})' if mistake.fix else ''}")
    count = "one mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
    raise UsageError(f"{file} has {count}", fix="mend the lines that are named; docs/applications-own.md has all keys")
