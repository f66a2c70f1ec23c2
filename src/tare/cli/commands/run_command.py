"""tare run: measure."""

from __future__ import annotations

import inspect
import shlex
import time
from pathlib import Path

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


_WORKLOAD = typer.Option(
    [],
    "-w",
    "--workload",
    autocompletion=_workload_names,
    callback=names.workloads,
    help="Workloads by name, or a family's: redis,cpu; may be given again. Default: those that"
    " `tare list workloads` has as by default; in quick those of them that answer (docs/workloads.md).",
)
_TUNE = typer.Option(
    False, "--tune", help="Make the host quieter during the campaign, and restore all settings afterwards."
)
_DATA_SIZE = typer.Option(
    None,
    "--data-size",
    help="Give every instance a filesystem of this size, such as 8G, which it cannot outgrow; slower than the host's."
    " Default: a folder of the host's, and an instance that takes too much of the disk is stopped.",
)
_CPU_QUOTA = typer.Option(
    None,
    "--cpu-quota",
    help="CPUs' worth of time that an instance may use, such as 1.5, as Docker's --cpus. Default: all of its CPUs'.",
)
_PRECISION = typer.Option(
    None,
    "--precision",
    help="Stop a workload when its 95 % intervals are at most ± this, such as 0.5%; 0: use all of the time."
    " Default: half of its margin; with --blocks: 0.",
)
_MARGIN = typer.Option(
    [],
    "--margin",
    help="Differences below this count as equal: 2%, cpu=0.5% or primes=0.2%; may be given again."
    " Default: 1 % CPU, 2 % memory and kernel calls, 5 % the rest.",
)
_DESIGN = typer.Option(
    None,
    "--design",
    help="blocks (default): all in turn, in random order. sequential: one platform after the other, as most studies"
    " did. duet: sliced work beside the baseline's, each on a CPU.",
)
_PROFILE = typer.Option(
    "quick",
    "--profile",
    autocompletion=_profile_names,
    help="quick (a minute an arm: 6 to 8 for the usual ones), full (30 blocks, long runs), apps-small (servers under"
    " load on five platforms, planned for 40 minutes), life (start, exec, pause, stop and removal of instances, 15"
    f" minutes for six platforms){''.join(f', or {module.described()}' for module in feature_modules('profiles'))}.",
)
_SCALE = typer.Option(
    None,
    "--scale",
    help="Scale of a study's profile. scaled (default): shorter, and says how; full: the study's durations and runs.",
)

_WITH = typer.Option(
    [],
    "--with",
    metavar="PROGRAM=FILE",
    help="Your own build of a runtime (runc, crun, youki, runsc) as a platform beside the one that is installed:"
    " runc=./runc; may be given again.",
)
_CLIENT = typer.Option(
    None,
    "--client",
    metavar="ssh:[USER@]HOST[:PORT]",
    help="Load servers in instances from this machine, which your ssh reaches as root. Default: from this host.",
)
_PROGRESS = typer.Option(
    ProgressStyle.AUTO,
    "--progress",
    help="auto: drawn on a terminal, else a line a block. json: an object a line on standard error (docs/live.md).",
)
_METRICS = typer.Option(
    None,
    "--metrics",
    help="Serve metrics to Prometheus at this address while it runs, such as 127.0.0.1:9464 (docs/metrics.md).",
)


