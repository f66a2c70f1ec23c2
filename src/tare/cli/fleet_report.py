"""The work of `tare fleet report`: reads a campaign a host, merges them, and shows the result."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tare.analysis.comparisons.merged_hosts import Gathering, NoResult, merge
from tare.analysis.comparisons.summaries import LeftOutCampaign, Summary, Why, summary
from tare.analysis.comparisons.thresholds import Thresholds
from tare.catalogue.address import CatalogueAddress
from tare.catalogue.read import fleet_summaries
from tare.cli.console import emit
from tare.cli.report import to_read
from tare.errors import Failed, StoreError, UsageError, attempt
from tare.fleet import run_fleet
from tare.fleet.host_states import HostState, cut
from tare.outputs import CAMPAIGN
from tare.report.campaign.fleet_views import render, to_json
from tare.report.formats.fleet_page import page
from tare.report.formats.html import write_page
from tare.report.sentences.refusal_words import refusals_told
from tare.safe_text import encodable
from tare.store import read_store


def show_fleet(
    source: Sequence[Path] | CatalogueAddress,
    *,
    by: str | None,
    rate: float,
    each_file: bool,
    every: bool,
    html: Path | None,
    as_json: bool,
) -> None:
    """Print what the hosts' campaigns show together. Raises `TareError` where no file can be read."""
    gathering = _of_catalogue(source) if isinstance(source, CatalogueAddress) else _of_files(source)
    with refusals_told():
        fleet = merge(gathering, by=by, rate=rate, each_file=each_file)
    if as_json:
        emit(to_json(fleet))
    else:
        to_read().print(render(fleet, every=every))
    if html is not None:
        write_page(page(fleet), html)


def _of_files(places: Sequence[Path]) -> Gathering:
    gathering = Gathering()
    files = list(files_of(places))
    for host, file in files:
        name = encodable(file.name)
        shown = name if name == f"{host}{CAMPAIGN}" else f"{host}/{name}"
        read = _read(file)
        if isinstance(read, str):
            gathering.left_out.append(LeftOutCampaign(shown, Why.UNREADABLE, encodable(read)))
        else:
            row, boots = read
            gathering.add(host, replace(row, name=shown), boots)
    gathering.no_result += _without_files(places, {host for host, _ in files})
    if not gathering.rows:
        lacking = f"none of {len(files)} files can be read" if files else f"there is no *{CAMPAIGN} file"
        texts = [entry.text for entry in gathering.left_out]
        texts += [f"{entry.host} {entry.state}: {entry.reason}" for entry in gathering.no_result]
        more = f"; {len(texts) - 1} more have none either" if len(texts) > 1 else ""
        reason = f": {texts[0]}{more}" if texts else ""
        raise UsageError(f"{lacking}{reason}", fix="name a folder with a campaign of each host, such as HOST.tare")
    return gathering


def _without_files(places: Sequence[Path], there: Collection[str]) -> Iterator[NoResult]:
    """The hosts of fleets' folders that have no file, as `tare fleet run` left them."""
    for place in places:
        for row in run_fleet.read_rows(place) if place.is_dir() else ():
            if row.state is not HostState.DONE and run_fleet.file_name(str(row.host)) not in there:
                yield NoResult(encodable(cut(row.host)), row.state.value, encodable(cut(row.reason or row.doing)))


def _of_catalogue(address: CatalogueAddress) -> Gathering:
    gathering = Gathering()
    for host, file, read, boots in fleet_summaries(address):
        if isinstance(read, str):
            gathering.left_out.append(LeftOutCampaign(f"{host}/{file}", Why.UNREADABLE, encodable(read)))
        else:
            gathering.add(host, read, boots)
    return gathering


def files_of(places: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """List the campaigns of folders and files, each with its host's name: that of its file, or of the folder it is in.

    ``FOLDER/web1.tare`` and ``FOLDER/web1/night.tare`` are web1's.
    """
    for place in places:
        if not place.is_dir():
            yield encodable(place.name.removesuffix(CAMPAIGN)), place
            continue
        for file in sorted(place.glob(f"*{CAMPAIGN}")):
            yield encodable(file.name.removesuffix(CAMPAIGN)), file
        for file in sorted(place.glob(f"*/*{CAMPAIGN}")):
            yield encodable(file.parent.name), file


def _read(file: Path) -> tuple[Summary, list[str]] | str:
    """Read a campaign's summary and its boots, or return the reason: one odd file ends nothing."""

    def read() -> tuple[Summary, list[str]]:
        with read_store(file) as store, store.snapshot():
            boots = [segment.boot for segment in store.segments() if segment.boot is not None]
            return summary(store, Thresholds(), absolute=False), boots

    with contextlib.suppress(OSError):
        if file.is_dir():
            return "it is a folder"
    try:
        outcome = attempt(read)
    except StoreError as error:
        return error.what
    return outcome.reason if isinstance(outcome, Failed) else outcome
