"""tare fleet run, status, fetch, clean, playbook: campaigns on many hosts by Ansible."""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from tare.cli.commands import command_line
from tare.errors import UsageError

#: Of `tare run`: what the fleet itself gives, or what has no meaning on a host that nobody looks at.
NOT_FOR_HOSTS = {"output", "resume", "more", "files", "trust", "progress", "metrics", "as_json"}

INVENTORY = typer.Option(
    [],
    "-i",
    "--inventory",
    help="An inventory of Ansible's: a file, a folder, or hosts: a.example,b.example. May be given again.",
)
LIMIT = typer.Option("", "--limit", metavar="PATTERN", help="Only these hosts, as Ansible's --limit has it.")
FORKS = typer.Option(50, "--forks", min=1, max=500, help="Hosts that work at a time; the others wait.")
FOLDER = typer.Option(None, "-o", "--output", help="The fleet's folder. Default of run: fleet-DATE-TIME.")
JSON = typer.Option(False, "--json", help="Print JSON (schema tare.fleet-hosts/1).")


_TARE = "tare"
RUNTIME_CLASS = typer.Option(
    [], "--runtime-class", metavar="CLASS,...", help="Measure pods of these runtime classes: -p kubernetes:CLASS each."
)
IMAGE = typer.Option("", "--image", help="Image of the Jobs' pods, with a shell and nsenter: debian:12.")
TARE = typer.Option(_TARE, "--tare", metavar="PATH", help="The program tare on the nodes.")
NAMESPACE = typer.Option(_TARE, "--namespace", help="A new namespace for this fleet alone.")


def run(
    context: typer.Context,
    inventory: list[str] = INVENTORY,
    folder: Path | None = FOLDER,
    limit: str = LIMIT,
    forks: int = FORKS,
    look: int = typer.Option(30, "--look", min=5, max=3600, help="Seconds between two looks at a host's progress."),
    kubernetes: bool = typer.Option(
        False, "--kubernetes", help="Run on the nodes of the Kubernetes cluster that kubectl reaches, by a Job each."
    ),
    selector: str = typer.Option("", "--selector", metavar="LABELS", help="Only nodes with these labels."),
    runtime_class: list[str] = RUNTIME_CLASS,
    image: str = IMAGE,
    tare: str = TARE,
    namespace: str = NAMESPACE,
    as_json: bool = JSON,
) -> None:
    """Run a campaign on every host of an inventory, and fetch a file of each. Behind -- stand options of tare run.

    Each host gets tare, its packages and the image where it lacks them, starts the campaign by itself, and goes on
    with it whatever becomes of this machine. The same command with the same folder goes on: it starts nothing twice,
    resumes what was killed and fetches what is complete.

    Exit codes: 0 every host's file is here, 2 some host failed, with its reason.

    Examples: [cyan]tare fleet run -i hosts.ini -o night -- -p runc -p gvisor -w startup --time 20m[/],
    [cyan]tare fleet run -o night[/]
    """
    words = command_line.words(context)
    place = (folder or Path(time.strftime("fleet-%Y%m%d-%H%M%S"))).absolute()
    if kubernetes:
        if inventory or limit:
            raise UsageError("--kubernetes has the cluster's nodes as its hosts", fix="--selector chooses among them")
        _run_on_cluster(place, selector, runtime_class, image, tare, namespace, words, look, as_json=as_json)
        return
    if selector or runtime_class or image or tare != _TARE or namespace != _TARE:
        raise UsageError("--selector, --runtime-class, --image, --tare and --namespace are of --kubernetes")
    if not inventory and folder is None:
        raise UsageError("no hosts are named", fix="tare fleet run -i hosts.ini -- -p runc, or -o FOLDER to continue")
    check_words(words)

    from tare.cli.fleet_run import run as play
    from tare.fleet.playing import Inventory

    play(place, Inventory(tuple(inventory), limit), words, forks=forks, wait_s=look, as_json=as_json)


def manifest(
    context: typer.Context,
    node: list[str] = typer.Option([], "--node", metavar="NAME", help="A node; may be given again."),
    runtime_class: list[str] = RUNTIME_CLASS,
    image: str = IMAGE,
    tare: str = TARE,
    namespace: str = NAMESPACE,
) -> None:
    """Print a Kubernetes manifest: a Job for each node runs a campaign there. Behind -- stand options of tare run.

    Each node needs tare and containerd. Its result is in /var/lib/tare-fleet there; kubectl delete -f removes all else.

    Example: [cyan]tare fleet manifest --node node1 --image debian:12 --runtime-class gvisor -- -w startup[/]
    """
    plan = _plan(tuple(node), runtime_class, image, tare, namespace, command_line.words(context))
    if plan is None:
        raise UsageError("the manifest has no nodes, image or platforms", fix=_EXAMPLE)

    from tare.cli.fleet_run import manifest as print_it

    print_it(plan)


_EXAMPLE = "tare fleet manifest --node node1 --image debian:12 --runtime-class gvisor"


