"""The command line: one file a command, no logic. Errors are caught here, once."""

from __future__ import annotations

import signal
import sys
from types import FrameType

import typer
from rich.console import Console

from tare import __version__
from tare.cli import (
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
from tare.errors import TareError
from tare.host import unremoved

INTERRUPTED = 130

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


def main() -> None:
    """Run a command. Exit codes: 0 well, 1 a command says no, 2 an error that a user can mend, 130 interrupted."""
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGHUP, _interrupt)
    errors = Console(stderr=True, highlight=False)
    try:
        app()
    except TareError as error:
        if "--debug" in sys.argv:
            raise
        errors.print(f"[bold red]error:[/] {_plain(error.what)}", soft_wrap=True)
        if error.fix:
            errors.print(f"[bold]fix:[/] {_plain(error.fix)}", soft_wrap=True)
        sys.exit(2)
    except SystemExit as end:
        if end.code == INTERRUPTED:  # typer has turned the interrupt into this
            errors.print(interrupted(), markup=False, soft_wrap=True)
        raise
    finally:
        _tell_unremoved(errors)


def interrupted() -> str:
    """What has become of a command that was interrupted: what is on the host is looked at, and not hoped for."""
    from tare.host import journal  # noqa: PLC0415 (costly, and by now there or not needed)

    mine = [str(entry.thing) for entry in journal.of_this_process()]
    if not mine:
        return "interrupted: what tare made on this host is removed, what was measured is kept"
    return f"interrupted: what was measured is kept; left on this host: {', '.join(mine)}; remove it by `tare clean`"


def _tell_unremoved(errors: Console) -> None:
    left = unremoved.still_there()
    for thing in left:
        errors.print(f"[bold yellow]warning:[/] {_plain(str(thing))}", soft_wrap=True)
    if left:
        errors.print(f"[bold]fix:[/] {unremoved.FIX}", soft_wrap=True)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # The same way out as Ctrl-C, so that everything is torn down.
    raise KeyboardInterrupt


def _plain(text: str) -> str:
    """What a sandbox said may be in an error: none of it is markup or moves the cursor."""
    shown = "".join(char if char.isprintable() else "?" for char in text)
    return shown.replace("[", r"\[")
