"""The state of each host, from what Ansible tells: pure data, tested with values.

All texts come from hosts that nobody trusts: they are cut, made one line, and cleaned where they are printed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from tare.records import one_line

#: Most characters of a reason.
MAX_REASON = 300
#: A clock that is this far off is worth a word.
CLOCK_S = 60.0
#: What a host does whose campaign is complete.
NOT_FETCHED = "complete, not fetched yet"
_FACT = re.compile(r"^tare-fleet ([a-z_]+)=(.*)$", re.MULTILINE)
_MAX_FACTS = 65_536


class HostState(StrEnum):
    """Where a host stands."""

    WAITING = "waiting"
    LOOKING = "looking"
    COPYING = "copying"
    STARTING = "starting"
    RUNNING = "running"
    FETCHING = "fetching"
    FETCHED = "fetched"
    DONE = "done"
    KILLED = "killed"
    FAILED = "failed"
    LOST = "lost"
    ABSENT = "absent"


#: The states in which a host stays unless something is done.
ENDED = {HostState.DONE, HostState.FAILED, HostState.LOST, HostState.KILLED, HostState.ABSENT}
_BY_TASK = {
    "look": HostState.LOOKING,
    "push": HostState.COPYING,
    "start": HostState.STARTING,
    "fetch": HostState.FETCHING,
}
_BY_ANSWER = {
    "running": HostState.RUNNING,
    "complete": HostState.RUNNING,  # until its file is here
    "killed": HostState.KILLED,
    "absent": HostState.ABSENT,
    "failed": HostState.FAILED,
    "clean": HostState.ABSENT,
}


@dataclass(frozen=True, slots=True)
class HostRow:
    """One host."""

    host: str
    state: HostState = HostState.WAITING
    blocks: int | None = None
    left_s: float | None = None
    doing: str = ""
    reason: str = ""
    note: str = ""  # worth a word, and no failure
    started: bool = False  # its campaign was seen there
    sha256: str = ""  # of its file, as the host told
    size: int = 0
    client: str = ""  # the host of the group `clients` that loads its servers; "": it loads them itself


def facts(text: str) -> dict[str, str]:
    """Read what ``probe.sh`` printed, after whatever a login prints; the last value of a key counts."""
    return {key: cut(value) for key, value in _FACT.findall(text[-_MAX_FACTS:])}


def cut(text: object, most: int = MAX_REASON) -> str:
    """Return a stranger's text as one line of bounded length."""
    line = " ".join(one_line(str(text)).split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def bounded(row: HostRow) -> HostRow:
    """Return a row of a file that anybody may have written, with the bounds of an answer's."""
    return replace(
        row,
        blocks=_blocks(row.blocks),
        left_s=_left_s(row.left_s),
        size=_size(row.size),
        host=cut(row.host),
        doing=cut(row.doing),
        reason=cut(row.reason),
        note=cut(row.note),
        sha256=cut(row.sha256),
    )


def _blocks(value: object) -> int | None:
    return value if isinstance(value, int) and 0 <= value < 1_000_000 else None


def _left_s(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e9 else None


def _size(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 1 << 63 else 0


def data_of(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what an event of ansible-runner says; an empty mapping if it is no event."""
    data = event.get("event_data")
    return data if isinstance(data, Mapping) else {}


def told(row: HostRow, event: Mapping[str, Any], now: float) -> HostRow:
    """Return the row after an event of ansible-runner. ``now``: this machine's clock, to compare the host's with."""
    data = data_of(event)
    kind, task = str(event.get("event", "")), str(data.get("task", ""))
    result = data.get("res") or {}
    if not isinstance(result, Mapping):
        return row
    if kind == "runner_on_start":
        return replace(row, state=_BY_TASK.get(task, row.state)) if row.state not in ENDED else row
    if kind == "runner_on_unreachable":
        return replace(row, state=HostState.LOST, reason=_lost(result))
    if kind in {"runner_on_failed", "runner_item_on_failed"}:
        # After an item of a loop, which had the reason, the task fails without one.
        known = row.reason if row.state is HostState.FAILED and "items failed" in str(result.get("msg", "")) else ""
        return replace(row, state=HostState.FAILED, reason=known or why(task, result))
    if kind in {"runner_on_ok", "runner_retry"}:
        return _answered(row, task, result, now)
    return row


def _answered(row: HostRow, task: str, result: Mapping[str, Any], now: float) -> HostRow:
    if task == "look":
        there = facts(str(result.get("stdout", "")))
        return replace(row, note=_clock(there, now), client=cut(there.get("client", ""), 200))
    if task == "fetch" and result.get("changed") is not None and not result.get("skipped"):
        return replace(row, state=HostState.FETCHED)
    state = _BY_ANSWER.get(str(result.get("state", "")))
    if state is None:
        return row
    blocks = _blocks(result.get("blocks"))
    return replace(
        row,
        state=state,
        started=row.started or state in {HostState.RUNNING, HostState.KILLED},
        blocks=row.blocks if blocks is None else blocks,
        left_s=_left_s(result.get("left_s")),
        doing=NOT_FETCHED if result["state"] == "complete" else cut(result.get("doing", ""), 60),
        reason=cut(result.get("reason", "")) if state is HostState.FAILED else "",
        sha256=str(result.get("sha256", ""))[:64],
        size=_size(result.get("size")),
    )


def why(task: str, result: Mapping[str, Any]) -> str:
    """Return the reason of a failed task, from the host, Ansible or the probe."""
    lack = facts(str(result.get("stdout", ""))).get("lack")
    if lack:
        return lack
    message = cut(result.get("msg", "")).removeprefix("Task failed: ").removeprefix("Module failed: ")
    message = message or "it failed without a word"
    if "non-zero return code" in message:
        message = cut(result.get("stderr") or result.get("stdout") or message)
    if re.search(r"Incorrect \w+ password|Authentication failure", message):
        return "it wants another password to become root: give the right ansible_become_password, from a vault"
    if re.search(r"[Mm]issing \w+ password|password is required", message):
        return "it wants a password to become root: let root in by key, or give ansible_become_password from a vault"
    if re.search(r"No space left on device", f"{message} {result.get('stderr', '')} {result.get('exception', '')}"):
        return "its disk is full: free some there, and play it again"
    return f"{task}: {message}" if task in {"push", "fetch"} else message


_UNREACHABLE = (
    (r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key verification failed|No \S+ host key is known",
     "its host key is not the known one: log in once by hand, and check the key"),
    (r"Permission denied|Too many authentication failures", "it lets nobody in without a password: ssh-copy-id"),
    (r"Could not resolve hostname", "its name is not known: give ansible_host"),
    (r"No space left on device", "its disk is full: free some there, and play it again"),
    (r"refused|timed out|No route to host|unreachable|closed|reset|Broken pipe|not responding", "it is not reached"),
)  # fmt: skip


def _lost(result: Mapping[str, Any]) -> str:
    message = str(result.get("msg", ""))[-4000:]
    for pattern, reason in _UNREACHABLE:
        if re.search(pattern, message, re.IGNORECASE):
            return reason
    return cut(message) or "it is not reached"


def _clock(there: Mapping[str, str], now: float) -> str:
    try:
        ahead_s = int(there["time"]) - now
    except (KeyError, ValueError):
        return ""
    if abs(ahead_s) < CLOCK_S:
        return ""
    size = abs(ahead_s)
    amount = (
        f"{size / 86400:.0f} days" if size > 172_800 else f"{size / 3600:.1f} h" if size > 3600 else f"{size:.0f} s"
    )
    return f"its clock is {amount} {'ahead' if ahead_s > 0 else 'behind'}"