def _plan(
    nodes: Sequence[str], runtime_class: Sequence[str], image: str, tare: str, namespace: str, words: Sequence[str]
) -> Any:
    """Return the plan of a cluster's fleet; None if nothing is given but the folder. Raises `UsageError`."""
    from tare.fleet import cluster_objects

    if not (runtime_class or image or words):
        return None
    meant = [*cluster_objects.classes(runtime_class), *words]
    if not nodes:
        raise UsageError("no nodes are named", fix=_EXAMPLE)
    if not image:
        raise UsageError("no image is named for the Jobs' pods", fix="--image debian:12, or any with sh and nsenter")
    if not meant:
        raise UsageError("no platform is named that a Job could measure", fix="--runtime-class gvisor, or -- -p runc")
    check_words(meant)
    return cluster_objects.ClusterPlan(tuple(nodes), image, tuple(meant), namespace, tare)


def _run_on_cluster(
    place: Path,
    selector: str,
    runtime_class: Sequence[str],
    image: str,
    tare: str,
    namespace: str,
    words: Sequence[str],
    look: int,
    *,
    as_json: bool,
) -> None:
    from tare.cli.fleet_run import run_on_cluster
    from tare.fleet import cluster

    asked = bool(runtime_class or image or words)
    plan = _plan(cluster.nodes(selector), runtime_class, image, tare, namespace, words) if asked else None
    run_on_cluster(place, plan, look_s=look, as_json=as_json)


def status(
    folder: Path = typer.Argument(..., help="The folder of tare fleet run."), forks: int = FORKS, as_json: bool = JSON
) -> None:
    """Print how each host of a fleet stands.

    Exits 0 when all files are here, 3 while some host runs, 2 if one failed.

    Example: [cyan]tare fleet status night[/]
    """
    from tare.cli.fleet_run import status as show

    show(folder.absolute(), forks=forks, as_json=as_json)


def fetch(
    folder: Path = typer.Argument(..., help="The folder of tare fleet run."), forks: int = FORKS, as_json: bool = JSON
) -> None:
    """Fetch the files of the hosts that are done, without starting or waiting for anything.

    Exits as tare fleet status does.

    Example: [cyan]tare fleet fetch night[/]
    """
    from tare.cli.fleet_run import fetch as take

    take(folder.absolute(), forks=forks, as_json=as_json)


def clean(
    folder: Path | None = typer.Argument(None, help="The folder of tare fleet run, in place of an inventory."),
    inventory: list[str] = INVENTORY,
    limit: str = LIMIT,
    force: bool = typer.Option(False, "--force", help="Also campaigns that were not fetched."),
    forks: int = FORKS,
    as_json: bool = JSON,
) -> None:
    """Remove from the hosts what fleets brought: tare, packages, runs, and the image where a fleet brought it.

    A host on which a campaign runs, or whose campaign was not fetched (--force), keeps everything, and says so. Of a
    fleet on a Kubernetes cluster the folder is named: its objects are deleted, and its campaigns on the nodes.

    Examples: [cyan]tare fleet clean -i hosts.ini[/], [cyan]tare fleet clean night[/]
    """
    if folder is not None and (inventory or limit):
        raise UsageError("a folder and an inventory are named", fix="name one: tare fleet clean -i hosts.ini")
    if folder is None and not inventory:
        raise UsageError("no hosts are named", fix="tare fleet clean -i hosts.ini, or a fleet's folder")

    from tare.cli.fleet_run import clean as remove
    from tare.cli.fleet_run import clean_folder
    from tare.fleet.playing import Inventory

    if folder is not None:
        clean_folder(folder.absolute(), forks=forks, force=force, as_json=as_json)
        return
    remove(Inventory(tuple(inventory), limit), forks=forks, force=force, as_json=as_json)


def playbook(
    context: typer.Context,
    folder: Path = typer.Argument(..., help="A new folder."),
) -> None:
    """Write the playbook, and all that it brings, for those who run Ansible themselves.

    Behind -- stand options of tare run.

    Example: [cyan]tare fleet playbook plays -- -p runc -w startup[/]
    """
    words = command_line.words(context)
    check_words(words)

    from tare.cli.fleet_run import write_playbook

    write_playbook(folder, words)


def check_words(words: Sequence[str]) -> None:
    """Raise `UsageError` unless `tare run` takes these options: a mistake is found before any host is reached."""
    if not words:
        return

    from tare.cli.commands.app import load
    from tare.cli.commands.given import options

    command: Any = load("run")
    context = command.make_context("tare run", list(words))
    meant = set(options(context, besides={name.name for name in command.params} - NOT_FOR_HOSTS))
    if meant:
        raise UsageError(
            f"{' and '.join(sorted(meant))} is not for a fleet: {shlex.join(words)}",
            fix="give the options that say what to measure; the fleet gives each host its file",
        )


def add(app: typer.Typer) -> None:
    """Put these commands into the group."""
    app.command("run", cls=command_line.WithCommand)(run)
    app.command("status")(status)
    app.command("fetch")(fetch)
    app.command("clean")(clean)
    app.command("manifest", cls=command_line.WithCommand)(manifest)
    app.command("playbook", cls=command_line.WithCommand)(playbook)
