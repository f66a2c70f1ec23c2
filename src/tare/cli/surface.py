"""tare surface: what of the host's kernel a platform's tenant may ask for, read from live sandboxes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import typer
from rich.console import Console

from tare import literature
from tare.cli.report import to_read
from tare.errors import UsageError
from tare.footprint import calls, live
from tare.footprint.live import Looked, Progress
from tare.footprint.model import Surface
from tare.platforms import registry
from tare.platforms.base import Platform
from tare.report import surface_terminal as shown
from tare.report.surfaces import STUDY, surfaces_report, to_data

ALL = "all"


def surface(
    names: list[str] = typer.Argument(
        None, metavar="[PLATFORM]...", help="Platforms, or all. Default: the usual ones."
    ),
    pid: list[int] = typer.Option(
        [], "--pid", help="A process that runs already, with all below it, instead; repeatable."
    ),
    output: Path | None = typer.Option(
        None, "-o", "--output", help="Campaign file: a new one, or one that gets the surfaces too; native takes part."
    ),
    syscalls: bool = typer.Option(False, "--syscalls", help="List which calls, and what the filters answer."),
    published: bool = typer.Option(True, "--published/--no-published", help="A study's table beside ours."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON (schema tare.surface/1)."),
) -> None:
    """Start an instance of each platform, and read from its processes on the host what they may ask of its kernel.

    System calls by the seccomp filters that are installed (each is evaluated for every call), capabilities, user,
    namespaces, writable places of the host's, open devices. Nothing is measured, and nothing of an instance is changed.

    Examples: [cyan]tare surface docker gvisor[/], [cyan]tare surface all -o kernel.tare[/],
    [cyan]tare surface docker --syscalls[/], [cyan]tare surface --pid 1234 --json | jq '.platforms[].counts'[/]
    """
    found: list[Surface] = []
    left_out: list[dict[str, str]] = []
    with Console(stderr=True, highlight=False).status("") as status:
        for one in _looked(names or [], pid, output, status.update):
            if one.surface is not None:
                found.append(one.surface)
            else:
                left_out.append({"platform": one.platform, "reason": one.reason, "fix": one.fix})
    study = literature.load(STUDY)
    if as_json:
        facts = {"kernel": calls.kernel(), "tables": f"Linux {calls.version()}"}
        typer.echo(json.dumps(to_data(found, left_out, facts, study), indent=2, ensure_ascii=False))
    else:
        _print(found, left_out, beside=published, listed=syscalls)
        if output is not None and output.exists():
            typer.echo(f"in {output}")
    if not found:
        raise typer.Exit(1)


def _looked(names: list[str], pid: list[int], output: Path | None, progress: Progress) -> Iterator[Looked]:
    if pid and names:
        raise UsageError("platforms are started, processes of --pid run already", fix="name platforms, or --pid")
    if pid and output is not None:
        raise UsageError("a file keeps surfaces of platforms, and --pid has none", fix="leave -o out, or take --json")
    if pid:
        return live.running(pid, progress)
    return live.surfaces(_chosen(names), progress) if output is None else live.into(output, names, progress)


def _print(found: Sequence[Surface], left_out: Sequence[Mapping[str, str]], *, beside: bool, listed: bool) -> None:
    console = to_read()
    told = surfaces_report(found)
    console.print(shown.render(told.surfaces))
    if beside and told.beside is not None:
        console.print(shown.published(told.beside))
    if listed:
        console.print(shown.listed(found))
    for row in left_out:
        fix = f" (fix: {row['fix']})" if row["fix"] else ""
        console.print(f"left out: {row['platform']}: {row['reason']}{fix}", markup=False, soft_wrap=True)


def _chosen(names: list[str]) -> list[Platform]:
    if names == [ALL]:
        return list(registry.all_platforms().values())
    return registry.choose(names) if names else [one for one in registry.all_platforms().values() if one.by_default]
