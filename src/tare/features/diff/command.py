"""tare diff: what became of each figure, for people and for gates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from tare.cli.choices import OpenPolicy
from tare.cli.commands.given import FORCE, OPEN
from tare.errors import UsageError
from tare.inputs import require_file
from tare.outputs import check_output, require_campaign

_PAIR = "tare diff FILE -p docker -p podman; tare diff OLD NEW has all platforms"


def diff(
    files: list[Path] = typer.Argument(..., metavar="OLD [NEW]", help="Two campaigns; with --platform twice, one."),
    platform: list[str] = typer.Option(
        [], "-p", "--platform", help="Twice: from the first platform to the second, within one campaign."
    ),
    thresholds: Path | None = typer.Option(
        None, "--thresholds", help="TOML: how much worse is a regression. Default: each workload's margin."
    ),
    absolute: bool = typer.Option(
        False, "--absolute", help="Compare the figures themselves, and not the overheads against the baseline."
    ),
    every: bool = typer.Option(False, "--all", help="Show every figure, not only those that changed or are open."),
    markdown: Path | None = typer.Option(None, "--markdown", help="Write Markdown here, for a pull request."),
    junit: Path | None = typer.Option(None, "--junit", help="Write JUnit's XML here, a test a figure."),
    sarif: Path | None = typer.Option(None, "--sarif", help="Write SARIF 2.1.0 here, for code scanning."),
    source: Path | None = typer.Option(
        None,
        "--source",
        help="The file of the repository that SARIF's results are shown at. Default: that of --thresholds.",
    ),
    force: bool = FORCE,
    annotations: bool = typer.Option(False, "--annotations", help="Print annotations of GitHub Actions too."),
    policy: OpenPolicy = OPEN,
    as_json: bool = typer.Option(False, "--json", help="Print JSON (schema tare.diff/1)."),
) -> None:
    """Say what became of each figure from one campaign to another, or from one platform to another.

    Exit codes: 0 no regression, 1 a regression, 3 nobody can tell (with what it would take; --open), 2 an error.

    Examples: [cyan]tare diff old.tare new.tare[/],
    [cyan]tare diff main.tare branch.tare --thresholds limits.toml --markdown diff.md --junit diff.xml[/],
    [cyan]tare diff night.tare -p docker -p podman[/]
    """
    _check(files, platform, absolute=absolute, annotations=annotations, as_json=as_json)
    for file in files:
        require_campaign(file)
    for given in (thresholds, source):
        if given is not None:
            require_file(given)
    if source is not None and sarif is None:
        raise UsageError("--source is for SARIF", fix="--sarif FILE, or leave --source out")
    place = None if sarif is None else source_of(source or thresholds)
    inputs = [*files, *(given for given in (thresholds, source) if given is not None)]
    for output in (markdown, junit, sarif):
        if output is not None:
            check_output(output, inputs, force=force)

    from tare.features.diff.run import show_diff

    code = show_diff(
        files,
        platform,
        thresholds,
        absolute=absolute,
        every=every,
        markdown=markdown,
        junit=junit,
        sarif=sarif,
        annotations=annotations,
        as_json=as_json,
        policy=policy,
        source=place,
        force=force,
    )
    raise typer.Exit(code)


def _check(files: Sequence[Path], platform: Sequence[str], *, absolute: bool, annotations: bool, as_json: bool) -> None:
    """Raise `UsageError` for arguments that do not go together."""
    if platform and (len(platform) != 2 or len(files) != 1):
        raise UsageError("--platform compares two platforms of one campaign", fix=_PAIR)
    if not platform and len(files) != 2:
        raise UsageError("two campaigns are compared", fix="tare diff OLD NEW")
    if platform and absolute:
        raise UsageError("--absolute is for two campaigns: two platforms of one are compared themselves")
    if annotations and as_json:
        raise UsageError("--annotations and --json would be printed into each other", fix="give one of them")


def source_of(file: Path | None) -> str:
    """The file of the repository that results are shown at, as SARIF names it: from the current folder.

    Raises `UsageError` where there is none: code scanning shows nothing of a file that no repository has.
    """
    if file is None:
        raise UsageError(
            "SARIF shows results at a file of the repository, and none is named",
            fix="--source FILE, or --thresholds FILE: one that is in the repository",
        )
    place = file.resolve()
    if not place.is_relative_to(Path.cwd()):
        raise UsageError(f"{file} is not below the current folder", fix="run tare diff in the repository")
    return place.relative_to(Path.cwd()).as_posix()
