"""`tare figure`: draws a campaign's figures for a paper."""

from __future__ import annotations

from pathlib import Path

from tare.outputs import written
from tare.report.campaign.report_builder import timed
from tare.report.formats.paper_figure import FigureRequest, draw
from tare.report.formats.tables import Picture
from tare.store import read_store


def write_figure(file: Path, request: FigureRequest, picture: Picture, output: Path, *, force: bool = False) -> None:
    """Draw it and write it whole. Raises `TareError`."""
    with read_store(file) as store, store.snapshot():
        samples = store.samples()
        report = timed(store, samples)
    drawn = draw(report, samples, request, picture)
    with written(output, "wb", new=not force) as out:
        out.write(drawn)
