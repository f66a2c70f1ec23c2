"""`tare doctor`: says what this host can run, and what would make its figures better."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import typer
from rich.markup import escape
from rich.status import Status
from rich.table import Table

from tare.campaign import platform_check
from tare.campaign.host_session import default_cpus
from tare.campaign.instances import instance_posture
from tare.cli.console import Console, emit
from tare.cli.exit_codes import ExitCode
from tare.errors import Failed, TareError, attempt
from tare.extensions import feature_modules
from tare.host import host_checks, own_namespaces, session_rights, state
from tare.host.facts import machine_facts, siblings
from tare.image.image_build import base_is_there
from tare.platforms import platform_contract
from tare.platforms import platform_registry as platforms
from tare.platforms.base import Availability, Platform
from tare.report.sentences.fairness_words import fact_text
from tare.safe_text import clean
from tare.setup.components import COMPONENTS

#: The fact of a platform that says what was tried of it.
TRIED = "tried"
#: Platforms that are detected, or started, at a time: each mostly waits for its own daemon, or for what hangs.
AT_ONCE = 4
#: Of the ten lines: names of platforms, platforms with a reason of their own, and faults of the host.
_NAMES, _LACKING, _FAULTS = 24, 4, 3
_MARKS = {"ok": "[green]✓[/]", "warn": "[yellow]![/]", "fail": "[red]✗[/]"}


def examine(names: Sequence[str], *, as_json: bool, whole: bool = False) -> None:
    """Check the host, try the platforms (``names``; none: all) and print the results. Exits 1 if tare cannot measure.

    ``whole``: all that was looked at, and not the ten lines of it that say what to do.

    Of named platforms each must run; of all, one is enough.
    """
    lacking = own_namespaces.obstacle() if os.geteuid() != 0 else session_rights.lacking()
    if lacking is None:
        own_namespaces.enter(state.home())
    chosen = platforms.choose(names or list(platforms.all_platforms()))
    facts = siblings.completed(machine_facts.gather(), default_cpus())
    host = host_checks.checks(facts, image=base_is_there())
    if lacking is not None:
        host = [host_checks.without_rights(lacking, root=facts.root), *host[1:]]
    kernel = [check for module in feature_modules("checks") for check in module.checks()]
    with Console(stderr=True).status("") as status:
        results = [_row(platform, answer) for platform, answer in _started(_detect_each(chosen, status), status)]
    runs = (all if names else any)(row["available"] for row in results)
    usable = all(check.state != "fail" for check in host) and runs
    if as_json:
        answer = {
            "schema": "tare.doctor/1",
            "usable": usable,
            "checks": [
                {"name": check.name, "state": check.state, "found": check.observed, "advice": check.advice}
                for check in (*host, *kernel)
            ],
            "platforms": results,
            "families": [] if names else platforms.offers(),
        }
        emit(json.dumps(answer, indent=2))
    elif not whole:
        _print_short(host, results, named=bool(names))
    else:
        _print(host, kernel, results, [] if names else platforms.offers())
        if names:
            _print_security(results)
    if not usable:
        raise typer.Exit(ExitCode.NO)


def _detect_each(chosen: Sequence[Platform], status: Status) -> list[tuple[Platform, Availability]]:
    answers: list[tuple[Platform, Availability]] = []
    with _several(status) as pool:
        for platform, answer in zip(chosen, pool.map(_detected, chosen), strict=True):
            answers.append((platform, answer))
            status.update(f"looking for platforms: {len(answers)} of {len(chosen)}, {platform.name} last")
    return answers


@contextlib.contextmanager
def _several(status: Status) -> Iterator[ThreadPoolExecutor]:
    """Threads for `AT_ONCE` platforms. After an interrupt what has begun comes to its end, and the user is told so."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            yield pool
        except KeyboardInterrupt:
            status.console.print("interrupted: the platforms that are being tried come to their end first")
            raise


def _detected(platform: Platform) -> Availability:
    answer = attempt(partial(platform_contract.detected, platform))
    if isinstance(answer, Failed):
        answer = Availability(False, reason=f"its detection failed: {answer.reason}")
    attempt(platform.close)  # detection starts nothing that cleanup would need
    return answer


def _started(answers: Sequence[tuple[Platform, Availability]], status: Status) -> list[tuple[Platform, Availability]]:
    """The answers once each platform that is there was started as a campaign does it, several at a time."""
    here = [platform for platform, answer in answers if answer.available and not platform_check.why_not(platform)]
    if not here:
        return [_untried(*pair) for pair in answers]
    outcomes = attempt(partial(_try_each, here, status))
    if isinstance(outcomes, Failed):  # such as a campaign that has the host
        return [_untried(*pair, why=outcomes.reason) for pair in answers]
    return [
        (platform, _after_tryout(answer, outcomes[platform.name]))
        if platform.name in outcomes
        else _untried(platform, answer)
        for platform, answer in answers
    ]


