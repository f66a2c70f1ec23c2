"""What `tare doctor` does: says what this host can run, and what would make its figures better."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import partial
from typing import Any

import typer
from rich.status import Status
from rich.table import Table

from tare.campaign.host_session import default_cpus
from tare.cli.console import Console, emit
from tare.errors import Failed, attempt
from tare.footprint import checks as footprint_checks
from tare.footprint import ptrace
from tare.host import checks, own_namespaces, state
from tare.host.facts import machine, siblings
from tare.lab import checks as lab_checks
from tare.platforms import contract
from tare.platforms import registry as platforms
from tare.platforms.base import Availability, Platform

_MARKS = {"ok": "[green]✓[/]", "warn": "[yellow]![/]", "fail": "[red]✗[/]"}


def examine(names: Sequence[str], *, as_json: bool) -> None:
    """Check the host, try the platforms (``names``; none: all) and print the results. Exits 1 if tare cannot measure.

    Of named platforms each must run; of all, one is enough.
    """
    lacking = own_namespaces.obstacle() if os.geteuid() != 0 else None
    if lacking is None:
        own_namespaces.enter(state.home())
    chosen = platforms.choose(names or list(platforms.all_platforms()))
    host = checks.checks(siblings.completed(machine.gather(), default_cpus()))
    if lacking is not None:
        host = [checks.without_namespaces(lacking), *host[1:]]
    kernel = [ptrace.check(), *footprint_checks.checks(lab_checks.check())]
    with Console(stderr=True).status("") as status:
        results = [_platform(platform, status) for platform in chosen]
    runs = (all if names else any)(row["available"] for row in results)
    usable = all(check.state != "fail" for check in host) and runs
    if as_json:
        answer = {
            "schema": "tare.doctor/1",
            "usable": usable,
            "checks": [
                {"name": check.name, "state": check.state, "found": check.found, "advice": check.advice}
                for check in (*host, *kernel)
            ],
            "platforms": results,
            "families": [] if names else platforms.offers(),
        }
        emit(json.dumps(answer, indent=2))
    else:
        _print(host, kernel, results, [] if names else platforms.offers())
    if not usable:
        raise typer.Exit(1)


def _platform(platform: Platform, status: Status) -> dict[str, Any]:
    status.update(f"trying {platform.name}")
    answer = attempt(partial(contract.detected, platform))
    if isinstance(answer, Failed):
        answer = Availability(False, reason=f"its detection failed: {answer.reason}")
    attempt(platform.close)  # detection starts nothing that cleanup would need
    return {
        "name": platform.name,
        "title": platform.title,
        "package": platforms.package(platform.name),
        "available": answer.available,
        "version": answer.version,
        "reason": answer.reason,
        "fix": answer.fix,
        "details": dict(answer.details),
    }


def _print(
    host: list[checks.Check], kernel: list[checks.Check], results: list[dict[str, Any]], offers: list[dict[str, str]]
) -> None:
    console = Console()
    for title, group in (("The host", host), ("What can be told of its kernel", kernel)):
        table = Table(box=None, pad_edge=False, show_header=False)
        for check in group:
            table.add_row(_MARKS[check.state], check.name, check.found, check.advice or "")
        console.print(f"[bold]{title}[/]")
        console.print(table)
        console.print()
    table = Table(box=None, pad_edge=False, show_header=False)
    for row in results:
        mark = _MARKS["ok" if row["available"] else "warn"]
        text = row["version"] if row["available"] else row["reason"]
        table.add_row(mark, row["name"], text, f"fix: {row['fix']}" if row["fix"] else "")
    for offer in offers:
        table.add_row(" ", offer["name"], offer["asks"], "")
    console.print("[bold]Platforms[/]")
    console.print(table)
