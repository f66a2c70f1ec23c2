"""What `tare surface` does: reads from live sandboxes what they may ask of the host's kernel."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import typer

from tare import literature
from tare.campaign.order import ALL
from tare.cli.console import Console, emit
from tare.cli.report import to_read
from tare.footprint import calls, live
from tare.footprint.live import Looked
from tare.footprint.model import Surface
from tare.model import Progress
from tare.platforms import registry
from tare.platforms.base import Platform
from tare.report import surface_terminal as shown
from tare.report.surfaces import STUDY, surfaces_report, to_data


def show_surfaces(
    names: Sequence[str],
    pids: Sequence[int],
    output: Path | None,
    *,
    listed: bool,
    published: bool,
    as_json: bool,
) -> None:
    """Print the surfaces of platforms, or of processes that run already. Exits 1 where there is none."""
    found: list[Surface] = []
    left_out: list[dict[str, str]] = []
    with Console(stderr=True).status("") as status:
        for one in _looked(names, pids, output, status.update):
            if one.surface is not None:
                found.append(one.surface)
            else:
                left_out.append({"platform": one.platform, "reason": one.reason, "fix": one.fix})
    study = literature.load(STUDY)
    if as_json:
        facts = {"kernel": calls.kernel(), "tables": f"Linux {calls.version()}"}
        emit(json.dumps(to_data(found, left_out, facts, study), indent=2, ensure_ascii=False))
    else:
        _print(found, left_out, beside=published, listed=listed)
        if output is not None and output.exists():
            emit(f"in {output}")
    if not found:
        raise typer.Exit(1)


def _looked(names: Sequence[str], pids: Sequence[int], output: Path | None, progress: Progress) -> Iterator[Looked]:
    if pids:
        return live.running(pids, progress)
    return live.surfaces(_chosen(names), progress) if output is None else live.into(output, names, progress)


def _print(found: Sequence[Surface], left_out: Sequence[Mapping[str, str]], *, beside: bool, listed: bool) -> None:
    console = to_read()
    told = surfaces_report(found)
    console.print(shown.render(told.surfaces))
    if beside and told.beside is not None:
        console.print(shown.published(told.beside))
    if listed:
        console.print(shown.listed(found))
    for row in left_out:
        fix = f" (fix: {row['fix']})" if row["fix"] else ""
        console.print(f"left out: {row['platform']}: {row['reason']}{fix}", markup=False, soft_wrap=True)


def _chosen(names: Sequence[str]) -> list[Platform]:
    if list(names) == [ALL]:
        return list(registry.all_platforms().values())
    return registry.choose(names) if names else [one for one in registry.all_platforms().values() if one.by_default]
