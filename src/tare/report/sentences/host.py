"""Cautions on how the host was used: rights, and the CPUs that instances shared."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tare.model import NATIVE_VETH, NO_DAEMON, Family
from tare.report.model import ResultReport
from tare.report.model.fact_models import ClientFacts, PlatformFacts
from tare.report.sentences.shown import ShownFigure

#: The fact of a platform's path of packets: from the client, and what stands in it where connections are tracked.
_PATH, _FROM_CLIENT, _TRACKED = "network path", "client, bridge", ("host stack", "NAT")

#: A fact that could not be read.
_UNKNOWN = "unknown"
#: The priority of processes unless somebody set another.
_USUAL_PRIORITY = "normal, nice 0"
#: A program with its version: "crun 1.8.1".
_VERSIONED = re.compile(r"[a-z]+ \d\S*")


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


#: Calendar years: engines of a line that came out longer before the campaign have a caution.
OLD_AFTER_YEARS = 2
#: Engines that a line names; others are counted.
_MOST_ENGINES = 8


def versions_text(host: Mapping[str, Any], platforms: Sequence[PlatformFacts], baseline: str) -> str:
    """The kernel, the version of control groups, and the engines in a line: what starts depend on most."""
    groups = host.get("cgroup")
    kernel = f"Linux {host['kernel']}" if isinstance(host.get("kernel"), str) else "an unknown kernel"
    shown = f"{kernel}, cgroup {groups}" if isinstance(groups, str) else kernel
    hosts_own = (baseline, f"{baseline}-")
    engines = list(_engines([entry for entry in platforms if not entry.name.startswith(hosts_own)]))
    more = f" and {len(engines) - _MOST_ENGINES} more" if len(engines) > _MOST_ENGINES else ""
    return f"{shown}; {', '.join(engines[:_MOST_ENGINES])}{more}" if engines else shown


#: Wall clocks of two machines that differ by less than this are alike.
_CLOCK_S = 1.0


def client_text(host_title: str, client: ClientFacts | None) -> str:
    """Which machine loaded which, with the client's processor and clock; "" for a host that loaded itself."""
    if client is None:
        return ""
    ahead = client.clock_ahead_s
    way = "ahead of" if ahead is not None and ahead > 0 else "behind"
    clock = f", its clock {abs(ahead):.0f} s {way} the host's" if ahead is not None and abs(ahead) >= _CLOCK_S else ""
    machine = f"{client.model}, {client.cpus} CPU{'s' if client.cpus != 1 else ''}, Linux {client.kernel}{clock}"
    return f"{client.name} ({client.client}) loaded {host_title} at {client.called}: {machine}"


def age_note(platforms: Sequence[PlatformFacts], created: float) -> str | None:
    """Return a caution where engines are of a line that came out years before the campaign, or None."""
    campaign = time.gmtime(created).tm_year
    by_year: dict[int, list[PlatformFacts]] = {}
    for entry in platforms:
        if entry.released is not None and campaign - entry.released > OLD_AFTER_YEARS:
            by_year.setdefault(entry.released, []).append(entry)
    if not by_year:
        return None
    old = "; ".join(f"of {year}: {', '.join(_engines(entries))}" for year, entries in sorted(by_year.items()))
    return f"old engines, by the year of their line's first release; newer ones may differ ({old})"


def _engines(platforms: Sequence[PlatformFacts]) -> Iterator[str]:
    """Yield the programs of platforms, such as "runc 1.1.5" and "podman 4.3.1 (crun 1.8.1)"; variants share one."""
    names: dict[str, list[str]] = {}
    for entry in platforms:
        within = _runtime(entry.details)
        names.setdefault(f"{entry.version} ({within})" if within else entry.version, []).append(entry.name)
    for version, sharing in names.items():
        yield f"{min(sharing, key=len)} {version}"


def _runtime(details: Mapping[str, str]) -> str:
    """The runtime below an engine with its version; "" where the engine does not say."""
    named = details.get("runtime", "").partition(" (")[0]
    parts = (part for part in details.get("parts", "").split(", ") if part.startswith(f"{named} "))
    return named if _VERSIONED.fullmatch(named) else next(parts, "") if named else ""


def cpus_text(resources: Mapping[str, Any]) -> str:
    """Return what CPUs instances had, from a report's `resources`."""
    cpus = resources["cpus"]
    text = f"CPU {', '.join(map(str, cpus))}"
    quota, probes = resources.get("cpu_quota"), resources.get("probe_cpu")
    text += f", of their time {quota:g} CPUs' worth" if quota is not None else ""
    return text + (f", probes on CPU {probes}" if probes is not None and len(cpus) > 1 else "")


