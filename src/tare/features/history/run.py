"""`tare history`: says where figures changed over many campaigns, and ends with a gate's exit code."""

from __future__ import annotations

from pathlib import Path

from tare.analysis.comparisons.summaries import LeftOutCampaign, Summary, Why, summary
from tare.analysis.comparisons.thresholds import Thresholds, load
from tare.analysis.quality.change_points import MAX_VALUES
from tare.catalogue.address import Catalogued
from tare.catalogue.read import host_summaries
from tare.cli.choices import OpenPolicy
from tare.cli.console import emit
from tare.cli.exit_codes import ExitCode
from tare.cli.report import to_read
from tare.errors import Failed, StoreError, UsageError, attempt
from tare.features.diff.run import exit_code
from tare.features.history.analysis import history
from tare.features.history.page import page
from tare.features.history.views import render, to_json
from tare.outputs import CAMPAIGN
from tare.report.formats.html import write_page
from tare.report.sentences.refusal_words import refusals_told
from tare.safe_text import encodable
from tare.store import read_store


def show_history(
    source: Path | Catalogued,
    thresholds: Path | None,
    *,
    absolute: bool,
    every: bool,
    html: Path | None,
    as_json: bool,
    policy: OpenPolicy,
) -> ExitCode:
    """Print the history of campaigns, write the page, and return the exit code. Raises `TareError`."""
    limits = load(thresholds)
    if isinstance(source, Path):
        summaries, unread = _of_folder(source, limits, absolute=absolute)
    else:
        summaries, unread = _of_catalogue(source, limits, absolute=absolute)
    with refusals_told():
        trend = history(summaries, limits, absolute=absolute, unread=unread)
    if as_json:
        emit(to_json(trend))
    else:
        to_read().print(render(trend, every=every))
    if html is not None:
        write_page(page(trend), html)
    return exit_code(trend.outcome, policy)


def _of_folder(folder: Path, limits: Thresholds, *, absolute: bool) -> tuple[list[Summary], list[LeftOutCampaign]]:
    files = sorted(folder.glob(f"*{CAMPAIGN}"))
    if len(files) > MAX_VALUES:
        raise UsageError(
            f"{folder} has {len(files):,} campaigns, and {MAX_VALUES:,} are compared", fix="move the oldest elsewhere"
        )
    summaries: list[Summary] = []
    unread: list[LeftOutCampaign] = []
    for file in files:
        _sort(encodable(file.name), _summary(file, limits, absolute=absolute), summaries, unread)
    if not summaries:
        lacking = f"none of {len(files)} *{CAMPAIGN} files can be read" if files else f"there is no *{CAMPAIGN} file"
        raise UsageError(f"{folder}: {lacking}", fix="name a folder with campaigns of one host")
    return summaries, unread


def _of_catalogue(
    catalogued: Catalogued, limits: Thresholds, *, absolute: bool
) -> tuple[list[Summary], list[LeftOutCampaign]]:
    summaries: list[Summary] = []
    unread: list[LeftOutCampaign] = []
    for name, read in host_summaries(catalogued.address, catalogued.host, limits, absolute=absolute):
        _sort(name, read, summaries, unread)
    if not summaries:
        raise StoreError(f"no campaign of {catalogued.host or 'that host'} can be read: {unread[0].text}")
    return summaries, unread


def _sort(name: str, read: Summary | str, summaries: list[Summary], unread: list[LeftOutCampaign]) -> None:
    if isinstance(read, str):
        unread.append(LeftOutCampaign(name, Why.UNREADABLE, encodable(read)))
    else:
        summaries.append(read)


def _summary(file: Path, limits: Thresholds, *, absolute: bool) -> Summary | str:
    """Return what a history takes of a campaign, or why it can take nothing: one odd file does not end the folder's."""

    def read() -> Summary:
        with read_store(file) as store, store.snapshot():
            return summary(store, limits, absolute=absolute)

    try:
        outcome = attempt(read)
    except StoreError as error:
        return error.what
    return outcome.reason if isinstance(outcome, Failed) else outcome
