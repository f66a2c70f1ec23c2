"""tare surface: what of the host's kernel a platform's tenant may ask for, read from live sandboxes."""

from __future__ import annotations

import json
import os

import typer
from rich.console import Console

from tare import literature
from tare.cli.report import to_read
from tare.errors import UsageError
from tare.footprint import calls, live
from tare.footprint.model import Surface
from tare.platforms import registry
from tare.platforms.base import Platform
from tare.report import surface as shown

ALL = "all"
STUDY = "anjali-2020"


def surface(
    names: list[str] = typer.Argument(
        None, metavar="[PLATFORM]...", help="Platforms, or all. Default: the usual ones."
    ),
    pid: list[int] = typer.Option(
        [], "--pid", help="A process that runs already, with all below it, instead; repeatable."
    ),
    syscalls: bool = typer.Option(False, "--syscalls", help="List which calls, and what the filters answer."),
    published: bool = typer.Option(True, "--published/--no-published", help="A study's table beside ours."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON (schema tare.surface/1)."),
) -> None:
    """Start an instance of each platform, and read from its processes on the host what they may ask of its kernel.

    System calls by the seccomp filters that are installed (each is evaluated for every call), capabilities, user,
    namespaces, writable places of the host's, open devices. Nothing is measured, and nothing of an instance is changed.

    Examples: [cyan]tare surface docker gvisor[/], [cyan]tare surface all[/], [cyan]tare surface docker --syscalls[/],
    [cyan]tare surface --pid 1234 --json | jq '.platforms[].counts'[/]
    """
    if names and pid:
        raise UsageError("platforms are started, processes of --pid run already", fix="name platforms, or --pid")
    errors = Console(stderr=True, highlight=False)
    found: list[Surface] = []
    left_out: list[dict[str, str]] = []
    with errors.status("") as status:
        looked = live.running(pid, status.update) if pid else live.surfaces(_chosen(names or []), status.update)
        for one in looked:
            if one.surface is not None:
                found.append(one.surface)
            else:
                left_out.append({"platform": one.platform, "reason": one.reason, "fix": one.fix})
    study = literature.load(STUDY)
    kernel = f"Linux {os.uname().release}, {calls.native().abi}"
    if as_json:
        facts = {"kernel": kernel, "tables": f"Linux {calls.version()}"}
        typer.echo(json.dumps(shown.to_data(found, left_out, facts, study), indent=2, ensure_ascii=False))
    else:
        console = to_read()
        console.print(shown.render(found, kernel))
        beside = shown.published(found, study) if published else None
        if beside is not None:
            console.print(beside)
        if syscalls:
            console.print(shown.listed(found))
        for row in left_out:
            fix = f" (fix: {row['fix']})" if row["fix"] else ""
            console.print(f"left out: {row['platform']}: {row['reason']}{fix}", markup=False, soft_wrap=True)
    if not found:
        raise typer.Exit(1)


def _chosen(names: list[str]) -> list[Platform]:
    if names == [ALL]:
        return list(registry.all_platforms().values())
    return registry.choose(names) if names else [one for one in registry.all_platforms().values() if one.by_default]
