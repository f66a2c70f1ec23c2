"""What `tare platform` does: holds one platform to what every platform promises."""

from __future__ import annotations

import json
from collections.abc import Sequence

import typer

from tare.cli.console import Console, emit
from tare.contract import suite
from tare.platforms import registry


def check_promises(name: str, only: Sequence[str], *, as_json: bool) -> None:
    """Run the checks (``only`` these; none: all) and print them. Exits 1 when a promise is broken."""
    platform = registry.choose([name])[0]
    console, errors = Console(), Console(stderr=True)
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
        emit(json.dumps({"schema": "tare.check/1", "platform": name, "checks": rows}, indent=2))
    else:
        console.print(f"{name}: {len(results) - broken} promises kept, {broken} broken")
    if broken:
        raise typer.Exit(1)


def show_checks() -> None:
    """Print the checks and what each promises."""
    for name, title in suite.names().items():
        emit(f"{name:22} {title}")
