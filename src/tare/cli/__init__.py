"""The command line: `commands` declares the options, the modules beside it do the work. Errors are caught here."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from typing import TYPE_CHECKING

from typer import exceptions

import tare
from tare import lazily, store
from tare.cli import interrupts, mistyped, standard_streams
from tare.cli.commands.app import app
from tare.cli.console import Console, show_fault
from tare.cli.exit_codes import ExitCode
from tare.errors import TareError
from tare.host import own_limits, own_namespaces, state
from tare.host.resources import unremoved
from tare.safe_text import encodable

if TYPE_CHECKING:
    from tare.host.resources import journal
else:  # only an interrupt needs it
    journal = lazily.LazyModule("tare.host.resources.journal")

#: Ends that standard error tells of, and that output which is not whole does not change.
_SAID_ON_STDERR = {ExitCode.ERROR, ExitCode.FAULT, ExitCode.INTERRUPTED}


def main() -> None:
    """Run a command, and exit as `ExitCode` says."""
    try:
        code = _main()
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 (not even the error could be printed)
        code = _last_words(error)
    atexit.register(interrupts.come_too_late)  # at exit: a caller in this process may still need its signals
    if sys.flags.inspect:  # with PYTHONINSPECT, Python makes a traceback and a verdict's 1 of every exit
        os._exit(code)
    sys.exit(code)


def _main() -> int:
    # numpy's and scipy's: matrices are small here, and each of their threads would spin for a while on its own CPU.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    interrupts.take_over()
    written = standard_streams.take_over()
    errors = Console(stderr=True)
    try:
        code = _run(errors)
    finally:
        for folder in state.closed():
            note = f"other users could look into {_plain(str(folder))}; it is closed to them now"
            errors.print(f"[bold]note:[/] {note}", soft_wrap=True)
        _warn_of_unremoved(errors)
    return _after_printing(code, written, errors)


def _run(errors: Console) -> int:
    """Run the command that the arguments name, print what ended it, and return its exit code."""
    try:
        ended = app(standalone_mode=False)
    except own_namespaces.CarriedOut:
        raise
    except exceptions.TyperException as error:
        return _failed(mistyped.as_usage_error(error), errors)
    except KeyboardInterrupt:
        return _interrupted(errors)
    except SystemExit as end:
        # Typer turns an interrupt into this exit code.
        return _interrupted(errors) if end.code == ExitCode.INTERRUPTED else _number(end)
    except BaseException as error:  # noqa: BLE001 (Python's own exit code for a fault, 1, is a verdict's; a panic of
        # a library in Rust is no Exception)
        if interrupts.came() and not isinstance(error, TareError) and "--debug" not in sys.argv:
            return _interrupted(errors)  # some libraries make a fault of the interrupt
        return _failed(error, errors)
    # Typer makes this number of an interrupt.
    return _interrupted(errors) if ended == ExitCode.INTERRUPTED else ended if isinstance(ended, int) else ExitCode.DONE


def _failed(error: BaseException, errors: Console) -> ExitCode:
    if isinstance(error, standard_streams.OutputError):
        return error.code
    error = own_limits.explained(error) or error
    if isinstance(error, MemoryError):
        error = TareError("there is not memory enough for this", fix="stop other programs, or raise its limit")
    expected = isinstance(error, TareError)
    if not expected or "--debug" in sys.argv:
        show_fault(error)
    if not isinstance(error, TareError):
        error = TareError(
            f"this is a fault of tare {tare.__version__}, or of a plug-in or library",
            fix="report it with the lines above and the command",
        )
    errors.print(f"[bold red]error:[/] {_plain(error.what)}", soft_wrap=True)
    if error.fix:
        errors.print(f"[bold]fix:[/] {_plain(error.fix)}", soft_wrap=True)
    for note in getattr(error, "__notes__", ()):
        errors.print(f"[bold]note:[/] {_plain(note)}", soft_wrap=True)
    return ExitCode.ERROR if expected else ExitCode.FAULT


def _last_words(error: BaseException) -> ExitCode:
    """Print what cannot be printed otherwise, such as without memory, and return the exit code."""
    if isinstance(error, KeyboardInterrupt):  # it came after the command, while the last lines were printed
        said, code = interrupted(), ExitCode.INTERRUPTED
    else:
        reached = own_limits.explained(error)
        said, code = f"error: {reached or repr(error)}", ExitCode.FAULT if reached is None else ExitCode.ERROR
    with contextlib.suppress(OSError):
        os.write(standard_streams.ERR, encodable(f"{said}\n").encode())
    return code


def _number(end: SystemExit) -> int:
    return end.code if isinstance(end.code, int) else ExitCode.DONE if end.code is None else ExitCode.ERROR


def _interrupted(errors: Console) -> int:
    errors.print(interrupted(), markup=False, soft_wrap=True)
    return ExitCode.INTERRUPTED


def _after_printing(code: int, written: standard_streams.Streams, errors: Console) -> int:
    """Write what is still buffered, and return the exit code: no verdict where the output is not whole."""
    if written.err is not None and written.err.lost:
        errors.print(f"[bold]note:[/] some messages were not shown: {written.err.lost}", soft_wrap=True)
    error = written.flush()
    if error is None or code in _SAID_ON_STDERR:
        return code
    if error.device_failed and interrupts.comes():
        return _interrupted(errors)
    if error.code is ExitCode.UNWRITTEN:
        errors.print(f"[bold red]error:[/] standard output is not whole: {error.reason}", soft_wrap=True)
        errors.print("[bold]fix:[/] free space where it goes, or send it elsewhere, and repeat the command")
    return error.code


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


def _plain(text: str) -> str:
    """An error's text without markup and control characters: it may contain a sandbox's output."""
    shown = "".join(char if char.isprintable() else "?" for char in encodable(text))
    return shown.replace("[", r"\[")