def run(
    context: typer.Context,
    platform: list[str] = PLATFORM,
    build: list[str] = _WITH,
    workload: list[str] = _WORKLOAD,
    profile: str = _PROFILE,
    scale: Scale | None = _SCALE,
    blocks: int | None = typer.Option(None, "--blocks", help="Run exactly this many blocks."),
    budget: str | None = typer.Option(None, "--time", help="Run as many blocks as fit: 90s, 5m, 1h30m."),
    precision: str | None = _PRECISION,
    design: Design | None = _DESIGN,
    margin: list[str] = _MARGIN,
    seed: int | None = SEED,
    cpus: str | None = CPUS,
    cpu_quota: float | None = _CPU_QUOTA,
    memory: str = MEMORY,
    data_size: str | None = _DATA_SIZE,
    subnet: str | None = SUBNET,
    client: str | None = _CLIENT,
    tune: bool = _TUNE,
    output: Path | None = typer.Option(None, "-o", "--output", help="Campaign file. Default: tare-DATE-TIME.tare"),
    resume: Path | None = typer.Option(None, "--resume", help="Run what is missing of this campaign file."),
    more: str | None = typer.Option(
        None, "--more", help="Measure this much longer in the campaign of FILE, where it helps most: --more 10m FILE."
    ),
    files: list[Path] | None = typer.Argument(None, metavar="[FILE]", help="The campaign to continue, for --more."),
    trust: bool = TRUST,
    progress: ProgressStyle = _PROGRESS,
    metrics: str | None = _METRICS,
    as_json: bool = typer.Option(False, "--json", help="Print the report as JSON (schema tare.report/2)."),
    command: list[str] = command_line.COMMAND,
    shell: bool = command_line.SHELL,
    name: list[str] = command_line.NAME,
    folder: Path | None = command_line.FOLDER,
    image: str | None = command_line.IMAGE,
    package: list[str] = command_line.PACKAGE,
    scan: list[str] = command_line.SCAN,
    warmup: int = command_line.WARMUP,
    prepare: str | None = command_line.PREPARE,
    cleanup: str | None = command_line.CLEANUP,
    runs: int | None = command_line.RUNS,
    ignore_failure: bool = command_line.IGNORE_FAILURE,
    env: list[str] = command_line.ENV,
    time_limit: str = command_line.TIME_LIMIT,
) -> None:
    """Measure what platforms cost against bare metal, and print the table.

    Behind -- stands a command of your own, which is measured in place of tare's workloads.

    Every block starts each platform fresh, the baseline twice, in random order. Each trial is in the campaign file
    before the next begins; the HTML report is written beside it. Ctrl-C finishes the trial under way and ends; a
    second one ends now.
    """
    progress_options = ProgressOptions(progress, metrics)
    options = given.options(context, besides={"resume", "more", "files", "trust", "progress", "metrics", "as_json"})
    options += ["command"] if command_line.words(context) else []
    if more is not None or files:
        file, more_s = _more(more, files or [], resume)
        _resume(file, options, progress_options, trusted=trust, as_json=as_json, more_s=more_s)
        return
    if resume is not None:
        _resume(resume, options, progress_options, trusted=trust, as_json=as_json)
        return
    if trust:
        raise UsageError("--trust is for an existing file", fix="give it with --resume, or leave it out")
    own = command_line.Given(
        command,
        shell,
        name,
        folder,
        image,
        package,
        scan,
        warmup,
        prepare,
        cleanup,
        runs,
        ignore_failure,
        env,
        time_limit,
    )
    commands = command_line.workloads(context, own)
    if commands and (profile in feature_profiles() or profile in PRESETS):
        problem = f"the profile {profile} has workloads of its own, and a command is another one"
        raise UsageError(problem, fix="leave --profile out, or give quick or full")
    request = CampaignRequest(
        platforms=[*platform, *given.builds(build)],
        workloads=workload,
        programs=commands,
        params=command_line.rounds(own, commands),
        profile=profile,
        blocks=blocks,
        budget_s=parse_time(budget) if budget is not None else None,
        seed=seed,
        cpus=parse_cpus(cpus),
        cpu_quota=cpu_quota,
        memory_bytes=parse_memory(memory),
        data_bytes=parse_size(data_size) if data_size is not None else None,
        subnet=subnet,
        client=client,
        tune=tune,
        margins=parse_margins(margin),
        precision=parse_precision(precision) if precision is not None else None,
    )
    new_file = output or Path(time.strftime("tare-%Y%m%d-%H%M%S.tare"))
    _begin(ordered(request, scale, design), new_file, progress_options, as_json=as_json)


run.command_class = command_line.WithCommand  # type: ignore[attr-defined]
run.__doc__ = f"{inspect.cleandoc(run.__doc__ or '')}\n\n{_EXAMPLES}"


def _begin(request: CampaignRequest, file: Path, progress_options: ProgressOptions, *, as_json: bool) -> None:
    request.check()
    given.require_platforms(request.platforms)
    given.require_workloads(request.workloads)
    outputs.check_new_campaign(file)
    outputs.check_new(outputs.page_of(file), f"the page of {file}")

    from tare.cli.run import measure

    measure(request, file, progress_options, as_json=as_json)


def _more(more: str | None, files: list[Path], resume: Path | None) -> tuple[Path, float]:
    """The file and the seconds of ``--more``. Raises `UsageError` where one of them is missing."""
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


def _resume(
    file: Path,
    options: list[str],
    progress_options: ProgressOptions,
    *,
    trusted: bool,
    as_json: bool,
    more_s: float | None = None,
) -> None:
    if options:
        how = "--resume" if more_s is None else "--more"
        raise UsageError(
            f"{how} continues as planned and accepts no {' and no '.join(options)}", fix=f"give {how} alone"
        )
    outputs.require_campaign(file)
    outputs.check_page(outputs.page_of(file), [file])

    from tare.cli.run import go_on

    go_on(file, progress_options, trusted=trusted, as_json=as_json, more_s=more_s)
