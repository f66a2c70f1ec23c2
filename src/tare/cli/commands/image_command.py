"""tare image: the image as a file, for a host that cannot build it."""

from __future__ import annotations

from pathlib import Path

import typer

from tare import outputs
from tare.errors import UsageError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="Carry the image to a host that cannot build it: one without a network, or without mmdebstrap.",
)


@app.command("export")
def export(
    file: Path = typer.Argument(..., metavar="FILE", help="The file to write."),
) -> None:
    """Write the image to a file, building it if need be, and print the file's hash.

    Examples: [cyan]tare image export tare-image.tar.zst[/]
    """
    outputs.check_new(file, "the image")

    from tare.cli.image import write

    write(file)


@app.command("import")
def bring_in(
    file: Path = typer.Argument(..., metavar="FILE", help="What tare image export wrote."),
    sha256: str = typer.Option("", "--sha256", metavar="HASH", help="The hash that it printed.", show_default=False),
) -> None:
    """Take the image from a file of another machine. Its programs will run as root here: hence the hash.

    Examples: [cyan]tare image import tare-image.tar.zst --sha256 HASH[/]
    """
    from tare.cli.image import read
    from tare.image.archive import hash_of

    if not sha256:
        digest = hash_of(file)
        raise UsageError(
            f"what is in {file} will run as root, so tare imports it only by its hash",
            fix=f"if tare image export printed {digest} for it: tare image import {file} --sha256 {digest}",
        )
    read(file, sha256)
