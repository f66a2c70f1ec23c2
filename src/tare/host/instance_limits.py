"""Limits that every instance gets alike, whatever its platform's defaults: the one list (docs/method.md).

The control group enforces some (`tare.host.cgroup`). The agent sets the others on itself when it starts (``--limits``),
and its programs inherit them. So one place sets them on every platform, independent of what started tare or an engine's
daemon. If an agent may not raise a limit that its platform has lowered, the platform's own option does (`for_engines`).
A program inside reads `seen` back; a limit that differs is reported as not honoured.
"""

from __future__ import annotations

import resource
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tare.host.kernel import settings
from tare.model import PIDS, Resources

HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
UNLIMITED, UNKNOWN = "unlimited", "unknown"


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit: its name, its subject, and the reason for its value. ``value`` None: the host's own value."""

    name: str
    title: str
    value: int | None
    why: str
    number: int | None = None  # Of setrlimit(2); None: not a limit of processes.


LIMITS = (
    Limit("swap", "bytes of swap", 0, "a guest that swaps measures the host's disk instead of its platform"),
    Limit("pids", "processes and threads", PIDS, "an instance must not use up the host's process ids"),
    Limit(
        "nofile",
        "open files",
        16_384,
        "more than tare's servers and loads open, no more than engines give; programs make tables of this size",
        resource.RLIMIT_NOFILE,
    ),
    Limit("memlock", "bytes of locked memory", 8 << 20, "Linux's own default since 5.16", resource.RLIMIT_MEMLOCK),
    Limit("core", "bytes of a core dump", 0, "a crash must not write to the data volume", resource.RLIMIT_CORE),
    Limit(
        "stack", "bytes of a stack", 8 << 20, "Linux's own default; threads' stacks follow it", resource.RLIMIT_STACK
    ),
    Limit("thp", "transparent huge pages", None, "2 MiB pages on one side alone decide what memory costs"),
)


def wanted(resources: Resources) -> dict[str, str]:
    """Return the limits of an instance with these resources, by name; none is above this process's own."""
    values = {limit.name: str(_possible(limit)) for limit in LIMITS}
    return {**values, "pids": UNLIMITED if resources.pids is None else str(resources.pids)}


def _possible(limit: Limit) -> int | str:
    if limit.value is None:
        return settings.read(HUGE_PAGES) or "none"
    if limit.number is None:
        return limit.value
    most = resource.getrlimit(limit.number)[1]
    return limit.value if most == resource.RLIM_INFINITY else min(limit.value, most)


def for_agent(resources: Resources) -> str:
    """Return the limits that the agent sets (its option ``--limits``); of a kernel only if it is the instance's own."""
    threads = [] if resources.pids is None else [f"threads:{resources.pids}"]
    return ",".join([for_programs(), *threads, f"thp:{wanted(resources)['thp']}"])


def for_programs() -> str:
    """Return the limits of processes in the same form, for the client's programs.

    The client's control group has the other limits.
    """
    return ",".join(f"{limit.name}:{_possible(limit)}" for limit in LIMITS if limit.number is not None)


def for_engines() -> dict[str, int]:
    """Return the limits that an engine or its daemon may have lowered, by name: the value of both, soft and hard."""
    return {limit.name: int(_possible(limit)) for limit in LIMITS if limit.name in {"nofile", "memlock"}}


def seen(printed: str, group: Mapping[str, int | None], *, own_kernel: bool) -> dict[str, str]:
    """Return the limits of a program inside, by name.

    ``printed``: by the agent's ``limits``; "" without an agent. ``group``: by `Group.limits`; empty if the work is in
    no group of this host. ``own_kernel``: the kernel's limit of threads is the instance's own, so it applies, and not
    the control group's, which includes the monitor's processes.
    """
    inside = {words[0]: words[1] for words in map(str.split, printed.splitlines()) if len(words) > 1}
    kept = {name: UNLIMITED if value is None else str(value) for name, value in group.items()}
    if own_kernel:
        kept["pids"] = inside.get("threads", UNKNOWN)
    return {limit.name: kept.get(limit.name) or inside.get(limit.name, UNKNOWN) for limit in LIMITS}


def facts(limits: Mapping[str, str]) -> dict[str, str]:
    """Return an instance's limits as facts of the manifest."""
    return {f"limit of {name}": value for name, value in limits.items()}


def not_honoured(expected: Mapping[str, str], actual: Mapping[str, str]) -> list[str]:
    """Return the limits that an instance is known to lack, as half sentences."""
    titles = {limit.name: limit.title for limit in LIMITS}
    return [
        f"{titles[name]}: {_shown(actual[name])} in place of {_shown(value)}"
        for name, value in expected.items()
        if actual[name] not in {value, UNKNOWN}
    ]


def _shown(value: str) -> str:
    return f"{int(value):,}" if value.isdigit() else value
