"""What `tare compare` does: compares platforms with each other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tare.analysis.comparisons.compare import compare as compared_of
from tare.cli.console import emit
from tare.cli.report import to_read
from tare.errors import UsageError
from tare.report.campaign.compare import render, to_data
from tare.store import CampaignRecord, read_store


def _require(names: Sequence[str], record: CampaignRecord) -> None:
    """Raise `UsageError` for a platform that did not take part."""
    there = [platform.name for platform in record.platforms]
    for name in names:
        if name not in there:
            raise UsageError(f"{name} did not take part in this campaign", fix=f"name of {', '.join(there)}")


def show_comparison(file: Path, platform: Sequence[str], *, as_json: bool) -> None:
    """Print the pairwise comparisons of a campaign's platforms (none given: all)."""
    with read_store(file) as store, store.snapshot():
        _require(platform, store.record)
        comparisons = compared_of(store.record, store.samples(), platform)
    if as_json:
        emit(json.dumps(to_data(comparisons), indent=2))
        return
    to_read().print(render(comparisons))
