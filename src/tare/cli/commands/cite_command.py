"""tare cite: a campaign in a paper."""

from __future__ import annotations

from pathlib import Path

import typer

from tare.cli.commands.given import FORCE
from tare.outputs import check_output, require_campaign
from tare.report.formats.tables import Prose


def cite(
    file: Path = typer.Argument(..., help="A campaign file."),
    form: Prose = typer.Option(Prose.TEXT, "--format", help="Format of the paragraph: text, latex or markdown."),
    output: Path | None = typer.Option(None, "-o", "--output", help="Output file. Default: standard output."),
    force: bool = FORCE,
) -> None:
    """Print BibTeX for tare and for the campaign, and a paragraph on the method with the campaign's own facts.

    Examples: [cyan]tare cite night.tare[/], [cyan]tare cite night.tare --format latex -o methods.tex[/]
    """
    require_campaign(file)
    if output is not None:
        check_output(output, [file], force=force)

    from tare.cli.cite import show_citation

    show_citation(file, form, output, force=force)
