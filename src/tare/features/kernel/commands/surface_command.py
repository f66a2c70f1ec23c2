"""tare surface: what of the host's kernel a platform's tenant may ask for, read from live sandboxes."""

from __future__ import annotations

from pathlib import Path

import typer

from tare import outputs
from tare.cli.commands import given
from tare.cli.commands.names import platforms as as_typed
from tare.features.kernel.exchange.count_request import SurfaceRequest
from tare.store import exists


def surface(
    names: list[str] = typer.Argument(
        None, metavar="[PLATFORM]...", help="Platforms, or all. Default: the usual ones.", callback=as_typed
    ),
    pid: list[int] = typer.Option([], "--pid", help="A running process with all of its children instead; repeatable."),
    output: Path | None = typer.Option(
        None, "-o", "--output", help="Campaign file: a new one, or one that gets the surfaces too; native takes part."
    ),
    syscalls: bool = typer.Option(False, "--syscalls", help="List which calls, and what the filters answer."),
    trust: bool = given.TRUST_TO_ADD,
    published: bool = typer.Option(True, "--published/--no-published", help="A study's table beside ours."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON (schema tare.surface/1)."),
) -> None:
    """Start an instance of each platform, and read from its processes on the host what they may ask of its kernel.

    System calls by the seccomp filters that are installed (each is evaluated for every call), capabilities, user,
    namespaces, writable places of the host's, open devices. Nothing is measured, and nothing of an instance is changed.

    Examples: [cyan]tare surface docker gvisor[/], [cyan]tare surface all -o kernel.tare[/],
    [cyan]tare surface docker --syscalls[/], [cyan]tare surface --pid 1234 --json | jq '.platforms[].counts'[/]
    """
    request = SurfaceRequest(tuple(names or ()), tuple(pid), output)
    request.check()
    given.require_processes(request.pids)
    given.require_platforms(request.platforms)
    if output is not None and not exists(output):
        outputs.check_new_campaign(output)

    from tare.features.kernel.commands.surface_run import show_surfaces

    show_surfaces(request, listed=syscalls, published=published, trusted=trust, as_json=as_json)
