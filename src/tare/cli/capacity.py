"""What `tare capacity --reserve-yaml` does: prints what to reserve as Kubernetes takes it."""

from __future__ import annotations

from pathlib import Path

from tare.cli.console import emit
from tare.errors import UsageError
from tare.report.campaign.capacity import capacity_of
from tare.store import read_store


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
            f"{file} does not tell what an instance takes from the host's noise", fix="more blocks: --blocks 8"
        )
    emit("---\n".join(reserves).rstrip("\n"))
