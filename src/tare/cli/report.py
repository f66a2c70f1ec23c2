"""`tare report`: shows the results of campaigns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tare.analysis.comparisons.agreement import agreement, costs
from tare.cli.console import Console, emit
from tare.footprint_model import Footprint
from tare.model import Level
from tare.outputs import check_page
from tare.report.campaign.choose import parse
from tare.report.campaign.report_builder import build
from tare.report.campaign.report_terminal import render_all, render_choice
from tare.report.formats.html import materials, page_text, write_page
from tare.report.model import to_json
from tare.report.sentences.agreement_words import lines
from tare.store import read_store

#: Width of the tables where the output is not a terminal.
PLAIN_WIDTH = 120


def show_choice(files: Sequence[Path], choose: str) -> None:
    """Print which platforms of each campaign have what is asked for (`tare.report.campaign.choose`).

    Raises `TareError`.
    """
    limits = parse(choose)
    console = to_read()
    for file in files:
        console.print(render_choice(build(file), limits, width=console.width))


def show(
    files: Sequence[Path],
    *,
    html: Path | None,
    as_json: bool,
    every_metric: bool = False,
    cautions: bool = False,
    options: Mapping[str, Any] | None = None,
) -> None:
    """Print the report, and then write the page if ``html`` is given: a page that cannot be written loses no table.

    ``options``: see `tare.report.section.Source`. Raises `TareError`.
    """
    read = materials(files, options)
    reports = [material.report for material in read]
    if as_json:
        emit(to_json(reports))
    else:
        console = to_read()
        console.print(
            render_all(
                reports,
                width=console.width,
                every_metric=every_metric,
                cautions=cautions,
                picture=console.is_terminal,
            )
        )
        for line in _agreement(files):
            console.print(line, markup=False)
        for file in files:
            console.print(f"campaign: {file}", markup=False)
    if html is not None:
        check_page(html, files)
        write_page(page_text(read), html)
        if not as_json:
            console.print(f"report:   {html.resolve().as_uri()}", markup=False, soft_wrap=True)
    if not as_json:
        for ranking in (ranking for report in reports for ranking in report.rankings):
            console.print(ranking.text, style="bold", markup=False)


def _agreement(files: Sequence[Path]) -> Iterator[str]:
    """Yield how the instructions that a file has counted go with the CPU cost that others have measured."""
    counted: list[Footprint] = []
    measured: dict[tuple[str, str], float] = {}
    for file in files if len(files) > 1 else ():
        with read_store(file) as store, store.snapshot():
            of_file = [footprint for footprint in store.footprints() if footprint.level is Level.INSTRUCTIONS]
            counted = counted or of_file  # of several, those of the first
            measured |= {key: cost for key, cost in costs(store).items() if key not in measured}
    agreed = agreement(counted, measured)
    return lines(agreed) if agreed is not None else iter(())


def to_read() -> Console:
    """The console for tables: as wide as the terminal, or of `PLAIN_WIDTH` where there is none."""
    console = Console()
    return console if console.is_terminal else Console(width=PLAIN_WIDTH)
