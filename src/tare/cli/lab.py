"""tare lab: a throwaway virtual machine that is a host of its own, for what this host does not run."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import typer
from rich.console import Console

from tare.campaign.plan import parse_time
from tare.errors import UsageError
from tare.image.places import Progress
from tare.lab import build as lab_build
from tare.lab import fixes, kernel, recipe
from tare.lab import run as lab_run
from tare.lab.run import Order

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="A throwaway virtual machine that is a host of its own, with tare in it: with a working /dev/kvm, or as a Xen "
    "dom0. It works without KVM here too, by emulation: functions are verified there, speeds are not.",
)

_RUN_EXAMPLES = """Examples:

[cyan]tare lab run -- uname -a[/]

[cyan]tare lab run -- tare doctor[/]                                     what that host can run

[cyan]tare lab run --file ./firecracker -- tare doctor[/]                with a program of yours on PATH

[cyan]tare lab run --flavour xen -- xl info[/]

[cyan]tare lab run --out results -- tare run -p qemu --blocks 1 -o /lab/out/kvm.tare[/]
"""


@app.command("run")
def run(
    command: list[str] = typer.Argument(..., help="The command, after --. It runs as root in /lab/checkout."),
    flavour: str = typer.Option(
        "kvm", "--flavour", help="kvm (has /dev/kvm), xen (a Xen dom0), lines (kvm, and its kernel counts its lines)."
    ),
    memory: str = typer.Option("4G", "--memory", help="Memory of the machine: 4G, 3000M."),
    cpus: int = typer.Option(2, "--cpus", help="Its processors."),
    time_limit: str = typer.Option("30m", "--time-limit", help="The command is ended then: 90s, 30m, 2h."),
    file: list[Path] = typer.Option([], "--file", help="A file of this host, to be on PATH there; may be given again."),
    out: Path | None = typer.Option(None, "--out", help="Folder here for what the command leaves in /lab/out."),
) -> None:
    """Boot a lab, run a command in it, and end as the command ends. Nothing of the lab stays.

    Output is shown as it comes. Exit code: the command's; 124 when its time was over; 128 and the signal's number.
    """
    order = Order(command, flavour, parse_size(memory), cpus, parse_time(time_limit), file, out)
    raise typer.Exit(lab_run.run(order, _output, _progress()))


run.__doc__ = f"{run.__doc__}\n\n{_RUN_EXAMPLES}"


@app.command("build")
def build(
    flavour: list[str] = typer.Option(
        [], "--flavour", help="kvm, xen or lines; may be given again. Default: all but lines, whose kernel takes long."
    ),
) -> None:
    """Make what the lab consists of, below TARE_HOME/lab, and say what it takes. Quick when it is there.

    The flavour lines has a kernel that is compiled here, which takes some 20 minutes of two processors.

    Examples: [cyan]tare lab build[/], [cyan]tare lab build --flavour lines[/]
    """
    for one in flavour or recipe.load().hosts:
        lab_run.ensure(one, _progress(), renew=True)
    console = Console(highlight=False)
    for name, size in lab_build.built().items():
        console.print(f"{name:<28} {size / 2**20:6,.0f} MiB", markup=False)


@app.command("sources")
def sources(
    folder: Path = typer.Argument(..., help="A new folder: gets linux, the tree, and functions.csv."),
) -> None:
    """Unpack the sources of the kernel that counts its lines, for the page of a report; the kernel is built if need be.

    Example: [cyan]tare lab sources kernel[/],
    [cyan]tare report lines.tare --html page.html --sources kernel/linux --functions kernel/functions.csv[/]
    """
    if folder.exists():
        raise UsageError(f"{folder} exists and is never overwritten", fix="give another name")
    counting = kernel.ensure("lines", _progress())
    assert counting is not None, "that flavour has a kernel of its own"
    counting.unpack_sources(folder / "linux")
    shutil.copyfile(counting.functions, folder / "functions.csv")


@app.command("weights")
def weights(
    file: Path = typer.Argument(..., help="A new file, TOML."),
    changelog: Path = typer.Option(
        fixes.CHANGELOG, "--changelog", help="Of Debian's kernel, as each of its packages has it."
    ),
) -> None:
    """Weights for a report's attack profile: fixed CVEs a line of the kernel, by directory and file.

    From the changelog of Debian's kernel: its changes' titles say where each was. A weighted sum over the lines that a
    platform ran is how many of those CVEs they would have, were each spread evenly over the place that it was in.

    Example: [cyan]tare lab weights cves.toml[/], [cyan]tare report lines.tare --html page.html --weights cves.toml[/]
    """
    if file.exists():
        raise UsageError(f"{file} exists and is never overwritten", fix="give another name")
    history = fixes.read(changelog)
    counting = kernel.ensure("lines", _progress())
    assert counting is not None, "that flavour has a kernel of its own"
    lines = {path: len(numbers) for path, numbers in counting.lines().items()}
    found = fixes.densities(history, lines, counting.config)
    file.write_text(fixes.as_toml(found), encoding="utf-8")
    said = f"{found.found} of {found.of} CVEs are in code of this kernel, {len(found.by_path)} places"
    Console(highlight=False).print(said, markup=False)


def parse_size(text: str) -> int:
    """Bytes from 4G or 3000M. Raises `UsageError`."""
    found = re.fullmatch(r"(\d+)([MG])", text)
    if found is None:
        raise UsageError(f"{text!r} is not an amount of memory", fix="write 4G or 3000M")
    return int(found[1]) << (30 if found[2] == "G" else 20)


def _progress() -> Progress:
    console = Console(stderr=True, highlight=False)
    return lambda what: console.print(f"lab: {what}", markup=False, style="dim", soft_wrap=True)


def _output(channel: int, data: bytes) -> None:
    stream = sys.stdout.buffer if channel == 1 else sys.stderr.buffer
    stream.write(data)
    stream.flush()
