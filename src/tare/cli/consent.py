"""Asks before a campaign file that another host wrote is resumed or added to: what it orders is done as root."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from tare.campaign.execution import trust
from tare.clean import clean
from tare.cli.console import Console
from tare.cli.exit_codes import ExitCode
from tare.host.kernel import cpulist
from tare.store import Store, exists, read_store


def agreed(file: Path, *, trusted: bool) -> str:
    """The digest of the record that the user agreed to resume; "" where this host wrote the file.

    ``trusted``: the caller vouches for the file. Exits 1 when the answer is no. Raises `StoreError`.
    """
    with read_store(file) as store:
        if trust.is_own(store):
            return ""
        if _cannot_ask(trusted=trusted):
            trust.require(store, "")
        digest, lines = trust.digest(store), list(trust.orders(store))
    _ask(f"{file} was not written by this host. It would run:", lines, "Run this as root, on this host?", trusted)
    return digest


def agreed_to_add(file: Path, *, trusted: bool) -> str:
    """As `agreed`, of a file that gets footprints or surfaces; "" also where there is none, or a lab of this host's."""
    if not exists(file):
        return ""
    with read_store(file) as store:
        if trust.may_be_added_to(store):
            return ""
        if _cannot_ask(trusted=trusted):
            trust.require_added(store, "")
        digest, lines = trust.digest(store), _instances(store)
    _ask(f"{file} was not written by this host. Instances would be as it says:", lines, "Add to it?", trusted)
    return digest


def _instances(store: Store) -> list[str]:
    resources = store.record.resources
    return [f"CPUs {cpulist.written(resources.cpus)}, {resources.memory_bytes >> 20} MiB of memory each"]


def _cannot_ask(*, trusted: bool) -> bool:
    return not trusted and not sys.stdin.isatty()


def _ask(said: str, lines: Sequence[str], question: str, trusted: bool) -> None:
    console = Console(stderr=True)
    console.print(said, markup=False, soft_wrap=True)
    for line in lines:
        console.print(f"  {clean(line)}", markup=False, soft_wrap=True)
    if not trusted and not typer.confirm(question, default=False, err=True):
        raise typer.Exit(ExitCode.NO)