def _try_each(platforms: Sequence[Platform], status: Status) -> dict[str, dict[str, Any] | Failed]:
    status.update(f"starting {', '.join(platform.name for platform in platforms)}")
    with platform_check.ready() as ready, _several(status) as pool:
        outcomes = list(pool.map(lambda platform: attempt(partial(ready.run, platform)), platforms))
        for platform in platforms:
            attempt(platform.close)
    return {platform.name: outcome for platform, outcome in zip(platforms, outcomes, strict=True)}


def _after_tryout(answer: Availability, outcome: dict[str, Any] | Failed) -> Availability:
    if isinstance(outcome, Failed):
        error = outcome.error
        problem, fix = (error.what, error.fix or "") if isinstance(error, TareError) else (outcome.reason, "")
        return Availability(False, reason=f"an instance does not start: {problem}", fix=fix)
    security = {side: fact_text(facts) for side, facts in outcome.items()}
    return replace(answer, details={**answer.details, TRIED: "an instance came up", **security})


def _untried(platform: Platform, answer: Availability, why: str = "") -> tuple[Platform, Availability]:
    if not answer.available:
        return platform, answer
    reason = f"not started: {platform_check.why_not(platform) or why}"
    return platform, replace(answer, details={**answer.details, TRIED: reason})


def _row(platform: Platform, answer: Availability) -> dict[str, Any]:
    return {
        "name": platform.name,
        "title": platform.title,
        "package": platforms.package(platform.name),
        "available": answer.available,
        "version": answer.version,
        "reason": answer.reason,
        "fix": answer.fix,
        "details": dict(answer.details),
    }


def _print_security(results: list[dict[str, Any]]) -> None:
    """Print the confinement of the platforms' instances, where one was started."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for row in results:
        inside, outside = (row["details"].get(side, "") for side in (instance_posture.INSIDE, instance_posture.OUTSIDE))
        process, _, same = outside.partition("; ")
        if inside and same == inside:
            outside = f"the same, {process}"
        beside = row["details"].get(instance_posture.BESIDE, "")
        for side, text in (("inside", inside), ("on the host", outside), ("beside it", beside)):
            if text:
                table.add_row(row["name"], side, escape(clean(text)))
    if table.row_count:
        console = Console()
        console.print("\n[bold]What keeps their instances in[/]")
        console.print(table)


def _print_short(host: Sequence[host_checks.HostCheck], results: Sequence[dict[str, Any]], *, named: bool) -> None:
    """Print the platforms that run, the missing ones with the command that installs them, and the worst faults."""
    console = Console()
    here = [row["name"] for row in results if row["available"]]
    lacking = [row for row in results if not row["available"]]
    console.print(f"[green]can be measured ({len(here)}):[/] {_first(here, _NAMES) or 'nothing'}")
    apart = lacking if named else [row for row in lacking if row["name"] in COMPONENTS]
    to_set_up = [row["name"] for row in apart if row["name"] in COMPONENTS and "not installed" in row["reason"]]
    if to_set_up:
        command = f"tare setup --with {','.join(to_set_up)}"
        console.print(f"[yellow]not here:[/] {', '.join(to_set_up)}; to have them: {command}")
    for row in [row for row in apart if row["name"] not in to_set_up][:_LACKING]:
        fix = f"; fix: {row['fix']}" if row["fix"] else ""
        console.print(f"[yellow]not here:[/] {row['name']}: {escape(clean(row['reason'] + fix))}")
    worst = sorted((check for check in host if check.state != "ok"), key=lambda check: check.state != "fail")
    for check in worst[:_FAULTS]:
        advice = f"; {check.advice}" if check.advice else ""
        console.print(f"{_MARKS[check.state]} {check.name}: {escape(clean(f'{check.observed}{advice}'))}")
    rest = len(lacking) - len(to_set_up)
    console.print(f"all of it, with {rest} platforms that this host does not run and why: tare doctor --all")


def _first(names: Sequence[str], most: int) -> str:
    """Some names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _print(
    host: list[host_checks.HostCheck],
    kernel: list[host_checks.HostCheck],
    results: list[dict[str, Any]],
    offers: list[dict[str, str]],
) -> None:
    console = Console()
    for title, group in (("The host", host), ("What can be told of its kernel", kernel)):
        table = Table(box=None, pad_edge=False, show_header=False)
        for check in group:
            table.add_row(_MARKS[check.state], check.name, check.observed, check.advice or "")
        console.print(f"[bold]{title}[/]")
        console.print(table)
        console.print()
    table = Table(box=None, pad_edge=False, show_header=False)
    for row in results:
        mark = _MARKS["ok" if row["available"] else "warn"]
        text = row["version"] if row["available"] else row["reason"]
        note = row["details"][TRIED] if row["available"] else f"fix: {row['fix']}" if row["fix"] else ""
        table.add_row(mark, row["name"], text, note)
    for offer in offers:
        table.add_row(" ", offer["name"], offer["asks"], "")
    console.print("[bold]Platforms[/]")
    console.print(table)
