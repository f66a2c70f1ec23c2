"""The help of commands as people read it: flags take nothing, and examples can be copied."""

from __future__ import annotations

import re
from typing import Any

from tare.cli.standard_streams import is_read_on_a_terminal

#: rich's marks in a help text.
_MARKS = re.compile(r"\[/?(?:cyan|bold)?\]")
#: Between two examples of a command's help, which stand one behind the other in its docstring.
_NEXT = re.compile(r"\[/\],\s+\[cyan\]")


def tidied(command: Any) -> Any:
    """A command, or a group of them, with an example a line, and without a type where nothing is typed."""
    for inner in getattr(command, "commands", {}).values():
        tidied(inner)
    if command.help and "Examples: [cyan]" in command.help:
        head, _, examples = command.help.partition("Examples: ")
        listed = _NEXT.sub("[/]\n\n[cyan]", examples)
        command.help = f"{head}Examples:\n\n{listed}"
    for parameter in command.params:
        if parameter.metavar is None:
            parameter.metavar = _metavar(parameter)
    if not is_read_on_a_terminal():
        _without_panels(command)
    return command


def _without_panels(command: Any) -> None:
    """For a pipe: no boxes around options, and no marks of a terminal in texts."""
    command.rich_markup_mode = None
    for described in (command, *command.params):
        if getattr(described, "help", None):
            described.help = _MARKS.sub("", described.help)


def _metavar(parameter: Any) -> str | None:
    """Return what stands for a value in the help; None: typer's own word, which is the value's type."""
    if getattr(parameter, "is_flag", False):
        return " "  # "" would be the type's name
    if parameter.param_type_name != "argument":
        return None
    name = (parameter.name or "").upper()
    return name.removesuffix("S") if parameter.nargs != 1 else name
