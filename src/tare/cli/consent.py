"""Confirmation before a file's contents decide what root does: a campaign of another host's, an application's file."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import typer

from tare.campaign.execution import provenance
from tare.cli.console import Console
from tare.cli.exit_codes import ExitCode
from tare.errors import UsageError
from tare.host.kernel import cpulist
from tare.safe_text import clean
from tare.store import Store, exists, read_store
from tare.workloads.own.file import Described

_RUN_IT = "Run this as root, on this host?"


def agreed(file: Path, *, trusted: bool) -> str:
    """The digest of the record that the user agreed to resume; "" where this host wrote the file.

    ``trusted``: the caller vouches for the file. Exits 1 when the answer is no. Raises `StoreError`.
    """
    with read_store(file) as store:
        if provenance.is_own(store):
            return ""
        if _cannot_ask(trusted=trusted):
            provenance.require(store, "")
        digest, lines = provenance.digest(store), list(provenance.orders(store))
    _ask(f"{file} was not written by this host. It would run:", lines, _RUN_IT, trusted=trusted)
    return digest


def agreed_to_add(file: Path, *, trusted: bool) -> str:
    """As `agreed`, of a file that gets footprints or surfaces; "" also where there is none, or a lab of this host's."""
    if not exists(file):
        return ""
    with read_store(file) as store:
        if provenance.may_be_added_to(store):
            return ""
        if _cannot_ask(trusted=trusted):
            provenance.require_added(store, "")
        digest, lines = provenance.digest(store), list(_instances(store))
    _ask(f"{file} was not written by this host. Instances would be as it says:", lines, "Add to it?", trusted=trusted)
    return digest


def _instances(store: Store) -> Iterator[str]:
    resources = store.record.resources
    yield f"CPUs {cpulist.written(resources.cpus)}, {resources.memory_bytes >> 20} MiB of memory each"


def agree_to_try(described: Described, *, trusted: bool) -> None:
    """Ask before an application's commands are run on native; return once the user agrees, or ``trusted`` says so.

    Exits 1 when the answer is no. Raises `UsageError` where nobody can be asked.
    """
    if _cannot_ask(trusted=trusted):
        problem = f"{described.file} has no mistake; what it orders would now run as root, and nobody is at a terminal"
        raise UsageError(problem, fix="read the file, then give --trust")
    _ask(f"{described.file} has no mistake. It would run:", _orders(described), _RUN_IT, trusted=trusted)


def _orders(described: Described) -> Iterator[str]:
    contents = described.contents
    source, start, load = contents.source, contents.start, contents.load
    yield f"on native, in no sandbox: {source.image or source.folder or ', '.join(source.packages)}"
    words = {"start": start.command or start.arguments, "ready": contents.ready.command, "load": load.command}
    for table, command in words.items():
        if command is not None:
            yield f"{table}: {shlex.join(command)}"
    yield from (f"with the file {path}" for path in start.files)


def _cannot_ask(*, trusted: bool) -> bool:
    return not trusted and not sys.stdin.isatty()


def _ask(problem: str, lines: Iterable[str], question: str, *, trusted: bool) -> None:
    console = Console(stderr=True)
    console.print(clean(problem), markup=False, soft_wrap=True)
    for line in lines:
        console.print(f"  {clean(line)}".replace("\n", "\n    "), markup=False, soft_wrap=True)
    if not trusted and not typer.confirm(question, default=False, err=True):
        raise typer.Exit(ExitCode.NO)
