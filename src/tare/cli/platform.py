"""tare platform: one platform under the magnifying glass."""

from __future__ import annotations

import json

import typer
from rich.console import Console

from tare.contract import suite
from tare.platforms import registry

app = typer.Typer(no_args_is_help=True, help="Check that a platform keeps what every platform promises.")


@app.command("check")
def check(
    name: str = typer.Argument(help="A platform of `tare list platforms`, of a plugin, or FAMILY:ARGUMENT."),
    only: list[str] = typer.Option([], "--only", help="Only this check; repeatable."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON (schema tare.check/1)."),
) -> None:
    """Run the contract's checks on real sandboxes of one platform. Exits 1 when a promise is broken.

    Each check starts what it needs and removes it; a whole run takes half a minute for a container and some minutes
    for an emulated machine.

    Examples: [cyan]tare platform check docker[/], [cyan]tare platform check qemu --only death-is-noticed[/]
    """
    platform = registry.choose([name])[0]
    console, errors = Console(highlight=False), Console(stderr=True, highlight=False)
    results: list[suite.Result] = []
    with errors.status("") as status:
        for result in suite.run(platform, only, status.update):
            results.append(result)
            if not as_json:
                mark = "[green]✓[/]" if result.broken is None else "[red]✗[/]"
                console.print(f"{mark} {result.name:22} {result.seconds:6.1f} s", end="  ")
                console.print(result.broken or result.title, markup=False, soft_wrap=True)
    broken = sum(result.broken is not None for result in results)
    if as_json:
        rows = [
            {"name": one.name, "promise": one.title, "broken": one.broken, "seconds": round(one.seconds, 3)}
            for one in results
        ]
        typer.echo(json.dumps({"schema": "tare.check/1", "platform": name, "checks": rows}, indent=2))
    else:
        console.print(f"{name}: {len(results) - broken} promises kept, {broken} broken")
    if broken:
        raise typer.Exit(1)


@app.command("checks")
def checks() -> None:
    """List the checks and what each promises."""
    for name, title in suite.names().items():
        typer.echo(f"{name:22} {title}")
