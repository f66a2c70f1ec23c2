"""The command line: in `commands` what each is asked, and beside it what each does. Errors are caught here, once."""

from __future__ import annotations

import signal
import sys
from types import FrameType

from rich.console import Console

from tare.cli.commands.app import app
from tare.errors import TareError

INTERRUPTED = 130


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
            errors.print("interrupted: what tare made on this host is removed, what was measured is kept")
        raise


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # The same way out as Ctrl-C, so that everything is torn down.
    raise KeyboardInterrupt


def _plain(text: str) -> str:
    """What a sandbox said may be in an error: none of it is markup or moves the cursor."""
    shown = "".join(char if char.isprintable() else "?" for char in text)
    return shown.replace("[", r"\[")
