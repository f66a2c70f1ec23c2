"""The work of `tare store push`: campaigns into a catalogue, each a line with what became of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tare.catalogue.address import CatalogueAddress
from tare.catalogue.database import connected, migrate
from tare.catalogue.filling import Campaign, Pushed, campaign_of, push
from tare.cli.console import emit
from tare.cli.fleet_report import files_of
from tare.errors import Failed, StoreError, UsageError, attempt
from tare.outputs import CAMPAIGN
from tare.safe_text import clean, encodable
from tare.store import read_store

_FEATURE = "tare store push"
_TEXTS = {
    Pushed.ADDED: "added",
    Pushed.UPDATED: "brought up to the file, which went on",
    Pushed.THERE: "there already",
}


def push_files(places: Sequence[Path], address: CatalogueAddress, host: str | None, *, as_json: bool) -> None:
    """Push each campaign in a transaction of its own. Raises `TareError` where one of them was not pushed."""
    files = list(files_of(places))
    if not files:
        raise UsageError(f"there is no *{CAMPAIGN} file", fix="name a folder with campaigns, or files")
    if host is not None and len(files) > 1:
        raise UsageError(
            f"--host names one host, and there are {len(files)} files", fix="leave it out: files are named"
        )
    with connected(address, _FEATURE, read_only=False) as connection:
        migrate(connection, address)
    outcomes: list[dict[str, str]] = []
    for named, file in files:
        outcome = _pushed(file, host or named, address)
        outcomes.append({"file": encodable(str(file)), "host": host or named, **outcome})
        if not as_json:
            text = outcome.get("error") or _TEXTS[Pushed(outcome["outcome"])]
            emit(clean(f"{encodable(str(file))}: {text}"))
    if as_json:
        emit(json.dumps({"schema": "tare.push/1", "campaigns": outcomes}, indent=2, ensure_ascii=False))
    failed = sum("error" in outcome for outcome in outcomes)
    if failed:
        raise StoreError(f"{failed} of {len(outcomes)} campaigns were not pushed", fix="each has its reason above")


def _pushed(file: Path, host: str, address: CatalogueAddress) -> dict[str, str]:
    """Push a file and return the outcome: one odd file ends nothing."""

    def read() -> Campaign:
        with read_store(file) as store:
            return campaign_of(store, host)

    try:
        campaign = attempt(read)
        if isinstance(campaign, Failed):
            return {"error": campaign.reason}
        with connected(address, _FEATURE, read_only=False) as connection:
            return {"outcome": push(connection, campaign).value}
    except StoreError as error:
        return {"error": str(error)}
