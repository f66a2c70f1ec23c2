"""tare app: a user's own application."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from tare import outputs
from tare.cli.commands.instances import MEMORY, platform_names
from tare.cli.exit_codes import ExitCode
from tare.cli.quantities import parse_memory
from tare.errors import UsageError
from tare.safe_text import clean

if TYPE_CHECKING:
    from tare.workloads.own.toml_lines import Mistake

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="Bring an application of your own: a file of TOML describes it, and no Python is needed.",
)


@app.command("init")
def init(
    file: Path = typer.Argument(Path("app.toml"), metavar="FILE", help="The file to write."),
    source: Path | None = typer.Option(
        None, "--from", metavar="PLACE", help="Make it of a Dockerfile, or of a compose file with one service."
    ),
    image: str | None = typer.Option(
        None, "--image", help="With --from: the image that was built of it, as source.image has it."
    ),
) -> None:
    """Write a file to begin with, which says what can be in it.

    Examples: [cyan]tare app init[/], [cyan]tare app init shop.toml --from compose.yaml[/]
    """
    outputs.check_new(file)
    if image is not None and source is None:
        raise UsageError("--image goes with --from", fix="--from Dockerfile --image NAME.tar")
    if source is not None:
        _init_from(source, file, image)
        return

    from importlib import resources

    from tare.cli.console import emit

    text = resources.files("tare.workloads.own").joinpath("example.toml").read_text()
    with outputs.written(file, new=True) as target:
        target.write(text.replace("{FILE}", str(file)))
    emit(f"{file} is written: change it, then tare app check {file}")


def _init_from(source: Path, file: Path, image: str | None) -> None:
    from tare.cli.console import emit
    from tare.workloads.own import file as own_file
    from tare.workloads.own import foreign

    text, mistakes = foreign.converted(source, image)
    if mistakes:
        _refuse(source, mistakes)
    with outputs.written(file, new=True) as target:
        target.write(text)
    _, left = own_file.examine(file)
    emit(f"{file} is written{': it lacks what the other does not say' if left else ''}")
    _emit(file, left)
    emit(f"then: tare app check {file}")


@app.command("check")
def check(
    file: Path = typer.Argument(..., metavar="FILE", help="The file of the application."),
    platform: list[str] = typer.Option(
        [],
        "-p",
        "--platform",
        autocompletion=platform_names,
        help="Where to try it; may be given again. Default: native.",
    ),
    memory: str = MEMORY,
    trust: bool = typer.Option(False, "--trust", help="Run the file's commands without asking."),
) -> None:
    """Say all that is wrong with a file, with its lines; then start the application and run its load once.

    On native the file's commands run as root, in no sandbox: they are shown, and you are asked before.
    Exits with 1 where it runs on some of several platforms alone.

    Example: [cyan]tare app check shop.toml -p native -p docker -p gvisor[/], and then
    [cyan]tare run -p docker -p gvisor -w app:shop.toml[/]
    """
    from tare.platforms import platform_registry
    from tare.workloads.own import file as own_file

    platform_registry.require(platform)

    described, mistakes = own_file.examine(file)
    if described is None:
        _refuse(file, mistakes)
        return

    from tare.cli.application_check import try_once
    from tare.cli.consent import agree_to_try

    names, memory_bytes = platform or ["native"], parse_memory(memory)
    if "native" in names:
        agree_to_try(described, trusted=trust)
    if not try_once(described, memory_bytes, names):
        raise typer.Exit(ExitCode.NO)


def _emit(file: Path, mistakes: Sequence[Mistake]) -> None:
    from tare.cli.console import emit

    for mistake in mistakes:
        emit(clean(f"{file}:{mistake.line}: {mistake.what}{f' (fix: {mistake.fix})' if mistake.fix else ''}"))


def _refuse(file: Path, mistakes: Sequence[Mistake]) -> NoReturn:
    _emit(file, mistakes)
    count = "one mistake" if len(mistakes) == 1 else f"{len(mistakes)} mistakes"
    raise UsageError(f"{file} has {count}", fix="mend the lines that are named; docs/applications-own.md has all keys")
