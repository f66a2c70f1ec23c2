"""tare footprint: what of the host's kernel platforms reach while they start and work."""

from __future__ import annotations

import time
from pathlib import Path

import typer

from tare import outputs
from tare.campaign.plan.campaign_request import check_resources
from tare.cli.commands import given, names
from tare.cli.commands.instances import CPUS, MEMORY, PLATFORM, SEED, SUBNET, parse_cpus
from tare.cli.quantities import parse_memory, parse_time
from tare.errors import UsageError
from tare.features.kernel.exchange.count_request import (
    MACHINES,
    PROGRAMS,
    REPEATS,
    UNITS,
    WORKLOADS,
    FootprintRequest,
    repeats_of,
)
from tare.features.kernel.exchange.countable import LAB_LEVELS, SCHEMA, inside_lab
from tare.model import Level
from tare.store import exists
from tare.suggest import nearest

_EXAMPLES = """Examples:

[cyan]tare footprint[/]                                        the usual platforms, the four workloads of Anjali 2020

[cyan]tare footprint -p docker -p gvisor -w sysbench-cpu --repeats 5[/]

[cyan]tare footprint -p gvisor -o night.tare[/]                into a campaign's file that is there, beside its figures

[cyan]tare footprint --level functions -p runc -p docker -p gvisor -o kernel.tare[/]    in a lab, brought back

[cyan]tare footprint --level instructions -p runc -p crun -o work.tare[/]     all that a machine executes, exactly

[cyan]tare footprint --level instructions -p runc --with runc=./runc --against base.tare -o new.tare[/]    and its diff

[cyan]tare footprint --level stacks -p docker -p gvisor -w call-read-1b -o F.tare[/], then
[cyan]tare report F.tare --html F.html[/]                      flame graphs of the host's kernel, by platform
"""


_WORKLOAD = typer.Option(
    [],
    "-w",
    "--workload",
    callback=names.workloads,
    help=f"Workloads or families: startup,redis; may be given again. Default: {', '.join(WORKLOADS)};"
    f" of instructions {', '.join(UNITS)}.",
)
_LEVEL = typer.Option(
    Level.SYSCALLS,
    "--level",
    help="What is counted. functions, lines, instructions: in a lab that is booted. stacks: for flame graphs, here.",
)
_REPEATS = typer.Option(
    None,
    "--repeats",
    help=f"How often everything is counted anew, in random order. Default: {REPEATS}; of instructions {MACHINES}, each"
    " a machine of its own.",
)
_IDLE = typer.Option("10s", "--idle", help="How long the idle host is looked at in each repeat; 0: not at all.")
_OUTPUT = typer.Option(None, "-o", "--output", help="Campaign file: a new one, or one that gets the footprints too.")
_PROGRAM = typer.Option(
    [], "--file", help="A program of this host, to be on PATH in the lab (firecracker); may be given again."
)
_WITH = typer.Option(
    [],
    "--with",
    metavar="PROGRAM=FILE",
    help="Your own binary of a program that platforms start, in place of the lab's: runc=./new; may be given again.",
)
_CACHES = typer.Option(
    False, "--caches", help="Of instructions: also what a model of one core's caches had and had not; twice the time."
)
_AGAINST = typer.Option(
    None,
    "--against",
    help="Of instructions: compare with this file then, as tare diff does, by its exit codes. A file that is not"
    " there is counted first, without --with.",
)


