"""Options of commands that start instances, and their parsers."""

from __future__ import annotations

import contextlib
import re

import typer

from tare.campaign.plan.campaign_request import ALL, DEFAULT_MEMORY
from tare.cli.commands import names
from tare.errors import UsageError
from tare.host.kernel import cpulist

#: Numbers and ranges of them; `int` takes more than these.
_CPU_LIST = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*", re.ASCII)


def platform_names(incomplete: str) -> list[str]:
    """For the shell's completion: platforms whose names begin so."""
    from tare.platforms import platform_registry

    return [name for name in (*platform_registry.all_platforms(), ALL) if name.startswith(incomplete)]


PLATFORM = typer.Option(
    [],
    "-p",
    "--platform",
    autocompletion=platform_names,
    callback=names.platforms,
    help="Platforms, by name: runc,docker; may be given again. all: every one that runs here. native always takes part."
    " Default: docker, gvisor and runc.",
)
SEED = typer.Option(None, "--seed", help="Seed of all random orders. Default: drawn, and recorded.")
CPUS = typer.Option(
    None,
    "--cpus",
    help="Host CPUs for the instances, by number: 1 or 2,3 or 2-5,8. Default: a thread of each core but the first"
    " quarter's; of two both. Probes are on the last of them.",
)
MEMORY = typer.Option(
    f"{DEFAULT_MEMORY >> 20}M",
    "--memory",
    help="Memory limit of an instance: 2G, 512M (GB and GiB are G); a number alone is in MiB.",
)
SUBNET = typer.Option(None, "--subnet", help="Subnet of tare's bridge. Default: a free one.")


def parse_cpus(text: str | None) -> tuple[int, ...]:
    """CPU numbers from a text such as ``1`` or ``2-5,8``, in any order; none of None. Raises `UsageError`."""
    if text is None:
        return ()
    if _CPU_LIST.fullmatch(text):
        with contextlib.suppress(ValueError):
            return tuple(sorted({cpu for part in text.split(",") for cpu in cpulist.parse(part)}))
    raise UsageError(f"{text[:100]!r} is not a list of CPUs", fix="write 1 or 2,3 or 2-5,8")
