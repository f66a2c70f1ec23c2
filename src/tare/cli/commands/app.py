"""All commands by name, and the options before them. A command's own module is loaded when that command is given."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from tare import __version__
from tare.cli.commands.helping import tidied
from tare.extensions import CommandEntry, feature_commands, with_plugin_commands
from tare.host import own_limits

_OWN = (
    ("doctor", "doctor_command:doctor", "Check the host and try every platform."),
    ("setup", "setup_command:setup", "Say what this host lacks, and install it."),
    ("quick", "quick_command:quick", "The first answer: set up what is missing, measure, and print the table."),
    ("list", "inventory_command:inventory", "List what tare knows."),
    ("run", "run_command:run", "Measure what platforms cost against bare metal, and print the table."),
    ("report", "report_command:report", "Show what campaigns found."),
    ("fleet", "fleet_command:app", "Many hosts, one result."),
    ("store", "store_command:app", "A catalogue of many hosts' campaigns in PostgreSQL."),
    ("serve", "serve_command:serve", "Show a folder's campaigns to this machine's browser."),
    ("export", "export_command:export", "Write every sample with the facts of its trial."),
    ("sql", "sql_command:sql", "Ask campaigns in SQL."),
    ("figure", "figure_command:figure", "Draw a campaign's figures for a paper."),
    ("cite", "cite_command:cite", "Print BibTeX and a methods paragraph for a paper."),
    ("bundle", "bundle_command:bundle", "Pack a campaign for reviewers, or verify such a bundle."),
    ("calibrate", "calibrate_command:calibrate", "Find the instrument's own error on this machine."),
    ("app", "application_command:app", "Bring an application of your own."),
    ("image", "image_command:app", "Carry the image to a host that cannot build it."),
    ("clean", "clean_command:clean", "Remove what earlier runs of tare left on this host."),
    ("platform", "platform_command:app", "Check that a platform keeps what every platform promises."),
)
#: The order of commands in `tare --help`, by heading. Further commands of features follow under the heading they name.
_ORDER = {
    "Begin": ("quick", "doctor", "setup", "list", "clean"),
    "Measure": ("run", "capacity", "app", "calibrate", "footprint", "surface"),
    "Read and decide": ("report", "compare", "diff", "history", "fleet", "score", "spread", "serve", "literature"),
    "Take along": ("export", "sql", "figure", "cite", "bundle", "store", "image"),
    "Add to tare": ("platform", "lab"),
}
#: tare's own commands by name, those of features among them.
COMMANDS: Mapping[str, CommandEntry] = {
    command.name: command
    for command in (
        *(CommandEntry(name, text, f"tare.cli.commands.{at}") for name, at, text in _OWN),
        *feature_commands(),
    )
}
_FEATURES_PANELS = dict.fromkeys(command.panel for command in feature_commands())
#: The headings of `tare --help`, with their commands.
GROUPS: Mapping[str, tuple[str, ...]] = {
    panel: (
        *(name for name in names if name in COMMANDS),
        *(name for name in COMMANDS if COMMANDS[name].panel == panel and name not in sum(_ORDER.values(), ())),
    )
    for panel, names in {**_ORDER, **{panel: () for panel in _FEATURES_PANELS if panel not in _ORDER}}.items()
}


@functools.cache
def _every() -> Mapping[str, CommandEntry]:
    """Return all commands, with those of plug-ins, whose modules are loaded for that."""
    return with_plugin_commands(COMMANDS.values())


class _LoadedWhenGiven(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        """Run a command. Keep typer from ending the process by its own code, 1, which is a verdict's here."""
        try:
            return super().invoke(ctx)
        except typer.Abort:  # Ctrl-C, or the end of input, at a question
            raise KeyboardInterrupt from None
        except (BrokenPipeError, EOFError) as fault:
            raise RuntimeError(f"{type(fault).__name__}: {fault}") from fault

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        own_limits.require()
        name, command, rest = super().resolve_command(ctx, args)
        listed = name is not None and (name in COMMANDS or name in _every())
        return name, load(str(name)) if listed else command, rest

    def list_commands(self, ctx: Any) -> list[str]:
        """Name all commands, those of plug-ins last."""
        return [*super().list_commands(ctx), *(name for name in _every() if name not in COMMANDS)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command before it is loaded, as `tare --help` shows it."""
        command = super().get_command(ctx, cmd_name)
        if command is not None or cmd_name not in _every():
            return command
        listed = _every()[cmd_name]
        return TyperCommand(listed.name, callback=_not_loaded, help=listed.help, rich_help_panel=listed.panel)


def load(name: str) -> Any:
    """The command of this name, or group of commands, with all its options."""
    module, _, function = (COMMANDS.get(name) or _every()[name]).function.partition(":")
    command = getattr(importlib.import_module(module), function)
    if not isinstance(command, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
        alone.command(name, cls=getattr(command, "command_class", None))(command)
        command = alone
    return tidied(typer.main.get_command(command))


app = typer.Typer(
    name="tare",
    cls=_LoadedWhenGiven,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Weigh virtualization: run the same bits under every isolation technology on this machine, "
    "and say with honest error bars what each costs against bare metal.",
    epilog="Start with [bold]tare doctor[/], then [bold]tare run[/].",
)


def _not_loaded() -> None:
    raise AssertionError("a command is loaded before it is called")


for _group, _names in GROUPS.items():
    for _name in _names:
        app.command(_name, help=COMMANDS[_name].help, rich_help_panel=_group)(_not_loaded)


@app.callback(invoke_without_command=True)
def _options(
    version: bool = typer.Option(False, "--version", help="Print the version and exit."),
    debug: bool = typer.Option(False, "--debug", help="Show a traceback for errors."),  # noqa: ARG001 (read in main)
) -> None:
    if version:
        from tare.cli.console import emit

        emit(f"tare {__version__}")
        raise typer.Exit
