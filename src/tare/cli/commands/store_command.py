"""tare store: campaigns in a catalogue that many hosts share."""

from __future__ import annotations

from pathlib import Path

import typer

from tare.errors import UsageError

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode="rich")


@app.callback()
def store() -> None:
    """A catalogue of many hosts' campaigns in PostgreSQL."""


@app.command("push")
def push(
    places: list[Path] = typer.Argument(..., help="Campaign files, or folders with a campaign of each host."),
    address: str = typer.Argument(..., help="postgresql://user@host/database, without a password."),
    host: str | None = typer.Option(None, "--host", help="The host's name. Default: the name of the file."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON (schema tare.push/1)."),
) -> None:
    """Put campaigns into a catalogue in PostgreSQL: figures with intervals, hosts, facts, versions. The files stay.

    A campaign is there once, by its id: to push it again changes nothing, or adds what it has measured since. The first
    push makes the tables, in a schema named tare. The password is in PGPASSFILE (~/.pgpass) or PGPASSWORD.

    Examples: [cyan]tare store push night.tare postgresql://tare@db.example/tare --host web1[/],
    [cyan]tare store push campaigns/ postgresql://tare@db.example/tare[/]
    """
    from tare.catalogue.address import parse

    parsed = parse(address)
    for place in places:
        if not place.exists():
            raise UsageError(f"{place} does not exist", fix="name a folder with campaigns, or their files")
    if host is not None and not (host.strip() and host.isprintable() and len(host) <= 200):
        raise UsageError("--host is no name of a host", fix="such as web1")

    from tare.cli.push import push_files

    push_files(places, parsed, host, as_json=as_json)
