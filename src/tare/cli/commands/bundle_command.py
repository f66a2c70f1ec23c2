"""tare bundle: a campaign for reviewers."""

from __future__ import annotations

from pathlib import Path

import typer

from tare.cli.commands.given import FORCE
from tare.errors import UsageError
from tare.outputs import check_output, require_campaign


def bundle(
    file: Path = typer.Argument(..., help="A campaign file; with --verify, a bundle."),
    output: Path | None = typer.Option(None, "-o", "--output", help="Where to: FILE.zip."),
    author: list[str] = typer.Option([], "--author", metavar="NAME", help="An author to name; may be given again."),
    publisher: str = typer.Option("", "--publisher", metavar="NAME", help="The publisher to name."),
    license_: str = typer.Option(
        "",
        "--license",
        metavar="NAME",
        help="The licence: an SPDX identifier such as CC-BY-4.0, or an address.",
    ),
    force: bool = FORCE,
    verify: bool = typer.Option(False, "--verify", help="Check a bundle, and compute its figures again."),
) -> None:
    """Pack a campaign with all that a reviewer needs (RO-Crate 1.1): the file, report, tables, environment, checksums.

    It has what the file has; for others than reviewers: tare report FILE --share COPY.tare first.

    Examples: [cyan]tare bundle night.tare -o night.zip --author "A. Author" --license CC-BY-4.0[/],
    [cyan]tare bundle --verify night.zip[/]
    """
    if verify == (output is not None):
        raise UsageError(
            "say whether to write a bundle or to check one",
            fix="tare bundle FILE -o X.zip or tare bundle --verify X.zip",
        )
    require_campaign(file)
    if verify:
        from tare.cli.bundle import verify_bundle

        raise typer.Exit(verify_bundle(file))
    if output is not None:
        check_output(output, [file], force=force)

        from tare.cli.bundle import write_bundle
        from tare.report.formats.crate import Credits

        write_bundle(file, output, Credits(author, publisher, license_), force=force)
