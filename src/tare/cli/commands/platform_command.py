"""tare platform: checks of one platform."""

from __future__ import annotations

from pathlib import Path

import typer

from tare.cli.commands import given

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Check that a platform keeps what every platform promises."
)


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
    given.require_platforms([name])

    from tare.cli.check_platform import check_promises

    check_promises(name, only, as_json=as_json)


@app.command("doors")
def doors(
    names: list[str] = typer.Argument(None, help="Platforms; none: all that there are.", show_default=False),
    surveys: list[Path] = typer.Option([], "--with", help="Show these with them: files of --json. Repeatable."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON (schema tare.doors/1)."),
) -> None:
    """Try every known door out of instances of platforms, harmlessly, and print which are open, as Markdown.

    A door that a platform leaves open by design is shown as that. Exits 1 where another is open, or a platform that
    runs here could not be tried. With --with and without a platform's name nothing is tried.

    Examples: [cyan]tare platform doors runc gvisor[/], [cyan]tare platform doors --with here.json --with there.json[/]
    """
    if names:
        given.require_platforms(names)

    from tare.cli.check_platform import show_doors

    show_doors(names or [], surveys, as_json=as_json)


@app.command("checks")
def checks() -> None:
    """List the checks and what each promises.

    Example: [cyan]tare platform checks[/], and then [cyan]tare platform check docker[/]
    """
    from tare.cli.check_platform import show_checks

    show_checks()
