"""What `tare capacity` does: fills, and says how many fit and what to reserve."""

from __future__ import annotations

from pathlib import Path

from tare.campaign.plan.campaign_request import CampaignRequest
from tare.capacity_model import PRICES, PRICES_FIX
from tare.cli.choices import ProgressOptions
from tare.cli.console import emit
from tare.cli.run import measure
from tare.errors import UsageError
from tare.features.capacity import prices
from tare.features.capacity.views import capacity_of
from tare.inputs import read_text
from tare.store import exists, open_store, read_store


def run(
    request: CampaignRequest, file: Path, progress_options: ProgressOptions, *, price_file: Path | None, as_json: bool
) -> None:
    """Measure into a file, and show it. Raises `TareError`, before anything starts for a price file that is none."""
    text = None
    if price_file is not None:
        text = read_text(price_file, PRICES_FIX, largest=prices.MAX_BYTES)
        prices.parse(text, str(price_file))
    measure(request, file, progress_options, as_json=as_json, prepare=lambda: _keep(file, text))


def _keep(file: Path, text: str | None) -> None:
    """Keep the price file in the campaign's."""
    if text is not None and exists(file):
        with open_store(file) as store:
            store.add_attachment(PRICES, text.encode())


def print_yaml(file: Path) -> None:
    """Print a RuntimeClass for each platform but the baseline. Raises `TareError`."""
    with read_store(file) as store, store.snapshot():
        found, baseline = capacity_of(store), store.record.baseline
    if found is None:
        raise UsageError(f"{file} has no fill", fix="tare capacity -p docker -o NEW.tare")
    reserves = [
        platform.reserve.yaml
        for platform in found.platforms
        if platform.reserve is not None and platform.platform != baseline
    ]
    if not reserves:
        raise UsageError(
            f"{file} does not distinguish what an instance takes from the host's noise", fix="more blocks: --blocks 8"
        )
    emit("---\n".join(reserves).rstrip("\n"))
