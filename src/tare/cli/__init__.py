"""The command line: `commands` declares the options, the modules beside it do the work. Errors are caught here."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING

from tare import lazily, store
from tare.clean import encodable
from tare.cli.commands.app import app
from tare.cli.console import Console, mend_streams
from tare.cli.exit_codes import ExitCode
from tare.errors import TareError
from tare.host import own_namespaces, state
from tare.host.resources import unremoved

if TYPE_CHECKING:
    from tare.host.resources import journal
else:  # only an interrupt needs it
    journal = lazily.LazyModule("tare.host.resources.journal")


def main() -> None:
    """Run a command. It ends as `ExitCode` says."""
    # numpy's and scipy's: matrices are small here, and each of their threads would spin for a while on its own CPU.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGHUP, _interrupt)
    mend_streams()
    errors = Console(stderr=True)
    try:
        app()
    except TareError as error:
        if "--debug" in sys.argv:
            raise
        errors.print(f"[bold red]error:[/] {_plain(error.what)}", soft_wrap=True)
        if error.fix:
            errors.print(f"[bold]fix:[/] {_plain(error.fix)}", soft_wrap=True)
        for note in getattr(error, "__notes__", ()):
            errors.print(f"[bold]note:[/] {_plain(note)}", soft_wrap=True)
        sys.exit(ExitCode.ERROR)
    except MemoryError:
        errors.print("[bold red]error:[/] there is not memory enough for this")
        sys.exit(ExitCode.ERROR)
    except SystemExit as end:
        # Typer turns an interrupt into this exit code.
        if end.code == ExitCode.INTERRUPTED and not isinstance(end, own_namespaces.CarriedOut):
            errors.print(interrupted(), markup=False, soft_wrap=True)
        raise
    finally:
        for folder in state.closed():
            note = f"other users could look into {_plain(str(folder))}; it is closed to them now"
            errors.print(f"[bold]note:[/] {note}", soft_wrap=True)
        _warn_of_unremoved(errors)


def interrupted() -> str:
    """The message after an interrupt: whether anything that tare made is still on the host, and what was measured."""
    measured = ["what was measured is kept"] if store.kept_in() else []
    mine = [str(entry.resource) for entry in journal.of_this_process()]
    if not mine:
        return f"interrupted: {', '.join(['what tare made on this host is removed', *measured])}"
    left = f"left on this host: {', '.join(mine)}; remove it by `tare clean`"
    return f"interrupted: {'; '.join([*measured, left])}"


def _warn_of_unremoved(errors: Console) -> None:
    unremoved_resources = unremoved.still_there()
    for resource in unremoved_resources:
        errors.print(f"[bold yellow]warning:[/] {_plain(str(resource))}", soft_wrap=True)
    if unremoved_resources:
        errors.print(f"[bold]fix:[/] {unremoved.FIX}", soft_wrap=True)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # Handled as Ctrl-C is, so that all cleanup runs.
    raise KeyboardInterrupt


def _plain(text: str) -> str:
    """An error's text without markup and control characters: it may contain a sandbox's output."""
    shown = "".join(char if char.isprintable() else "?" for char in encodable(text))
    return shown.replace("[", r"\[")
