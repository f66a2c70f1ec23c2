"""`tare surface`: reads from live sandboxes what they may ask of the host's kernel."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import typer

from tare.cli.consent import agreed_to_add
from tare.cli.console import Console, emit
from tare.cli.exit_codes import ExitCode
from tare.cli.report import to_read
from tare.features.kernel.exchange.count_request import SurfaceRequest
from tare.features.kernel.execution import live
from tare.features.kernel.reading import call_tables
from tare.features.kernel.surface_report import surface_terminal as shown
from tare.features.kernel.surface_report.surface_parts import STUDY, surfaces_report, to_data
from tare.features.studies import literature
from tare.footprint_model import Surface
from tare.store import exists


def show_surfaces(request: SurfaceRequest, *, listed: bool, published: bool, trusted: bool, as_json: bool) -> None:
    """Print the requested surfaces. Exits 1 where none could be read. ``trusted``: see `tare.cli.consent`."""
    answer = agreed_to_add(request.file, trusted=trusted) if request.file is not None else ""
    with Console(stderr=True).status("") as status:
        result = live.carry_out(request, status.update, answer)
    study = literature.load(STUDY)
    left_out = [
        {"platform": omitted.platform, "reason": omitted.reason, "fix": omitted.fix or ""}
        for omitted in result.left_out
    ]
    if as_json:
        facts = {"kernel": call_tables.kernel(), "tables": f"Linux {call_tables.version()}"}
        emit(json.dumps(to_data(result.surfaces, left_out, facts, study), indent=2, ensure_ascii=False))
    else:
        _print(result.surfaces, left_out, beside=published, listed=listed)
        if request.file is not None and exists(request.file):
            emit(f"in {request.file}")
    if not result.surfaces:
        raise typer.Exit(ExitCode.NO)


def _print(surfaces: Sequence[Surface], left_out: Sequence[Mapping[str, str]], *, beside: bool, listed: bool) -> None:
    console = to_read()
    report = surfaces_report(surfaces)
    console.print(shown.render(report.surfaces))
    if beside and report.beside is not None:
        console.print(shown.published(report.beside))
    if listed:
        console.print(shown.listed(surfaces))
    for row in left_out:
        fix = f" (fix: {row['fix']})" if row["fix"] else ""
        console.print(f"left out: {row['platform']}: {row['reason']}{fix}", markup=False, soft_wrap=True)
