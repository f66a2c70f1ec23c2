"""Checks of the command line: which options were given, and whether their names exist."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import typer

from tare.campaign.plan.campaign_request import ALL
from tare.cli.choices import OpenPolicy
from tare.errors import UsageError
from tare.suggest import nearest

TRUST = typer.Option(
    False, "--trust", help="Continue a file that this host did not write without asking: its commands run as root."
)
TRUST_TO_ADD = typer.Option(False, "--trust", help="Add to a file that this host did not write without asking.")


FORCE = typer.Option(False, "--force", help="Replace the output if it exists, but never a campaign.")
OPEN = typer.Option(
    OpenPolicy.APART,
    "--open",
    help="Exit code if there is no regression and some figure is open: 3 (its own), pass (0) or fail (1).",
)


def options(context: typer.Context, *, besides: Collection[str]) -> list[str]:
    """The options that were given, as spelled on the command line, except those of the parameters ``besides``."""
    written = []
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name not in besides and source is not None and source.name != "DEFAULT":
            written.append(max(parameter.opts, key=len))
    return written


def require_platforms(names: Sequence[str]) -> None:
    """Raise `UsageError` for an unknown platform."""
    if named := [name for name in names if name != ALL]:
        from tare.platforms import platform_registry

        platform_registry.require(named)


def builds(words: Sequence[str]) -> list[str]:
    """The platforms of ``PROGRAM=FILE``: for each the one of the installed program, and that of the user's own build.

    Raises `UsageError`.
    """
    if not words:
        return []
    from tare.platforms.parts.bundles.own_build import FAMILY_OF

    names: list[str] = []
    for word in words:
        program, equals, file = word.partition("=")
        if not equals or not file:
            raise UsageError(f"{word!r} does not name a program and a file", fix="such as --with runc=./runc")
        if program not in FAMILY_OF:
            raise UsageError(f"--with does not accept a build of {program}", fix=nearest(program, list(FAMILY_OF)))
        names += [FAMILY_OF[program], f"{FAMILY_OF[program]}:{file}"]
    return list(dict.fromkeys(names))


def require_workloads(names: Sequence[str]) -> None:
    """Raise `UsageError` for an unknown workload or family."""
    if names:
        from tare.workloads import workload_registry

        workload_registry.choose(names)


def require_processes(pids: Sequence[int]) -> None:
    """Raise `UsageError` for a process id that does not exist."""
    for pid in pids:
        if not Path(f"/proc/{pid}").exists():
            raise UsageError(f"there is no process {pid}", fix="name one that runs, by its id on this host")