def footprint(
    context: typer.Context,
    platform: list[str] = PLATFORM,
    workload: list[str] = _WORKLOAD,
    level: Level = _LEVEL,
    repeats: int | None = _REPEATS,
    idle: str = _IDLE,
    seed: int | None = SEED,
    cpus: str | None = CPUS,
    memory: str = MEMORY,
    subnet: str | None = SUBNET,
    output: Path | None = _OUTPUT,
    on_this_host: bool = typer.Option(False, "--here", help="Count functions on this host itself, and not in a lab."),
    program: list[Path] = _PROGRAM,
    replacing: list[str] = _WITH,
    against: Path | None = _AGAINST,
    caches: bool = _CACHES,
    trust: bool = given.TRUST_TO_ADD,
    as_json: bool = typer.Option(False, "--json", help=f"Print the footprints as JSON (schema {SCHEMA})."),
) -> None:
    """Count what platforms make the host's kernel do: in the start, and while a workload runs.

    Counted are everybody's work and that of the processes in the instance's control groups, which needs nothing
    subtracted. Nothing of the host is changed, and nothing stays enabled, however tare ends.
    """
    request = FootprintRequest(
        platforms=tuple(platform),
        workloads=tuple(workload),
        level=level,
        repeats=repeats_of(level) if repeats is None else repeats,
        idle_s=parse_time(idle),
        seed=seed,
        cpus=parse_cpus(cpus),
        memory_bytes=parse_memory(memory),
        subnet=subnet,
        caches=caches,
    )
    in_lab = level in LAB_LEVELS and not (on_this_host or inside_lab())
    request.check()
    given.require_platforms(request.platforms)
    given.require_workloads(request.workloads)
    file = output or Path(time.strftime("tare-footprint-%Y%m%d-%H%M%S.tare"))
    if not exists(file):
        outputs.check_new_campaign(file)
    _check_used(given.options(context, besides=()), in_lab=in_lab, file_exists=exists(file))
    for place in program:
        if not place.is_file():
            raise UsageError(f"{place} is no file", fix="give --file a file of this host")
    versions = _versions(replacing)
    if against is not None:
        _check_against(against, file, versions, level, as_json=as_json)
    if not in_lab:
        check_resources(request.cpus, request.memory_bytes)

    from tare.features.kernel.commands.footprint_run import LabFiles, count

    lab_files = LabFiles(program, versions) if in_lab else None
    raise typer.Exit(count(request, file, lab_files, against, trusted=trust, as_json=as_json))


footprint.__doc__ = f"{footprint.__doc__}\n\n{_EXAMPLES}"


def _versions(words: list[str]) -> dict[str, Path]:
    """Files by the program that each is a version of. Raises `UsageError`."""
    versions: dict[str, Path] = {}
    for word in words:
        name, equals, place = word.partition("=")
        if not equals or not Path(place).is_file():
            problem = f"{word!r} does not name a program and a file" if not equals else f"{place} is no file"
            raise UsageError(problem, fix="give --with a program and a file of this host: runc=./runc")
        if name not in PROGRAMS:
            raise UsageError(f"no platform starts a program {name}", fix=nearest(name, PROGRAMS))
        if name in versions:
            raise UsageError(f"--with has two files for {name}", fix="count one into each file, then tare diff OLD NEW")
        versions[name] = Path(place)
    return versions


def _check_against(against: Path, file: Path, versions: dict[str, Path], level: Level, *, as_json: bool) -> None:
    """Raise `UsageError` where nothing could be compared."""
    if level is not Level.INSTRUCTIONS:
        raise UsageError("--against compares counted instructions alone", fix="add --level instructions")
    if as_json:
        raise UsageError("--json and the diff of --against would be two documents", fix="tare diff OLD NEW --json")
    if exists(file):
        raise UsageError(f"{file} has footprints of another time", fix="give a new file with -o")
    if exists(against):
        outputs.require_campaign(against)
    elif versions:
        outputs.check_new_campaign(against)
    else:
        raise UsageError(
            f"{against} is not there, and would be counted with the same programs as {file}",
            fix="name a file of an earlier count, or the other version by --with",
        )


def _check_used(options: list[str], *, in_lab: bool, file_exists: bool) -> None:
    """Raise `UsageError` for an option that would have no effect. ``file_exists``: it is an existing campaign file."""
    if in_lab and "--subnet" in options:
        raise UsageError("a lab has a network of its own", fix="leave --subnet out, or count --here")
    for option in {"--file", "--with"} & set(options) if not in_lab else ():
        raise UsageError(f"{option} brings a program into a lab, and none is booted", fix=f"leave {option} out")
    for option in {"--cpus", "--memory"} & set(options) if file_exists and not in_lab else ():
        raise UsageError(
            f"instances are as those of the campaign that is there, and {option} says otherwise",
            fix=f"leave {option} out, or give a new file with -o",
        )
