"""The doors of many platforms: tried on each that runs here, stored as data, and shown as one table."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from tare.contract import suite
from tare.contract.bench import Bench
from tare.contract.doors import DOORS, DOORS_TO_OTHERS, AttemptState, DoorOutcome
from tare.contract.escapes import declared, try_doors, try_doors_to_others
from tare.errors import Failed, UsageError, attempt
from tare.model import Progress
from tare.platforms import platform_contract
from tare.platforms.base import Platform
from tare.records import Frozen, Line

#: Largest file of doors that is read; a door takes a few hundred bytes.
MAX_BYTES = 8 << 20
#: Characters to which an error that quotes a guest is cut: its end.
MAX_SAID = 300


class SurveyedDoor(Frozen):
    """The state of one door. ``by_design``: the reason, where the platform declares that the door is open."""

    door: Line
    state: AttemptState
    how: Line
    by_design: Line | None


class Surveyed(Frozen):
    """A platform's doors, or why they were not tried; ``failed``: they were not although the platform runs here."""

    platform: Line
    why_not: Line | None
    doors: list[SurveyedDoor]
    failed: bool = False


class Survey(Frozen):
    """The output of `tare platform doors --json`."""

    form: Literal["tare.doors/1"] = Field(alias="schema")
    platforms: list[Surveyed]


def run(platforms: Sequence[Platform], progress: Progress) -> Iterator[Surveyed]:
    """Try the doors of one platform after the other. A platform's failure is in its ``why_not``."""
    with suite.benches(progress) as bench_of:
        for platform in platforms:
            progress(platform.name)
            surveyed = attempt(partial(_surveyed, platform, bench_of(platform)))
            attempt(platform.close)  # its failure matters to no door: nothing is left running
            if isinstance(surveyed, Failed):
                why = " ".join(surveyed.reason.split())[-MAX_SAID:]
                surveyed = Surveyed(platform=platform.name, why_not=why, doors=[], failed=True)
            yield surveyed


def _surveyed(platform: Platform, bench: Bench) -> Surveyed:
    answer = platform_contract.detected(platform)
    if not platform.has_agent or not answer.available:
        why = f"it does not run here: {answer.reason}" if platform.has_agent else "it has no agent, and runs no command"
        return Surveyed(platform=platform.name, why_not=why, doors=[])
    platform_contract.prepared(platform, bench.launcher.image)
    with contextlib.closing(bench):
        outcomes = (*try_doors(bench), *try_doors_to_others(bench))
    return Surveyed(
        platform=platform.name, why_not=None, doors=[_surveyed_door(platform, outcome) for outcome in outcomes]
    )


def _surveyed_door(platform: Platform, outcome: DoorOutcome) -> SurveyedDoor:
    name = outcome.door.name
    return SurveyedDoor(door=name, state=outcome.state, how=outcome.how, by_design=declared(platform, name))


def read(file: Path) -> list[Surveyed]:
    """Read the JSON output of an earlier run. Raises `UsageError`."""
    try:
        with file.open("rb") as source:
            text = source.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise UsageError(f"{file} is too large to be a table of doors")
        return Survey.model_validate_json(text).platforms
    except (OSError, ValidationError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is none of `tare platform doors --json`"
        raise UsageError(f"{file} cannot be read: {why}") from error


def merged(surveys: Iterable[Surveyed]) -> list[Surveyed]:
    """One result for each platform, ordered by name: the last one in which its doors were tried."""
    best: dict[str, Surveyed] = {}
    for surveyed in surveys:
        if surveyed.doors or surveyed.platform not in best:
            best[surveyed.platform] = surveyed
    return [best[name] for name in sorted(best)]


def table(platforms: Sequence[Surveyed]) -> str:
    """Two tables in Markdown: the platforms on which each door is open, and the doors of each platform by state."""
    tried = [surveyed for surveyed in platforms if surveyed.doors]
    doors = [door for door in (*DOORS, *DOORS_TO_OTHERS) if any(_state(surveyed, door.name) for surveyed in tried)]
    by_door = [
        (door.name, door.gain, _names(tried, door.name, by_design=True), _names(tried, door.name, by_design=False))
        for door in doors
    ]
    by_platform = [
        (surveyed.platform, *(str(sum(result.state is state for result in surveyed.doors)) for state in AttemptState))
        for surveyed in tried
    ]
    first = _rows(("door", "what it would gain", "open by design on", "open, and not to be, on"), by_door)
    second = _rows(("platform", *(state.value for state in AttemptState)), by_platform)
    left_out = [f"- {surveyed.platform}: {surveyed.why_not}" for surveyed in platforms if not surveyed.doors]
    return "\n".join([*first, "", *second, *(["", "Not tried:", *left_out] if left_out else []), ""])


def _state(surveyed: Surveyed, door: str) -> SurveyedDoor | None:
    return next((result for result in surveyed.doors if result.door == door), None)


def _names(platforms: Sequence[Surveyed], door: str, *, by_design: bool) -> str:
    results = ((surveyed.platform, _state(surveyed, door)) for surveyed in platforms)
    names = [
        name
        for name, result in results
        if result is not None and result.state is AttemptState.OPEN and (result.by_design is not None) == by_design
    ]
    return ", ".join(names) or "-"


def _rows(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = (head, ["---"] * len(head), *rows)
    return [f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines]
