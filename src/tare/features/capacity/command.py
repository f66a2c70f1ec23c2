"""tare capacity: how many fit, what to reserve, what it costs."""

from __future__ import annotations

import inspect
import time
from pathlib import Path

import typer

from tare import outputs
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.capacity_model import CAPACITY, FILLED, PRICES_FIX
from tare.cli.choices import ProgressOptions, ProgressStyle
from tare.cli.commands import given
from tare.cli.commands.instances import CPUS, PLATFORM, SEED, SUBNET, parse_cpus
from tare.cli.quantities import parse_limits, parse_memory, parse_mix, parse_share, parse_time
from tare.errors import UsageError
from tare.inputs import require_file

#: Blocks of a run that was given neither blocks nor a time: fills of each platform.
BLOCKS = 4
#: Instances of a run that was given no number: enough to predict from, and more than any fill.
MOST, FILL_MOST = 64, 100_000
_EXAMPLES = """Examples:

[cyan]tare capacity -p runc -p docker -p gvisor -o fit.tare[/]   predicts from a quarter of what fits, in minutes

[cyan]tare capacity -p runc --budget 2G --fill[/]        and fills: as if the host had 2 GiB for them

[cyan]tare capacity -p docker --fill --limit start-p99=2s --limit failures=1%[/]

[cyan]tare capacity --reserve-yaml fit.tare[/]          a RuntimeClass for each platform of that file
"""

_APP = typer.Option(
    None,
    "--app",
    help="An application of yours (docs/applications-own.md) that is in service in each instance. Default: tare's agent"
    " alone, which waits.",
)
_MIX = typer.Option(
    None,
    "--mix",
    help="How many of the instances are at work at any moment: idle=80%,active=20%. Each works on prime numbers, all at"
    " once; how much of its work alone one keeps is the limit keep. Default: all are idle.",
)
_FILL = typer.Option(
    False, "--fill", help="Add instances until a limit breaks or the host is full, and say how many it held."
)
_LIMIT = typer.Option(
    [],
    "--limit",
    help="Stop a fill there: start-p99=2s, failures=1%, keep=90%, psi-memory=10%, psi-cpu=50%; may be given again."
    " An instance or application that ends by itself and a process killed for want of memory always end it.",
)
_RESERVE = typer.Option(
    "10%", "--reserve", help="Share of the host's memory, threads, files and disk that no fill touches."
)
_BUDGET = typer.Option(
    None, "--budget", help="Memory that the instances may take, as if the host had no more for them: 2G, 512M."
)
_MEMORY = typer.Option("512M", "--memory", help="Memory limit of each instance; a machine's guest has as much.")
_MOST = typer.Option(None, "--most", help="Most instances at once. Default: 64; with --fill as many as the host holds.")
_PRICES = typer.Option(
    None, "--prices", help="A price file (docs/examples/prices.toml): what an instance costs a month on its host."
)
_ONE_SHOT = typer.Option(
    False, "--one-shot", help="Measure one-shot commands too (whole-life): with --prices what a thousand of them cost."
)
_YAML = typer.Option(
    None,
    "--reserve-yaml",
    metavar="FILE",
    help="Measure nothing: print the RuntimeClass of each platform of this campaign file.",
)


def capacity(
    context: typer.Context,
    platform: list[str] = PLATFORM,
    app: Path | None = _APP,
    mix: str | None = _MIX,
    fill: bool = _FILL,
    limit: list[str] = _LIMIT,
    reserve: str = _RESERVE,
    budget: str | None = _BUDGET,
    memory: str = _MEMORY,
    most: int | None = _MOST,
    blocks: int | None = typer.Option(None, "--blocks", help=f"Fills of each platform. Default: {BLOCKS}."),
    length: str | None = typer.Option(None, "--time", help="As many blocks as fit: 10m, 1h."),
    cpus: str | None = CPUS,
    seed: int | None = SEED,
    subnet: str | None = SUBNET,
    output: Path | None = typer.Option(None, "-o", "--output", help="Campaign file. Default: capacity-DATE-TIME.tare"),
    progress: ProgressStyle = typer.Option(
        ProgressStyle.AUTO, "--progress", help="auto: drawn on a terminal, else a line a block. json: an object a line."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the report as JSON (schema tare.report/2)."),
    prices: Path | None = _PRICES,
    one_shot: bool = _ONE_SHOT,
    reserve_yaml: Path | None = _YAML,
) -> None:
    """Say how many instances fit on this host, what runs out first, and what to reserve for each.

    Idle instances are added in steps up to a quarter of what fits. At every step memory, CPU time, threads and files
    are measured, and from them how many fit is predicted. Go on with a run that was ended: tare run --resume FILE.
    """
    if reserve_yaml is not None:
        others = given.options(context, besides={"reserve_yaml"})
        if others:
            raise UsageError(f"--reserve-yaml accepts no {' and no '.join(others)}", fix="give --reserve-yaml alone")
        outputs.require_campaign(reserve_yaml)

        from tare.features.capacity.run import print_yaml

        print_yaml(reserve_yaml)
        return
    limits = parse_limits(limit)
    if limits and not fill:
        raise UsageError("--limit is for --fill", fix="add --fill")
    if most is not None and most < 2:
        raise UsageError(f"--most {most} predicts nothing", fix="give 2 or more; 64 is usual")
    budget_bytes = parse_memory(budget) if budget is not None else 0
    if budget is not None and budget_bytes <= 0:
        raise UsageError(f"--budget {budget} has room for no instance", fix="give some memory: --budget 2G")
    params = {
        "most": most or (FILL_MOST if fill else MOST),
        "time_s": 30,
        "fill": fill,
        "reserve": parse_share(reserve, "a reserve", "10%"),
        "budget_bytes": budget_bytes,
        "active": parse_mix(mix) if mix is not None else 0.0,
        **limits,
    }
    request = CampaignRequest(
        platforms=platform,
        workloads=[CAPACITY if app is None else f"{FILLED}{app}", *(["whole-life"] if one_shot else [])],
        params={CAPACITY: params},
        blocks=blocks if blocks is not None or length is not None else BLOCKS,
        budget_s=parse_time(length) if length is not None else None,
        seed=seed,
        cpus=parse_cpus(cpus),
        memory_bytes=parse_memory(memory),
        subnet=subnet,
        precision=0,
    )
    file = output or Path(time.strftime("capacity-%Y%m%d-%H%M%S.tare"))
    request.check()
    if prices is not None:
        require_file(prices, PRICES_FIX)
    given.require_platforms(request.platforms)
    given.require_workloads(request.workloads)
    outputs.check_new_campaign(file)
    outputs.check_new(outputs.page_of(file), f"the page of {file}")

    from tare.features.capacity.run import run

    run(request, file, ProgressOptions(progress, None), price_file=prices, as_json=as_json)


capacity.__doc__ = f"{inspect.cleandoc(capacity.__doc__ or '')}\n\n{_EXAMPLES}"
