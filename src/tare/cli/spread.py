"""What `tare spread` does: says where a campaign's spread comes from, and where its figures change."""

from __future__ import annotations

import json
from pathlib import Path

from tare.analysis.trust import steadiness as steady
from tare.cli.console import emit
from tare.cli.report import to_read
from tare.report.campaign.spread import render, to_data
from tare.store import read_store


def show_spread(file: Path, *, as_json: bool) -> None:
    """Print where a campaign's spread comes from, and where its figures change."""
    with read_store(file) as store, store.snapshot():
        record, samples = store.record, store.samples()
        spreads = steady.steadiness(record, samples, store.slices(), store.trials())
    lines = steady.trajectories(record, samples)
    if as_json:
        emit(json.dumps(to_data(spreads, lines), indent=2))
        return
    to_read().print(render(spreads, lines, record.baseline))
