"""tare fleet: many hosts, one result."""

from __future__ import annotations

import typer

from tare.cli.commands import fleet_run

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)


@app.callback()
def fleet() -> None:
    """Many hosts, one result: a campaign a host, merged without pooling what was measured."""


fleet_run.add(app)
