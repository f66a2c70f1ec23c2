"""The command line: in `commands` what each is asked, and beside it what each does. Errors are caught here, once."""

from __future__ import annotations

import signal
import sys
from types import FrameType

from tare.cli.commands.app import app
from tare.cli.console import Console, mend_streams
from tare.errors import TareError
from tare.host import state, unremoved

INTERRUPTED = 130


def main() -> None:
    """Run a command. Exit codes: 0 well, 1 a command says no, 2 an error that a user can mend, 130 interrupted."""
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
        sys.exit(2)
    except MemoryError:
        errors.print("[bold red]error:[/] there is not memory enough for this")
        sys.exit(2)
    except SystemExit as end:
        if end.code == INTERRUPTED:  # typer has turned the interrupt into this
            errors.print(interrupted(), markup=False, soft_wrap=True)
        raise
    finally:
        for folder in state.closed():
            errors.print(f"[bold]note:[/] other users could look into {_plain(str(folder))}; it is closed to them now")
        _tell_unremoved(errors)


def interrupted() -> str:
    """What has become of a command that was interrupted: what is on the host is looked at, and not hoped for."""
    from tare.host import journal  # noqa: PLC0415 (costly, and by now there or not needed)

    mine = [str(entry.resource) for entry in journal.of_this_process()]
    if not mine:
        return "interrupted: what tare made on this host is removed, what was measured is kept"
    return f"interrupted: what was measured is kept; left on this host: {', '.join(mine)}; remove it by `tare clean`"


def _tell_unremoved(errors: Console) -> None:
    unremoved_resources = unremoved.still_there()
    for resource in unremoved_resources:
        errors.print(f"[bold yellow]warning:[/] {_plain(str(resource))}", soft_wrap=True)
    if unremoved_resources:
        errors.print(f"[bold]fix:[/] {unremoved.FIX}", soft_wrap=True)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # The same way out as Ctrl-C, so that everything is torn down.
    raise KeyboardInterrupt


def _plain(text: str) -> str:
    """What a sandbox said may be in an error: none of it is markup or moves the cursor."""
    shown = "".join(char if char.isprintable() else "?" for char in text)
    return shown.replace("[", r"\[")
