"""tare report: what a campaign found."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import typer

from tare.errors import UsageError
from tare.extensions import ReportOption, report_options
from tare.inputs import require_file
from tare.outputs import check_new_campaign, check_page, require_campaign


def _print_schema(asked: bool) -> None:
    if asked:
        from tare.cli.console import emit
        from tare.report.formats.report_schema import text

        emit(text())
        raise typer.Exit


def _report(
    files: list[Path] = typer.Argument(..., help="Campaign files."),
    html: Path | None = typer.Option(None, "--html", help="Write the HTML report here (one file, opens offline)."),
    every_metric: bool = typer.Option(
        False, "--all", help="Before the answer: every figure of every metric, and what it is to be read with."
    ),
    cautions: bool = typer.Option(False, "--cautions", help="Print every caution, not only how many there are."),
    choose: str | None = typer.Option(
        None,
        "--choose",
        help="The platforms that fit, the best first: for=web (batch, functions, untrusted, database) sorts by what is"
        " run, with weights that disk*2 changes; cpu<10% start<300ms calls<300 daemon=no root=no leave others out.",
    ),
    options: Mapping[str, Any] = {},  # of features, which stand here
    share: Path | None = typer.Option(
        None,
        "--share",
        help="Write a copy here, without names of hosts and users, addresses and serials, and show that.",
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON (schema tare.report/2)."),
    schema: bool = typer.Option(  # noqa: ARG001 (its callback does it, before a file is asked for)
        False, "--schema", is_eager=True, callback=_print_schema, help="Print the JSON Schema of --json and exit."
    ),
) -> None:
    """Show what campaigns found: overhead against the baseline with its 95 % interval, verdict and noise floor.

    Examples: [cyan]tare report night.tare[/], [cyan]tare report night.tare --html night.html[/],
    [cyan]tare report night.tare --share shared.tare --html shared.html[/],
    [cyan]tare report night.tare --choose "for=web cpu<10% daemon=no"[/],
    [cyan]tare report night.tare --beside karna-2021[/], [cyan]tare report night.tare --json | jq .results[/]
    """
    inputs = [options[option.name] for option in report_options() if option.is_input and option.name in options]
    for file in inputs:
        require_file(file)
    for file in files:
        require_campaign(file)
    if html is not None:
        check_page(html, [*files, *inputs])
    if choose is not None:
        _check_used_alone(
            {
                "--json": as_json, "--html": html, "--all": every_metric, "--cautions": cautions,
                **{f"--{name}": value for name, value in options.items()},
            }
        )  # fmt: skip
    if share is not None:
        if len(files) != 1:
            raise UsageError("--share makes a copy of one campaign", fix="name one file")
        check_new_campaign(share)

        from tare.cli.share import share_copy

        share_copy(files[0], share)
        files = [share]

    if choose is not None:
        from tare.cli.report import show_choice

        show_choice(files, choose)
        return
    from tare.cli.report import show

    show(files, html=html, every_metric=every_metric, cautions=cautions, options=options, as_json=as_json)


def _check_used_alone(others: Mapping[str, object]) -> None:
    """Raise `UsageError` for an option of the report, beside --choose."""
    for option, value in others.items():
        if value:
            fix = f"leave {option} out{': the page has filters itself' if option == '--html' else ''}"
            raise UsageError(f"--choose prints no report, and {option} is of one", fix=fix)


def _with_options(command: Callable[..., None], options: list[ReportOption]) -> Callable[..., None]:
    """Return a command with the options in place of its parameter ``options``, which gets those that were given."""

    def carried_out(**values: Any) -> None:
        of_features = {option.name: values.pop(option.name) for option in options}
        command(**values, options={name: value for name, value in of_features.items() if value is not None})

    signature = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        parameters += map(_parameter, options) if parameter.name == "options" else [parameter]
    carried_out.__doc__ = command.__doc__
    carried_out.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    carried_out.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return carried_out


def _parameter(option: ReportOption) -> inspect.Parameter:
    def listed(incomplete: str) -> list[str]:
        module, _, function = option.choices.partition(":")
        names: list[str] = getattr(importlib.import_module(module), function)()
        return [name for name in names if name.startswith(incomplete)]

    default = typer.Option(
        None, f"--{option.name}", help=option.help, autocompletion=listed if option.choices else None
    )
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(option.name, kind, default=default, annotation=option.takes | None)


report = _with_options(_report, report_options())
