"""tare run: measure."""

from __future__ import annotations

import inspect
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import typer

from tare import outputs
from tare.campaign.plan.campaign_plan import PRESETS, feature_profiles
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.campaign.plan.presets import ordered
from tare.cli.choices import ProgressOptions, ProgressStyle
from tare.cli.commands import command_line, given, names
from tare.cli.commands.given import TRUST
from tare.cli.commands.instances import CPUS, MEMORY, PLATFORM, SEED, SUBNET, parse_cpus
from tare.cli.quantities import parse_margins, parse_memory, parse_precision, parse_size, parse_time
from tare.errors import UsageError
from tare.extensions import feature_modules
from tare.model import Design, Family, Scale

if TYPE_CHECKING:
    from tare.workloads.own.program import OwnProgram

_EXAMPLES = """Examples:

[cyan]tare run[/]                                   some minutes over the usual platforms and workloads

[cyan]tare run -p docker -p gvisor -w sysbench-cpu --blocks 20 -o cpu.tare[/]

[cyan]tare run -p all -w startup --blocks 6[/]        every platform that runs here; the report says why others do not

[cyan]tare run --time 30m --seed 7 --tune -o night.tare[/]   at most; less where all is known well enough before

[cyan]tare run -p docker -w primes --precision 0.2% --time 1h[/]

[cyan]tare run --profile karna-2021[/]              a study again, scaled down, and its published figures beside

[cyan]tare run --with runc=./runc -w startup[/]      the runc that is installed, and a build of yours

[cyan]tare run --resume night.tare[/]               go on after a kill or a reboot into the same kernel

[cyan]tare run --more 10m night.tare[/]             ten minutes more of the same campaign, where they help most
"""


def _workload_names(incomplete: str) -> list[str]:
    """For the shell's completion: workloads and families whose names begin so."""
    from tare.workloads import workload_registry

    names = (*workload_registry.all_workloads(), *(family.value for family in Family))
    return [name for name in names if name.startswith(incomplete)]


def _profile_names(incomplete: str) -> list[str]:
    """For the shell's completion: profiles and studies whose names begin so."""
    return [name for name in ("quick", "full", *PRESETS, *feature_profiles()) if name.startswith(incomplete)]


_FEATURES_PROFILES = "".join(f", or {module.described()}" for module in feature_modules("profiles"))


@dataclass(frozen=True, slots=True)
class CampaignOptions:
    """The work of a campaign, its manner, and its limits."""

    platform: list[str] = PLATFORM
    build: list[str] = typer.Option(
        [],
        "--with",
        metavar="PROGRAM=FILE",
        help="Your own build of a runtime (runc, crun, youki, runsc) as a platform beside the one that is installed:"
        " runc=./runc; may be given again.",
    )
    workload: list[str] = typer.Option(
        [],
        "-w",
        "--workload",
        autocompletion=_workload_names,
        callback=names.workloads,
        help="Workloads by name, or a family's: redis,cpu; may be given again. Default: those that"
        " `tare list workloads` has as by default; in quick those of them that answer (docs/workloads.md).",
    )
    profile: str = typer.Option(
        "quick",
        "--profile",
        autocompletion=_profile_names,
        help="quick (a minute an arm: 6 to 8 for the usual ones), full (30 blocks, long runs), apps-small"
        " (servers under load on five platforms, planned for 40 minutes), life (start, exec, pause, stop"
        f" and removal of instances, 15 minutes for six platforms){_FEATURES_PROFILES}.",
    )
    scale: Scale | None = typer.Option(
        None,
        "--scale",
        help="Scale of a study's profile. scaled (default): shorter, and says how; full: the study's"
        " durations and runs.",
    )
    blocks: int | None = typer.Option(None, "--blocks", help="Run exactly this many blocks.")
    budget: str | None = typer.Option(None, "--time", help="Run as many blocks as fit: 90s, 5m, 1h30m.")
    precision: str | None = typer.Option(
        None,
        "--precision",
        help="Stop a workload when its 95 % intervals are at most ± this, such as 0.5%; 0: use all of the time."
        " Default: half of its margin; with --blocks: 0.",
    )
    design: Design | None = typer.Option(
        None,
        "--design",
        help="blocks (default): all in turn, in random order. sequential: one platform after the other, as most studies"
        " did. duet: sliced work beside the baseline's, each on a CPU.",
    )
    margin: list[str] = typer.Option(
        [],
        "--margin",
        help="Differences below this count as equal: 2%, cpu=0.5% or primes=0.2%; may be given again."
        " Default: 1 % CPU, 2 % memory and kernel calls, 5 % the rest.",
    )
    seed: int | None = SEED
    cpus: str | None = CPUS
    cpu_quota: float | None = typer.Option(
        None,
        "--cpu-quota",
        help="CPUs' worth of time that an instance may use, such as 1.5, as Docker's --cpus. Default: all"
        " of its CPUs'.",
    )
    memory: str = MEMORY
    data_size: str | None = typer.Option(
        None,
        "--data-size",
        help="Give every instance a filesystem of this size, such as 8G, which it cannot outgrow; slower"
        " than the host's. Default: a folder of the host's, and an instance that takes too much of the disk"
        " is stopped.",
    )
    subnet: str | None = SUBNET
    client: str | None = typer.Option(
        None,
        "--client",
        metavar="ssh:[USER@]HOST[:PORT]",
        help="Load servers in instances from this machine, which your ssh reaches as root. Default: from this host.",
    )
    tune: bool = typer.Option(
        False, "--tune", help="Make the host quieter during the campaign, and restore all settings afterwards."
    )


