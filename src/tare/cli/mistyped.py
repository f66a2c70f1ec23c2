"""Mistakes on the command line, in tare's words: what is wrong in one line, and what to type instead."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any

from typer import exceptions

from tare.cli.commands.app import COMMANDS
from tare.errors import UsageError
from tare.suggest import nearest

#: Words that people type for a command of another name.
_COMMANDS: Mapping[str, str] = {
    "bench": "run", "benchmark": "run", "measure": "run", "test": "run", "start": "quick", "install": "setup",
    "check": "doctor", "show": "report", "remove": "clean", "platforms": "list platforms",
    "workloads": "list workloads",
}  # fmt: skip
#: Words that people type for an option of another name, by the command that has it.
_OPTIONS: Mapping[tuple[str, str], str] = {
    ("report", "--format"): "--json, or tare export --format csv",
    ("run", "--format"): "--json",
    ("run", "--duration"): "--time",
    ("run", "--repeat"): "--blocks",
    ("run", "--repeats"): "--blocks",
}
#: The command to type first.
_FIRST = "tare quick, tare doctor or tare COMMAND --help"
_NUMBERS = {"integer": "a whole number, such as 10", "number": "a number, such as 1.5"}
_CHOICES = re.compile(r"Value error, '(?P<given>.*)' is not one of (?P<choices>'.*')\.?", re.DOTALL)
_NUMBER = re.compile(r"Input should be a valid (?P<kind>integer|number)\b.*", re.DOTALL)


def as_usage_error(error: exceptions.TyperException) -> UsageError:
    """A mistake that typer has found, as an error of tare's."""
    message = str(getattr(error, "format_message", error.__str__)()).rstrip(".")
    context = getattr(error, "ctx", None)
    path = str(getattr(context, "command_path", "tare"))
    if not message:  # the command line has no command, and help was printed
        return UsageError("a command is missing", fix=_FIRST if path == "tare" else f"{path} --help")
    if match := re.match(r"No such command '(.*?)'(?:\. Did you mean .*)?$", message, re.DOTALL):
        return UsageError(f"there is no command {match[1]!r}", fix=_command(match[1]))
    if match := re.fullmatch(r"No such option: (\S+)(?: .*)?", message, re.DOTALL):
        return UsageError(f"{path} has no option {match[1]}", fix=_option(path, match[1], context))
    if match := re.fullmatch(r"Invalid value for '?(?P<name>[^':]+)'?: (?P<why>.*)", message, re.DOTALL):
        return _value(path, match["name"], match["why"])
    return UsageError(message[:1].lower() + message[1:], fix=f"{path} --help")


def _command(typed: str) -> str:
    known = _COMMANDS.get(typed.casefold())
    return f"did you mean tare {known}?" if known else nearest(typed, COMMANDS)


def _option(path: str, typed: str, context: Any) -> str:
    command = path.rpartition(" ")[2]
    if (known := _OPTIONS.get((command, typed))) is not None:
        return f"did you mean {known}?"
    parameters = getattr(getattr(context, "command", None), "params", ())
    names = [option for parameter in parameters for option in parameter.opts if option.startswith("--")]
    near = nearest(typed, names)
    return near if near.startswith("did you mean") else f"{path} --help"


def _value(path: str, name: str, why: str) -> UsageError:
    if match := _CHOICES.fullmatch(why):
        choices = re.findall(r"'([^']*)'", match["choices"])
        close = difflib.get_close_matches(match["given"], choices, n=1, cutoff=0.75)
        fix = f"did you mean {close[0]}?" if close else f"one of {', '.join(choices)}"
        what = name if name.startswith("-") else path
        return UsageError(f"{what} cannot be {match['given']!r}", fix=fix)
    if match := _NUMBER.fullmatch(why):
        return UsageError(f"{name} is no number", fix=f"give {_NUMBERS[match['kind']]}")
    return UsageError(f"{name}: {why.removeprefix('Value error, ')}", fix=f"{path} --help")
