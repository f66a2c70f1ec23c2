"""tare serve: a local index over campaign files."""

from __future__ import annotations

from pathlib import Path

import typer

from tare.errors import UsageError


def serve(
    folder: Path = typer.Argument(..., help="The folder with campaign files; folders in it are searched too."),
    port: int = typer.Option(0, "--port", min=0, max=65535, help="Default: a free port."),
) -> None:
    """Show an index of campaigns and their pages to this machine's browser, until Ctrl-C.

    It only reads, listens on 127.0.0.1 alone, and answers who knows the address that it prints: that has a token in it.

    Examples: [cyan]tare serve .[/], [cyan]tare serve /srv/campaigns --port 8086[/]
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", fix="name the folder that has the campaign files")

    from tare.cli.serve import serve_folder

    serve_folder(folder, port)
