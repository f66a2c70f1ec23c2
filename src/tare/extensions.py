"""Commands and options that features and plug-ins add. Features are the folders of `tare.features`.

tare works without any of them. Both declare commands alike: a package has ``COMMANDS``, and a plug-in names its module
under the entry point `COMMANDS_GROUP`. Options of `tare report` are of features alone.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Final

from tare.errors import UsageError
from tare.plugins import declared, with_plugins

#: Entry point group of plug-ins' commands: a module with ``COMMANDS``.
COMMANDS_GROUP: Final = "tare.commands"
#: Heading in `tare --help` for commands of plug-ins.
PLUGINS_PANEL: Final = "From plug-ins"

_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command before its module is loaded.

    ``function``: ``MODULE:NAME`` of a function with typer's options, or of a `typer.Typer` with commands of its own.
    ``help``: its line in `tare --help`, under the heading ``panel``.
    """

    name: str
    help: str
    function: str
    panel: str = PLUGINS_PANEL


@dataclass(frozen=True, slots=True)
class ReportOption:
    """An option of `tare report` for a feature's sections, which find its value in `tare.report.section.Source`.

    ``name``: as on the command line, without dashes. ``takes``: `str` or `Path`. ``is_input``: a file that must exist,
    and that no output replaces. ``choices``: ``MODULE:NAME`` of a function that lists values, for the shell.
    """

    name: str
    help: str
    takes: type = str
    is_input: bool = False
    choices: str = ""


def features() -> list[ModuleType]:
    """Import tare's own features, in order of name. They declare only; their work is loaded when it is needed."""
    folder = importlib.import_module("tare.features")
    return [importlib.import_module(name) for _, name, _ in pkgutil.iter_modules(folder.__path__, "tare.features.")]


def feature_commands() -> list[CommandEntry]:
    """Return the commands of tare's own features."""
    return [command for feature in features() for command in commands_of(feature)]


def feature_modules(name: str) -> list[ModuleType]:
    """Import the modules of this name in features, in order of the features' names."""
    names = (f"{feature.__name__}.{name}" for feature in features())
    return [importlib.import_module(module) for module in names if importlib.util.find_spec(module)]


def report_options() -> list[ReportOption]:
    """Return the options that features add to `tare report`."""
    return [option for feature in features() for option in declared(feature, "REPORT_OPTIONS", ReportOption)]


def with_plugin_commands(own: Iterable[CommandEntry]) -> dict[str, CommandEntry]:
    """Return commands by name: ``own``, then those of plug-ins, of which broken ones are left out."""
    return with_plugins(own, COMMANDS_GROUP, commands_of)


def commands_of(module: object) -> Sequence[CommandEntry]:
    """Return the commands that a module declares. Raises `UsageError` for anything else in ``COMMANDS``."""
    commands = declared(module, "COMMANDS", CommandEntry)
    for command in commands:
        if not _NAME.fullmatch(command.name):
            raise UsageError(f"names the command {command.name!r}", fix="small letters, digits and dashes")
        if not _FUNCTION.fullmatch(command.function):
            raise UsageError(f"names the function {command.function!r}", fix="MODULE:FUNCTION")
    return commands
