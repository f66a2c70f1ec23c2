"""tare figure: a figure for a paper."""

from __future__ import annotations

from pathlib import Path

import typer

from tare.cli.commands import completing
from tare.cli.commands.given import FORCE
from tare.errors import UsageError
from tare.outputs import check_output, require_campaign
from tare.report.formats.tables import Picture, Show


def figure(
    file: Path = typer.Argument(..., help="A campaign file."),
    output: Path = typer.Option(..., "-o", "--output", help="Output: FILE.pdf, FILE.svg or FILE.png (300 dpi)."),
    metric: list[str] = typer.Option(
        [],
        "--metric",
        autocompletion=completing.metrics,
        help="WORKLOAD or WORKLOAD/METRIC; * for any text. Default: the headlines.",
    ),
    platform: list[str] = typer.Option(
        [], "-p", "--platform", autocompletion=completing.platforms, help="Only these. Default: all."
    ),
    show: Show = typer.Option(Show.OVERHEADS, "--show", help="Overheads with intervals, or each block's median."),
    force: bool = FORCE,
    columns: int = typer.Option(2, "--columns", min=1, max=2, help="Width in columns of a paper."),
) -> None:
    """Draw a campaign's figures for a paper: a small panel a metric, as vectors with fonts embedded.

    Examples: [cyan]tare figure night.tare -o overheads.pdf[/],
    [cyan]tare figure night.tare --metric 'sysbench-*' --metric startup/command -p gvisor --columns 1 -o fig.pdf[/]
    """
    suffix = output.suffix.lower().removeprefix(".")
    if suffix not in set(Picture):
        raise UsageError(f"{output} has no format's suffix", fix=f"-o {output.stem or 'figure'}.pdf, .svg or .png")
    require_campaign(file)
    check_output(output, [file], force=force)

    from tare.cli.figure import write_figure
    from tare.report.formats.paper_figure import FigureRequest

    write_figure(file, FigureRequest(show, metric, platform, columns), Picture(suffix), output, force=force)
