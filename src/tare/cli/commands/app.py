"""All commands, and the options before them."""

from __future__ import annotations

import typer

from tare import __version__
from tare.cli.commands import (
    calibrate,
    clean,
    compare,
    doctor,
    export,
    footprint,
    inventory,
    lab,
    literature,
    platform,
    report,
    run,
    score,
    spread,
    surface,
)  # fmt: skip

app = typer.Typer(
    name="tare",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Weigh virtualization: run the same bits under every isolation technology on this machine, "
    "and say with honest error bars what each costs against bare metal.",
    epilog="Start with [bold]tare doctor[/], then [bold]tare run[/].",
)
app.command("doctor")(doctor.doctor)
app.command("list")(inventory.inventory)
app.command("run")(run.run)
app.command("report")(report.report)
app.command("compare")(compare.compare)
app.command("score")(score.score)
app.command("spread")(spread.spread)
app.command("export")(export.export)
app.command("footprint")(footprint.footprint)
app.command("literature")(literature.literature)
app.command("surface")(surface.surface)
app.command("calibrate")(calibrate.calibrate)
app.command("clean")(clean.clean)
app.add_typer(platform.app, name="platform")
app.add_typer(lab.app, name="lab")


@app.callback(invoke_without_command=True)
def _options(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
    debug: bool = typer.Option(False, "--debug", help="Show a traceback for errors."),  # noqa: ARG001 (read in main)
) -> None:
    if version:
        typer.echo(f"tare {__version__}")
        raise typer.Exit