@dataclass(frozen=True, slots=True)
class FileOptions:
    """The campaign file, continuing it, and what is shown meanwhile and at the end."""

    output: Path | None = typer.Option(None, "-o", "--output", help="Campaign file. Default: tare-DATE-TIME.tare")
    resume: Path | None = typer.Option(None, "--resume", help="Run what is missing of this campaign file.")
    more: str | None = typer.Option(
        None, "--more", help="Measure this much longer in the campaign of FILE, where it helps most: --more 10m FILE."
    )
    files: list[Path] | None = typer.Argument(None, metavar="[FILE]", help="The campaign to continue, for --more.")
    trust: bool = TRUST
    progress: ProgressStyle = typer.Option(
        ProgressStyle.AUTO,
        "--progress",
        help="auto: drawn on a terminal, else a line a block. json: an object a line on standard error (docs/live.md).",
    )
    metrics: str | None = typer.Option(
        None,
        "--metrics",
        help="Serve metrics to Prometheus at this address while it runs, such as 127.0.0.1:9464 (docs/metrics.md).",
    )
    as_json: bool = typer.Option(False, "--json", help="Print the report as JSON (schema tare.report/2).")

    def shown(self) -> ProgressOptions:
        """Return how progress is shown."""
        return ProgressOptions(self.progress, self.metrics)


def run(context: typer.Context, **options: Any) -> None:
    """Measure what platforms cost against bare metal, and print the table.

    Behind -- stands a command of your own, which is measured in place of tare's workloads.

    Every block starts each platform fresh, the baseline twice, in random order. Each trial is in the campaign file
    before the next begins; the HTML report is written beside it. Ctrl-C finishes the trial under way and ends; a
    second one ends now.
    """
    campaign, files, own = (group(**{field.name: options[field.name] for field in fields(group)}) for group in _GROUPS)
    if files.more is not None or files.files:
        file, more_s = _more(files)
        _resume(context, files, file, more_s=more_s)
    elif files.resume is not None:
        _resume(context, files, files.resume)
    elif files.trust:
        raise UsageError("--trust is for an existing file", fix="give it with --resume, or leave it out")
    else:
        _begin(_request(campaign, own, command_line.workloads(context, own)), files)


