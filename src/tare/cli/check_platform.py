"""`tare platform`: checks a platform against the promises of `tare.platforms.base.Platform`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import typer

from tare.cli.console import Console, emit
from tare.cli.exit_codes import ExitCode
from tare.contract import suite, survey
from tare.contract.doors import AttemptState
from tare.host import own_namespaces, state
from tare.platforms import platform_registry
from tare.safe_text import clean


def check_promises(name: str, only: Sequence[str], *, as_json: bool) -> None:
    """Run the checks (``only`` these; none: all) and print them. Exits 1 when a promise is broken."""
    own_namespaces.enter(state.home())
    platform = platform_registry.choose([name])[0]
    console, errors = Console(), Console(stderr=True)
    results: list[suite.Result] = []
    with errors.status("") as status:
        for result in suite.run(platform, only, status.update):
            results.append(result)
            if not as_json:
                mark = "[dim]·[/]" if result.inapplicable else "[red]✗[/]" if result.broken else "[green]✓[/]"
                console.print(f"{mark} {result.name:22} {result.seconds:6.1f} s", end="  ")
                why_not = f"not applicable: {result.inapplicable}" if result.inapplicable else None
                text = why_not or result.broken or " ".join(filter(None, (result.title, result.remark)))
                console.print(text, markup=False, soft_wrap=True)
    broken = sum(result.broken is not None for result in results)
    if as_json:
        rows = [
            {
                "name": result.name,
                "promise": result.title,
                "broken": result.broken,
                "not applicable": result.inapplicable or None,
                "remark": result.remark,
                "seconds": round(result.seconds, 3),
            }
            for result in results
        ]
        emit(json.dumps({"schema": "tare.check/1", "platform": name, "checks": rows}, indent=2))
    else:
        inapplicable = sum(bool(result.inapplicable) for result in results)
        remark = f", {inapplicable} not applicable" if inapplicable else ""
        console.print(f"{name}: {len(results) - broken - inapplicable} promises kept, {broken} broken{remark}")
    if broken:
        raise typer.Exit(ExitCode.NO)


def show_doors(names: Sequence[str], files: Sequence[Path], *, as_json: bool) -> None:
    """Try the doors of these platforms (none: all that there are) and print them. Exits 1 where one should be closed.

    ``files``: surveys printed as JSON before, shown together with these; given those alone, nothing is tried.
    """
    surveyed = [platform for file in files for platform in survey.read(file)]
    errors = Console(stderr=True)
    if names or not files:
        with errors.status("") as status:
            surveyed += survey.run(
                platform_registry.choose(names or list(platform_registry.all_platforms())), status.update
            )
    platforms = survey.merged(surveyed)
    if as_json:
        emit(survey.Survey(schema="tare.doors/1", platforms=platforms).model_dump_json(indent=1, by_alias=True))
    else:
        emit(clean(survey.table(platforms)), end="")
    wrong = [
        door
        for platform in platforms
        for door in platform.doors
        if door.state is AttemptState.OPEN and door.by_design is None
    ]
    if wrong or any(platform.failed for platform in platforms):
        raise typer.Exit(ExitCode.NO)


def show_checks() -> None:
    """Print the checks and what each promises."""
    for name, title in suite.names().items():
        emit(f"{name:22} {title}")
