"""tare diff: what became of each figure, for people and for gates."""

from __future__ import annotations

from pathlib import Path

import typer

from tare.cli.choices import OpenPolicy
from tare.cli.commands.given import OPEN
from tare.errors import UsageError
from tare.inputs import require_file
from tare.outputs import check_new, require_campaign


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
    if platform and (len(platform) != 2 or len(files) != 1):
        raise UsageError("--platform compares two platforms of one campaign", fix="tare diff FILE -p docker -p podman")
    if not platform and len(files) != 2:
        raise UsageError("two campaigns are compared", fix="tare diff OLD NEW")
    if platform and absolute:
        raise UsageError("--absolute is for two campaigns: two platforms of one are compared themselves")
    if annotations and as_json:
        raise UsageError("--annotations and --json would be printed into each other", fix="give one of them")
    for file in files:
        require_campaign(file)
    if thresholds is not None:
        require_file(thresholds)
    for output in (markdown, junit, sarif):
        if output is not None:
            check_new(output)

    from tare.cli.diff import show_diff

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
    )
    raise typer.Exit(code)