#: Each field of these is an option of `run`, and has what `typer.Option` returned as its default.
_GROUPS: tuple[Any, ...] = (CampaignOptions, FileOptions, command_line.CommandOptions)
_TYPES = {"context": typer.Context} | {name: kind for group in _GROUPS for name, kind in get_type_hints(group).items()}
_DEFAULTS = {field.name: field.default for group in _GROUPS for field in fields(group)}
run.__annotations__ = _TYPES
run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_DEFAULTS.get(name, inspect.Parameter.empty))
        for name in _TYPES
    ]
)
run.command_class = command_line.WithCommand  # type: ignore[attr-defined]
run.__doc__ = f"{inspect.cleandoc(run.__doc__ or '')}\n\n{_EXAMPLES}"


def _request(
    campaign: CampaignOptions, own: command_line.CommandOptions, commands: Sequence[OwnProgram]
) -> CampaignRequest:
    profile = campaign.profile
    if commands and (profile in feature_profiles() or profile in PRESETS):
        problem = f"the profile {profile} has workloads of its own, and a command is another one"
        raise UsageError(problem, fix="leave --profile out, or give quick or full")
    request = CampaignRequest(
        platforms=[*campaign.platform, *given.builds(campaign.build)],
        workloads=campaign.workload,
        programs=commands,
        params=command_line.rounds(own, commands),
        profile=profile,
        blocks=campaign.blocks,
        budget_s=parse_time(campaign.budget) if campaign.budget is not None else None,
        seed=campaign.seed,
        cpus=parse_cpus(campaign.cpus),
        cpu_quota=campaign.cpu_quota,
        memory_bytes=parse_memory(campaign.memory),
        data_bytes=parse_size(campaign.data_size) if campaign.data_size is not None else None,
        subnet=campaign.subnet,
        client=campaign.client,
        tune=campaign.tune,
        margins=parse_margins(campaign.margin),
        precision=parse_precision(campaign.precision) if campaign.precision is not None else None,
    )
    return ordered(request, campaign.scale, campaign.design)


def _begin(request: CampaignRequest, files: FileOptions) -> None:
    file = files.output or Path(time.strftime("tare-%Y%m%d-%H%M%S.tare"))
    request.check()
    given.require_platforms(request.platforms)
    given.require_workloads(request.workloads)
    outputs.check_new_campaign(file)
    outputs.check_new(outputs.page_of(file), f"the page of {file}")

    from tare.cli.run import measure

    measure(request, file, files.shown(), as_json=files.as_json)


def _more(given: FileOptions) -> tuple[Path, float]:
    """Return the file and the seconds of ``--more``. Raises `UsageError` if one of them is missing."""
    more, files, resume = given.more, given.files or [], given.resume
    if more is None:
        names = shlex.join(str(file) for file in files)
        asked = " ".join(f"-p {shlex.quote(str(file))}" for file in files)
        raise UsageError(f"{names} is not expected here", fix=f"tare run {asked}, or tare run --more 10m FILE")
    if len(files) != 1:
        fix = f"tare run --more {more} {shlex.quote(str(resume)) if resume else 'FILE'}"
        raise UsageError("--more is for one campaign's file", fix=fix)
    if resume is not None:
        raise UsageError("--more runs what is missing too", fix="leave --resume out")
    seconds = parse_time(more)
    if not seconds:
        raise UsageError("--more needs some time", fix=f"tare run --more 10m {shlex.quote(str(files[0]))}")
    return files[0], seconds


def _resume(context: typer.Context, files: FileOptions, file: Path, *, more_s: float | None = None) -> None:
    alone = {field.name for field in fields(FileOptions)} - {"output"}
    options = given.options(context, besides=alone) + (["command"] if command_line.words(context) else [])
    if options:
        how = "--resume" if more_s is None else "--more"
        raise UsageError(
            f"{how} continues as planned and accepts no {' and no '.join(options)}", fix=f"give {how} alone"
        )
    outputs.require_campaign(file)
    outputs.check_page(outputs.page_of(file), [file])

    from tare.cli.run import go_on

    go_on(file, files.shown(), trusted=files.trust, as_json=files.as_json, more_s=more_s)
