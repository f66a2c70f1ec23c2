"""`tare cite`: prints what a paper says of a campaign."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tare.cli.console import emitting
from tare.outputs import written
from tare.report.campaign.report_builder import timed
from tare.report.formats.citation import cite
from tare.report.formats.tables import Prose
from tare.safe_text import clean
from tare.store import read_store, require_file_of


def show_citation(file: Path, prose: Prose, output: Path | None, *, force: bool = False) -> None:
    """Print or write the entries and the paragraph. Raises `TareError`."""
    with read_store(file) as store, store.snapshot():
        report = timed(store, store.samples())
    with require_file_of(file, "a citation has its checksum").open("rb") as campaign:
        citation = cite(report, prose, hashlib.file_digest(campaign, "sha256").hexdigest())
    with emitting() if output is None else written(output, new=not force) as out:
        out.write(clean(citation))  # for a paper, wherever it is written to