def cpus_note(resources: Mapping[str, Any], *, outside: bool = False) -> str | None:
    """A caution where tare and the client had no CPU of their own; ``resources``: a report's.

    ``outside``: the client was another machine.
    """
    shared = sorted(set(resources.get("harness_cpus") or ()) & set(resources["cpus"]))
    if not shared:
        return None
    who = "tare" if outside else "tare and the client"
    beside = f"{who} ran on CPU {', '.join(map(str, shared))}, which instances had too"
    probes = resources.get("probe_cpu")
    return beside if probes in shared else f"{beside}; CPU {probes} was left to them and to the probes' slices"


def layout_note(host: Mapping[str, Any], resources: Mapping[str, Any]) -> str | None:
    """Return a caution where the instances' CPUs are unlike, or the kernel spreads no threads over them.

    ``host``: the campaign's `HostFacts`; ``resources``: a report's.
    """
    facts, cpus = host.get("cpu"), set(resources["cpus"])
    if not isinstance(facts, Mapping):
        return None
    isolated, listed_kinds = cpus & _cpus(facts.get("isolated")), facts.get("kinds")
    kinds = [kind for kind in listed_kinds if cpus & _cpus(kind)] if isinstance(listed_kinds, list) else []
    notes = []
    if len(isolated) > 1:
        listed = ", ".join(map(str, sorted(isolated)))
        notes.append(f"CPUs {listed} are isolated: the kernel does not spread the threads of an instance over them")
    if len(kinds) > 1:
        notes.append("the instances' CPUs are of several kinds, fast and slow: figures depend on where threads ran")
    return "; ".join(notes) or None


def _cpus(listed: object) -> set[int]:
    """The CPUs that a record lists; none where it has no list, as a record is whatever its writer wrote."""
    return {cpu for cpu in listed if isinstance(cpu, int)} if isinstance(listed, list) else set()


def tracking_note(
    host: Mapping[str, Any], fairness: Mapping[str, Any], baseline: str, results: Sequence[ResultReport]
) -> str | None:
    """Return a caution where the baseline's packets pay for connection tracking and those of platforms do not.

    ``host``, ``fairness``, ``results``: a report's. A packet filter's rule that asks for a connection's state, as
    Docker's do, has it tracked in the host's network namespace, and in no other.
    """
    networked = [result for result in results if result.family in {Family.NETWORK, Family.APPLICATION}]
    paths = {name: facts.get(_PATH) for name, facts in fairness.items() if isinstance(facts, Mapping)}
    if not host.get("connection_tracking") or _TRACKED[0] not in str(paths.get(baseline)):
        return None
    untracked = [
        name
        for name, path in paths.items()
        if isinstance(path, str) and path.startswith(_FROM_CLIENT) and not any(part in path for part in _TRACKED)
    ]
    others = [name for name in untracked if name != NATIVE_VETH]
    if not others or not networked:
        return None
    measured = ", ".join(_untracked_figures(networked))
    return (
        f"connection tracking on this host slows {baseline} and not {', '.join(others)}: over the network these may"
        f" look faster than they are (compare them with {NATIVE_VETH}, {baseline} on their path"
        f"{f': {measured}' if measured else ''})"
    )


def _untracked_figures(results: Sequence[ResultReport]) -> Iterator[str]:
    """Yield what the second baseline of networks has in each headline: ``redis 9.5 % faster (8.2 to 11 %)``."""
    for result in results:
        platform = next((entry for entry in result.platforms if entry.platform == NATIVE_VETH), None)
        if result.headline and platform is not None:
            figure, span = ShownFigure.of(result, platform).in_words()
            if figure:
                yield f"{result.workload} {figure}{f' ({span})' if span else ''}"


def priorities_note(fairness: Mapping[str, Any], baseline: str) -> str | None:
    """Return a caution where a platform's instances had no process at the baseline's priority.

    ``fairness``: a report's. tare's own priority, of `nice` or `chrt`, is that of what it starts, and not that of what
    a daemon starts. A platform may lower that of some of its own processes.
    """
    stated = {name: facts.get("priority") for name, facts in fairness.items() if isinstance(facts, dict)}
    known = {name: text for name, text in stated.items() if isinstance(text, str) and text != _UNKNOWN}
    usual = set(known.get(baseline, "").split("; "))
    unlike = sorted(name for name, text in known.items() if not usual & set(text.split("; ")))
    if baseline not in known or not unlike:
        return None
    each = "; ".join(f"{name}: {known[name]}" for name in (baseline, *unlike))
    of_daemons = _USUAL_PRIORITY in usual
    remedy = "see what sets that of the others' daemons" if of_daemons else "start tare without nice or chrt"
    return f"the kernel scheduled instances at unlike priorities ({each}): {remedy}"


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
