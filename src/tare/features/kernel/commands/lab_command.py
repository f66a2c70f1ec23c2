"""tare lab: a throwaway virtual machine that is a host of its own, for what this host does not run."""

from __future__ import annotations

from pathlib import Path

import typer

from tare import inputs, outputs
from tare.campaign.plan.campaign_request import check_memory
from tare.cli.quantities import parse_size, parse_time
from tare.features.kernel.lab.fixes import CHANGELOG

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    help="A throwaway virtual machine that is a host of its own, with tare in it: with a working /dev/kvm, or as a Xen "
    "dom0. It works without KVM here too, by emulation: functions are verified there, speeds are not.",
)

_RUN_EXAMPLES = """Examples:

[cyan]tare lab run -- uname -a[/]

[cyan]tare lab run -- tare doctor[/]                                     what that host can run

[cyan]tare lab run --file ./firecracker -- tare doctor[/]                with a program of yours on PATH

[cyan]tare lab run --flavour xen -- xl info[/]

[cyan]tare lab run --host debian12 -- tare doctor[/]                 Debian as its users have it

[cyan]tare lab run --out results -- tare run -p qemu --blocks 1 -o /lab/out/kvm.tare[/]
"""


@app.command("run")
def run(
    command: list[str] = typer.Argument(..., help="The command, after --. It runs as root in /lab/checkout."),
    flavour: str = typer.Option(
        "kvm", "--flavour", help="kvm (has /dev/kvm), xen (a Xen dom0), lines (kvm, and its kernel counts its lines)."
    ),
    host: str = typer.Option(
        "",
        "--host",
        help="In place of a flavour, a stock host: a whole system with its own init. debian12, debian13, "
        "debian12-minimal, debian13-minimal.",
    ),
    memory: str = typer.Option("4G", "--memory", help="Memory of the machine: 4G, 3000M."),
    cpus: int = typer.Option(2, "--cpus", help="Its processors."),
    time_limit: str = typer.Option("30m", "--time-limit", help="Stop the command after this time: 90s, 30m, 2h."),
    file: list[Path] = typer.Option([], "--file", help="A file of this host, to be on PATH there; may be given again."),
    out: Path | None = typer.Option(None, "--out", help="Folder here for what the command leaves in /lab/out."),
) -> None:
    """Boot a lab, run a command in it, and end as the command ends. Nothing of the lab stays.

    Output is shown as it comes. Exit code: the command's; 124 when its time was over; 128 and the signal's number.
    """
    memory_bytes = parse_size(memory)
    check_memory(memory_bytes)
    time_limit_s = parse_time(time_limit)
    if out is not None:
        outputs.check_empty_folder(out)

    from tare.features.kernel.commands.lab_run import run_in_lab
    from tare.features.kernel.lab.forwarded_run import LabCommand

    name = host or flavour
    lab_command = LabCommand(command, name, memory_bytes, cpus, time_limit_s=time_limit_s, files=file, results=out)
    raise typer.Exit(run_in_lab(lab_command))


run.__doc__ = f"{run.__doc__}\n\n{_RUN_EXAMPLES}"


@app.command("build")
def build(
    flavour: list[str] = typer.Option(
        [], "--flavour", help="kvm, xen or lines; may be given again. Default: all but lines, whose kernel takes long."
    ),
    host: list[str] = typer.Option(
        [], "--host", help="A stock host: debian12, debian13, debian12-minimal, debian13-minimal; may be given again."
    ),
) -> None:
    """Make what the lab consists of, below TARE_HOME/lab, and say what it takes. Quick when it is there.

    The flavour lines has a kernel that is compiled here, which takes some 20 minutes of two processors.

    Examples: [cyan]tare lab build[/], [cyan]tare lab build --flavour lines[/], [cyan]tare lab build --host debian12[/]
    """
    from tare.features.kernel.commands.lab_run import build_labs

    build_labs([*flavour, *host])


@app.command("sources")
def sources(
    folder: Path = typer.Argument(..., help="A new folder: gets linux, the tree, and functions.csv."),
) -> None:
    """Unpack the sources of the kernel that counts its lines, for the page of a report; the kernel is built if need be.

    Example: [cyan]tare lab sources kernel[/],
    [cyan]tare report lines.tare --html page.html --sources kernel/linux --functions kernel/functions.csv[/]
    """
    outputs.check_new(folder)

    from tare.features.kernel.commands.lab_run import unpack_sources

    unpack_sources(folder)


@app.command("weights")
def weights(
    file: Path = typer.Argument(..., help="A new file, TOML."),
    changelog: Path = typer.Option(
        CHANGELOG, "--changelog", help="Of Debian's kernel, as each of its packages has it."
    ),
) -> None:
    """Weights for a report's attack profile: fixed CVEs a line of the kernel, by directory and file.

    From the changelog of Debian's kernel: its changes' titles say where each was. A weighted sum over the lines that a
    platform ran is how many of those CVEs they would have, were each spread evenly over the place that it was in.

    Example: [cyan]tare lab weights cves.toml[/], [cyan]tare report lines.tare --html page.html --weights cves.toml[/]
    """
    outputs.check_new(file)
    inputs.require_file(changelog)

    from tare.features.kernel.commands.lab_run import write_weights

    write_weights(file, changelog)
