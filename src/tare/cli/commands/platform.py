"""tare platform: one platform under the magnifying glass."""

from __future__ import annotations

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

    from tare.cli.platform import check_promises

    check_promises(name, only, as_json=as_json)


@app.command("checks")
def checks() -> None:
    """List the checks and what each promises."""
    from tare.cli.platform import show_checks

    show_checks()
