"""All commands by name, and the options before them. A command's own module is loaded when that command is given."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperGroup

from tare import __version__
from tare.cli.commands.helping import tidied
from tare.host import own_limits


@dataclass(frozen=True)
class Listed:
    """A command before its module is imported."""

    module: str  # in this package; it has the function, or a command group ``app``
    function: str
    help: str  # in `tare --help`


COMMANDS = {
    "doctor": Listed("doctor", "doctor", "Check the host and try every platform."),
    "setup": Listed("setup", "setup", "Say what this host lacks, and install it."),
    "quick": Listed("quick", "quick", "The first answer: set up what is missing, measure, and print the table."),
    "list": Listed("inventory", "inventory", "List what tare knows."),
    "run": Listed("run", "run", "Measure what platforms cost against bare metal, and print the table."),
    "capacity": Listed("capacity", "capacity", "Say how many instances fit, and what to reserve for each."),
    "report": Listed("report", "report", "Show what campaigns found."),
    "compare": Listed("compare", "compare", "Compare every platform with every other one."),
    "diff": Listed("diff", "diff", "Say what got worse since an earlier campaign: a gate."),
    "history": Listed("history", "history", "Say where figures changed over many campaigns: a gate."),
    "fleet": Listed("fleet", "app", "Many hosts, one result."),
    "store": Listed("store", "app", "A catalogue of many hosts' campaigns in PostgreSQL."),
    "score": Listed("score", "score", "Score platforms as the studies sum up."),
    "spread": Listed("spread", "spread", "Say where the spread of each ratio comes from."),
    "serve": Listed("serve", "serve", "Show a folder's campaigns to this machine's browser."),
    "export": Listed("export", "export", "Write every sample with the facts of its trial."),
    "sql": Listed("sql", "sql", "Ask campaigns in SQL."),
    "figure": Listed("figure", "figure", "Draw a campaign's figures for a paper."),
    "cite": Listed("cite", "cite", "Print BibTeX and a methods paragraph for a paper."),
    "bundle": Listed("bundle", "bundle", "Pack a campaign for reviewers, or verify such a bundle."),
    "footprint": Listed("footprint", "footprint", "Count what platforms make the host's kernel do."),
    "literature": Listed("literature", "literature", "Show the published studies."),
    "surface": Listed("surface", "surface", "Read what platforms may ask of the host's kernel."),
    "calibrate": Listed("calibrate", "calibrate", "Find the instrument's own error on this machine."),
    "app": Listed("application", "app", "Bring an application of your own."),
    "image": Listed("image", "app", "Carry the image to a host that cannot build it."),
    "clean": Listed("clean", "clean", "Remove what earlier runs of tare left on this host."),
    "platform": Listed("platform", "app", "Check that a platform keeps what every platform promises."),
    "lab": Listed("lab", "app", "A throwaway virtual machine that is a host of its own."),
}
#: The groups of `tare --help`, in its order.
GROUPS = {
    "Begin": ("quick", "doctor", "setup", "list", "clean"),
    "Measure": ("run", "capacity", "app", "calibrate", "footprint", "surface"),
    "Read and decide": ("report", "compare", "diff", "history", "fleet", "score", "spread", "serve", "literature"),
    "Take along": ("export", "sql", "figure", "cite", "bundle", "store", "image"),
    "Add to tare": ("platform", "lab"),
}


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
        return name, load(name) if name in COMMANDS else command, rest


def load(name: str) -> Any:
    """The command of this name, or group of commands, with all its options."""
    listed = COMMANDS[name]
    command = getattr(importlib.import_module(f"tare.cli.commands.{listed.module}"), listed.function)
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
    for _name in (_each for _each in _names if _each in COMMANDS):
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
