"""Cautions on how the host was used: rights, and the CPUs that instances shared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tare.model import NO_DAEMON


def rights_note(host: Mapping[str, Any]) -> str | None:
    """A caution on a campaign that was run without root; ``host``: the campaign's `HostFacts`."""
    if not host.get("own_namespaces"):
        return None
    ungrouped = (
        ", and without control groups: no memory limit, CPUs by affinity, which a sandbox may change, and no CPU time"
        if host.get("cgroup") == "none"
        else ""
    )
    return (
        "Run without root: all of it, the baseline too, in a user namespace and behind a network of its own"
        f"{ungrouped}. Ratios are those of a user; do not set them beside a campaign of root's"
    )


def cpus_text(resources: Mapping[str, Any]) -> str:
    """What CPUs instances had, from a report's `resources`."""
    cpus = resources["cpus"]
    text = f"CPU {', '.join(map(str, cpus))}"
    quota, probes = resources.get("cpu_quota"), resources.get("probe_cpu")
    text += f", of their time {quota:g} CPUs' worth" if quota is not None else ""
    return text + (f", probes on CPU {probes}" if probes is not None and len(cpus) > 1 else "")


def cpus_note(resources: Mapping[str, Any]) -> str | None:
    """A caution where tare and the client had no CPU of their own; ``resources``: a report's."""
    shared = sorted(set(resources.get("harness_cpus") or ()) & set(resources["cpus"]))
    if not shared:
        return None
    beside = f"tare and the client ran on CPU {', '.join(map(str, shared))}, which instances had too"
    probes = resources.get("probe_cpu")
    return beside if probes in shared else f"{beside}; CPU {probes} was left to them and to the probes' slices"


def layout_note(host: Mapping[str, Any], resources: Mapping[str, Any]) -> str | None:
    """Return a caution where the instances' CPUs are unlike, or the kernel spreads no threads over them.

    ``host``: the campaign's `HostFacts`; ``resources``: a report's.
    """
    facts, cpus = host.get("cpu") or {}, set(resources["cpus"])
    isolated = cpus & set(facts.get("isolated") or ())
    kinds = [kind for kind in facts.get("kinds") or () if cpus & set(kind)]
    notes = []
    if len(isolated) > 1:
        listed = ", ".join(map(str, sorted(isolated)))
        notes.append(f"CPUs {listed} are isolated: the kernel does not spread the threads of an instance over them")
    if len(kinds) > 1:
        notes.append("the instances' CPUs are of several kinds, fast and slow: figures depend on where threads ran")
    return "; ".join(notes) or None


def daemons_note(fairness: Mapping[str, Any]) -> str | None:
    """A caution where shared daemons, which make what they start, had unlike CPUs; ``fairness``: a report's."""
    platforms_on: dict[str, list[str]] = {}
    for platform, facts in fairness.items():
        cpus = facts.get("daemons' cpus") if isinstance(facts, dict) else None
        if isinstance(cpus, str) and cpus != NO_DAEMON:
            platforms_on.setdefault(cpus, []).append(platform)
    if len(platforms_on) < 2:
        return None
    by_cpus = "; ".join(f"CPU {cpus}: {', '.join(sorted(names))}" for cpus, names in sorted(platforms_on.items()))
    return f"shared daemons had unlike CPUs, which their starts are to be read with ({by_cpus})"
