"""The options of `tare run` for a command of the user's own, and the commands that they make."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from tare.cli.commands.given import options
from tare.errors import UsageError

if TYPE_CHECKING:
    from tare.workloads.base import Params
    from tare.workloads.own.program import OwnProgram

#: Heading of these options in `tare run --help`.
PANEL = "A command of your own (docs/programs.md)"
#: Key of the words behind `--`, as they were typed.
_WORDS = "tare.command"


class WithCommand(TyperCommand):
    """A command that takes another one's command line behind `--`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take what is behind `--` away: click would mix it with words that were typed before."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_WORDS] = args[at + 1 :]
        if at == len(args) - 1:
            raise UsageError("no command follows --", fix="tare run -p docker -- make test")
        return super().parse_args(ctx, args[:at])

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Name the command in the usage."""
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND ARG...]"]


def words(context: typer.Context) -> list[str]:
    """The words behind `--`."""
    return list(context.meta.get(_WORDS, []))


def _option(default: Any, *names: str, metavar: str | None = None, text: str) -> Any:
    return typer.Option(default, *names, metavar=metavar, help=text, rich_help_panel=PANEL)


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """Options of a command of the user's own."""

    command: list[str] = _option(
        [],
        "--command",
        metavar="TEXT",
        text="A command as one text, split into words as a shell does; may be given again.",
    )
    shell: bool = _option(False, "--shell", text="Run texts by the image's sh -c: with pipes, && and variables.")
    name: list[str] = _option([], "--name", metavar="TEXT", text="The name in tables, of each command in their order.")
    folder: Path | None = _option(
        None,
        "--folder",
        metavar="DIR",
        text="Each run finds a copy of this folder at /work, as it is now, and begins there.",
    )
    image: str | None = _option(
        None,
        "--image",
        metavar="PLACE",
        text="An image of yours that has the command: an OCI layout, what docker save wrote, a root filesystem, or"
        " docker://HOST/NAME:TAG.",
    )
    package: list[str] = _option(
        [], "--package", metavar="NAME", text="A Debian package on top of tare's image; may be given again."
    )
    scan: list[str] = _option(
        [], "--scan", metavar="NAME=VALUES", text="Run with each value in place of {NAME}: threads=1,2,4 or n=1:8:1."
    )
    warmup: int = _option(
        0, "--warmup", metavar="N", text="Runs in each instance that are not measured, before the others."
    )
    prepare: str | None = _option(None, "--prepare", metavar="TEXT", text="A command before each run, not timed.")
    cleanup: str | None = _option(
        None, "--cleanup", metavar="TEXT", text="A command after the last run in an instance, not timed."
    )
    runs: int | None = _option(
        None, "--runs", metavar="N", text="Runs in each block. Default: by how long a first run takes, 1 to 20."
    )
    ignore_failure: bool = _option(False, "--ignore-failure", text="Measure runs that do not end with 0, too.")
    env: list[str] = _option([], "--env", metavar="NAME=VALUE", text="A variable of the command's; may be given again.")
    time_limit: str = _option(
        "10m", "--time-limit", metavar="TIME", text="A run that takes longer is ended, and has failed."
    )


def workloads(context: typer.Context, given: CommandOptions) -> list[OwnProgram]:
    """The workloads of the commands that were typed; none where there are none. Raises `UsageError`."""
    behind = words(context)
    if not (behind or given.command):
        _refuse_alone(context)
        return []

    from tare.cli.quantities import parse_time
    from tare.model import UserProgram
    from tare.workloads import workload_registry
    from tare.workloads.own import program
    from tare.workloads.own.commands import Typed, programs

    if given.shell and not given.command:
        raise UsageError("--shell is for a text", fix=f"--shell --command {shlex.quote(' '.join(behind))}")
    if given.package and given.image:
        raise UsageError("--package goes on top of tare's image, and --image is yours", fix="give one of them")
    common = UserProgram(
        argv=(),
        warmup=_whole("--warmup", given.warmup, 0),
        time_limit_s=_limit(parse_time(given.time_limit)),
        ignore_failure=given.ignore_failure,
        folder=_folder(given.folder),
        image=_place(given.image),
        packages=tuple(given.package),
    )
    typed = Typed(
        argv=behind,
        texts=given.command,
        names=given.name,
        scans=given.scan,
        prepare=given.prepare,
        cleanup=given.cleanup,
        env=given.env,
        shell=given.shell,
    )
    known = workload_registry.all_workloads()
    made = [program.of(name, definition) for name, definition in programs(typed, common)]
    for workload in made:
        if workload.name in known:
            raise UsageError(f"a workload of tare's has the name {workload.name!r}", fix="give --name another one")
    return made


def rounds(given: CommandOptions, commands: Sequence[OwnProgram]) -> dict[str, Params]:
    """The parameters of commands whose runs in a block are given, by name. Raises `UsageError`."""
    if given.runs is None:
        return {}
    return {workload.name: {"rounds": _whole("--runs", given.runs, 1)} for workload in commands}


def _refuse_alone(context: typer.Context) -> None:
    names = {field.name for field in fields(CommandOptions)}
    alone = options(context, besides={parameter.name or "" for parameter in context.command.params} - names)
    if alone:
        raise UsageError(f"{alone[0]} goes with a command", fix=f"tare run {alone[0]} ... -- make test")


def _whole(option: str, value: int, least: int) -> int:
    if not least <= value <= 1_000:
        raise UsageError(f"{option} {value} cannot be", fix=f"a whole number from {least} to 1000")
    return value


def _limit(seconds: float) -> float:
    if not 0.1 <= seconds <= 86_000:
        raise UsageError("--time-limit is from 0.1s to 23h", fix="--time-limit 10m")
    return seconds


def _folder(folder: Path | None) -> str:
    if folder is None:
        return ""
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", fix="--folder with the folder of your program")
    return str(folder.resolve())


def _place(image: str | None) -> str:
    if image is None or image.startswith("docker://"):
        return image or ""
    if not Path(image).exists():
        fix = "name an OCI layout, what docker save wrote, a root filesystem, or docker://HOST/NAME:TAG"
        raise UsageError(f"there is no {image}", fix=fix)
    return str(Path(image).resolve())
