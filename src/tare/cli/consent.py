"""Asks before resuming a campaign file that another host wrote: its commands are run as root."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from tare.campaign.execution import trust
from tare.clean import clean
from tare.cli.console import Console
from tare.cli.exit_codes import ExitCode
from tare.store import read_store


def agreed(file: Path, *, trusted: bool) -> str:
    """The digest of the record that the user agreed to resume; "" where this host wrote the file.

    ``trusted``: the caller vouches for the file. Exits 1 when the answer is no. Raises `StoreError`.
    """
    with read_store(file) as store:
        if trust.is_own(store):
            return ""
        digest = trust.digest(store)
        if not trusted and not sys.stdin.isatty():
            trust.require(store, "")
        lines = list(trust.orders(store))
    console = Console(stderr=True)
    console.print(f"{file} was not written by this host. It would run:", markup=False, soft_wrap=True)
    for line in lines:
        console.print(f"  {clean(line)}", markup=False, soft_wrap=True)
    if not trusted and not typer.confirm("Run this as root, on this host?", default=False, err=True):
        raise typer.Exit(ExitCode.NO)
    return digest
