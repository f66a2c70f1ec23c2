"""tare cite: a campaign in a paper."""

from __future__ import annotations

from pathlib import Path

import typer

from tare.outputs import require_campaign
from tare.report.formats.tables import Prose


def cite(
    file: Path = typer.Argument(..., help="A campaign file."),
    form: Prose = typer.Option(Prose.TEXT, "--format", help="Of the paragraph: text, latex or markdown."),
) -> None:
    """Print BibTeX for tare and for the campaign, and a paragraph on the method with the campaign's own facts.

    Examples: [cyan]tare cite night.tare[/], [cyan]tare cite night.tare --format latex > methods.tex[/]
    """
    require_campaign(file)

    from tare.cli.cite import show_citation

    show_citation(file, form)
