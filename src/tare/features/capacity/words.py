"""Words for how many instances fit: sentences, what would lift a limit, and a reserve as others' tools take it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tare.capacity_model import Resource, Stop
from tare.estimates.use_lines import Fits
from tare.features.capacity.analysis import PlatformCapacity, Reserve
from tare.features.capacity.prices import Cost, Prices
from tare.report.sentences.numbers import EMPTY, number_of, size

if TYPE_CHECKING:
    from tare.features.capacity.model import CapacityReport, MemoryPartsReport, PlatformCapacityReport

TITLE = "Capacity"
RUNS_OUT = "What runs out, and when"
RESERVES = "What to reserve for each instance"
#: What runs out, at the beginning of a clause and with its counter.
NAMES: Mapping[Resource, str] = {
    Resource.MEMORY: "memory",
    Resource.CPU: "CPU time",
    Resource.TASKS: "threads",
    Resource.FILES: "open files",
    Resource.BRIDGE_PORTS: "ports of the bridge",
    Resource.MOUNTS: "mounts",
    Resource.TERMINALS: "pseudo-terminals",
    Resource.MEMORY_GROUPS: "memory control groups",
    Resource.NEIGHBOURS: "neighbour entries",
    Resource.DISK: "disk space",
}
_SINGULAR = frozenset({Resource.MEMORY, Resource.CPU, Resource.DISK})
#: The file or counter that shows how much of it is used.
COUNTERS: Mapping[Resource, str] = {
    Resource.MEMORY: "MemAvailable in /proc/meminfo",
    Resource.CPU: "cpuacct.usage or cpu.stat of the control groups",
    Resource.TASKS: "/proc/loadavg, against kernel.threads-max and kernel.pid_max",
    Resource.FILES: "fs.file-nr",
    Resource.BRIDGE_PORTS: "/sys/class/net/BRIDGE/brif",
    Resource.MOUNTS: "/proc/self/mountinfo, against fs.mount-max",
    Resource.TERMINALS: "kernel.pty.nr",
    Resource.MEMORY_GROUPS: "/proc/cgroups",
    Resource.NEIGHBOURS: "/proc/net/arp, against net.ipv4.neigh.default.gc_thresh3",
    Resource.DISK: "df",
}
_LIFTS: Mapping[Resource, str] = {
    Resource.MEMORY: "more memory in the host, or instances that take less",
    Resource.CPU: "more CPUs for the instances (--cpus), or less work in each",
    Resource.TASKS: "sysctl kernel.threads-max and kernel.pid_max",
    Resource.FILES: "sysctl fs.file-max",
    Resource.BRIDGE_PORTS: "a second bridge: Linux gives one 1,024 ports",
    Resource.MOUNTS: "sysctl fs.mount-max",
    Resource.TERMINALS: "sysctl kernel.pty.max",
    Resource.MEMORY_GROUPS: "cgroup v2, or a host of its own for the rest: cgroup v1 has 65,535 of them",
    Resource.NEIGHBOURS: "sysctl net.ipv4.neigh.default.gc_thresh3",
    Resource.DISK: "a larger disk below TARE_HOME",
}
_STOPS: Mapping[Stop, str] = {
    Stop.QUARTER: "a quarter of what fits ran",
    Stop.MOST: "as many ran as were asked for",
    Stop.TIME: "the time of a trial was over",
    Stop.FULL: "the host was full",
    Stop.LIMIT: "a limit broke",
    Stop.START: "an instance did not start",
}
#: Names of container runtimes' handlers, as their own documentation has them in a RuntimeClass.
_HANDLERS: Mapping[str, str] = {"gvisor": "runsc", "kata": "kata"}


def lift(resource: Resource | None) -> str:
    """What would lift a limit."""
    return "" if resource is None else _LIFTS[resource]


def answer(capacity: PlatformCapacity, cost: Cost | None = None, prices: Prices | None = None) -> str:
    """As in "gvisor: 212 fit (198 to 231), memory runs out first; reserve 48 MiB and 12 m CPU each"."""
    parts = [_fit(capacity)]
    if capacity.filled is not None:
        parts.append(held(capacity.filled.count))
    if capacity.reserve is not None:
        parts.append(f"reserve {_memory(capacity.reserve.memory)} and {milli(capacity.reserve.cpu)} m CPU each")
    if cost is not None and prices is not None:
        currency = prices.host.currency
        parts.append(f"{money(cost.month)} {currency} a month at the price file's host")
        if cost.thousand_runs is not None:
            parts.append(f"{money(cost.thousand_runs)} {currency} for a thousand one-shot runs")
    return f"{capacity.platform}: {'; '.join(parts)}."


def cliff(platform: PlatformCapacityReport) -> str:
    """The work that one keeps by the number of instances, in a line; "" where none was put to work."""
    shown = [f"{level.count}: {100 * level.kept:.0f} %" for level in platform.levels if level.kept is not None]
    knee = f"; the knee is at {platform.knee:g}" if platform.knee is not None else ""
    return f"{platform.platform}, work kept by the number of instances: {', '.join(shown)}{knee}." if shown else ""


def money(amount: float) -> str:
    """An amount in three digits: 0.41, 0.00213, 12.3."""
    digits = 2 - math.floor(math.log10(amount)) if amount > 0 else 2
    return f"{amount:,.{min(8, max(0, digits))}f}"


def _fit(capacity: PlatformCapacity) -> str:
    memory, first = capacity.resources[0], capacity.first
    if capacity.hidden:
        return f"{capacity.most_run} ran at once; what memory one takes is hidden by the host's other work"
    if capacity.baseline:
        return f"one takes {_memory(memory.line.each)} without a sandbox"
    if first is None:
        return f"nothing that was counted runs out: {capacity.most_run} ran at once"
    runs = "runs" if first.resource in _SINGULAR else "run"
    text = f"{count(first.fits.count)} fit{_interval(first.fits)}, {NAMES[first.resource]} {runs} out first"
    if first is memory or not memory.known:
        return text
    return f"{text}; memory would hold {count(memory.fits.count)}{_interval(memory.fits)}"


def _interval(fits: Fits) -> str:
    """The ends, if they are known and differ as printed: " (198 to 231)"."""
    ends = (count(fits.low), _high(fits.high))
    return f" ({ends[0]} to {ends[1]})" if fits.low is not None and ends[0] != ends[1] else ""


def fitting(platform: PlatformCapacityReport) -> str:
    """How many fit, for the table; nothing for the baseline, and where the host's other work hides what one takes."""
    return count(platform.count) if platform.count is not None or platform.reserve is not None else EMPTY


def count(number: float | None) -> str:
    """Whole instances; more than are known to that are in three digits."""
    if number is None or not math.isfinite(number):
        return "any number"
    whole = math.floor(number)
    digits = max(0, len(str(whole)) - 3)
    return f"{round(whole, -digits):,}"


def _high(number: float | None) -> str:
    return count(None if number is None else math.ceil(number))


def _memory(amount: float) -> str:
    return size(amount) if amount >= 100 << 20 else f"{amount / 2**20:.1f} MiB"


def mebibytes(amount: float) -> str:
    """Bytes as a table has them, in MiB."""
    value = amount / 2**20
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", "\N{MINUS SIGN}")


def milli(cpus: float) -> str:
    """Thousandths of a CPU, as Kubernetes writes them."""
    thousandths = 1000 * cpus
    return f"{thousandths:.0f}" if thousandths >= 10 or thousandths < 0.001 else f"{thousandths:.2g}"


def yaml(platform: str, reserve: Reserve) -> str:
    """A RuntimeClass with what to reserve (Kubernetes, node.k8s.io/v1, Pod Overhead).

    Both names are DNS labels, as Kubernetes has them, and so no word of a stranger's file becomes YAML of its own.
    """
    name = re.sub(r"[^a-z0-9]+", "-", platform.lower())[:63].strip("-") or "platform"
    handler = _HANDLERS.get(platform, name)
    return (
        "apiVersion: node.k8s.io/v1\n"
        "kind: RuntimeClass\n"
        "metadata:\n"
        f'  name: "{name}"\n'
        f'handler: "{handler}"'
        "  # as containerd's or CRI-O's configuration names it\n"
        "overhead:\n"
        "  podFixed:\n"
        f'    memory: "{reserve.memory >> 10}Ki"\n'
        f'    cpu: "{math.ceil(1000 * reserve.cpu)}m"\n'
    )


def equivalents(reserve: Reserve) -> list[str]:
    """The same for who limits an instance by Docker's or systemd's options: what comes on top of the workload's."""
    memory, cpu = f"{reserve.memory >> 10}", math.ceil(1000 * reserve.cpu)
    return [
        f"docker run: --memory and --cpus of your workload, plus {memory}k and {cpu / 1000:g}",
        f"systemd: MemoryMax= and CPUQuota= of your workload, plus {memory}K and {cpu / 10:g}%;"
        f" TasksMax= plus {reserve.tasks}",
    ]


def held(number: float) -> str:
    """What a real fill held, for who hovers."""
    return f"a real fill held {count(number)}"


def stopped(stop: Stop) -> str:
    """Why a fill ended, in general."""
    return _STOPS[stop]


def about(report: CapacityReport) -> str:
    """What the figures are of, for below the table."""
    room = size(report.room)
    kind = "Idle instances" if not report.active else f"Instances, {100 * report.active:.0f} % of them at work,"
    given = (
        f"as if the host had {size(report.budget)} for them (--budget, counted by tare: no control group enforces it)"
        if report.budget
        else f"{size(report.reserve)} stay free for the host (--reserve)"
    )
    return (
        f"{kind} share {room} of memory and {number_of(round(report.cpus), 'CPU')}; {given}. In brackets and as"
        " lines: 90 % over fills (Fieller). Memory is what their processes have alone (own), the kernel's for them and"
        f" the growth of the daemons (engine).{_explained(report)}{_priced(report)}"
        f"{' ' if report.host else ''}{report.host}"
    )


def _explained(report: CapacityReport) -> str:
    """How much of the fall of MemAvailable the parts explain, and where the host's own moves hide it."""
    shares = {p.platform: share for p in report.platforms if (share := p.memory.explained_percent) is not None}
    hidden = [platform.platform for platform in report.platforms if platform.platform not in shares]
    text = ""
    if shares:
        low, high = (f"{end(shares.values()):.0f}" for end in (min, max))
        ends = low if low == high else f"{low} to {high}"
        fall = "the fall of MemAvailable, without other processes' growth"
        text = f" They explain {ends} % of {fall}; rest: what they do not."
    if hidden:
        moved = "the host's other work moved MemAvailable by more than a tenth of what the instances take"
        text += f" Of {', '.join(hidden)} that share is not known, as {moved}; rest: by how much, at most."
    return text


def rest(memory: MemoryPartsReport) -> str:
    """What the parts do not explain, in MiB; where it is not known, how far it may be from nothing."""
    if memory.explained_percent is not None:
        return mebibytes(memory.unexplained)
    if memory.unexplained_half is None:
        return EMPTY
    return f"±{mebibytes(abs(memory.unexplained) + memory.unexplained_half)}"


def host(facts: Mapping[str, Any]) -> str:
    """How the host's kernel gives out memory, from the campaign's `HostFacts`; "" where they do not say."""
    policy, swap = facts.get("memory_policy"), facts.get("swap_bytes")
    if not isinstance(policy, Mapping) or not isinstance(swap, int):
        return ""
    swapped = (
        f"swap {size(swap)} (swappiness {policy.get('swappiness')}), which no instance gets" if swap else "no swap"
    )
    known = {"overcommit": policy.get("overcommit"), "KSM": policy.get("merging"), "THP": facts.get("huge_pages")}
    parts = [swapped, *(f"{name} {value}" for name, value in known.items() if isinstance(value, str))]
    if isinstance(high := policy.get("high"), int):
        parts.append(f"memory.high of tare's own group {size(high)}")
    parts.append("a balloon by which the hypervisor may take memory back" if policy.get("balloon") else "no balloon")
    return f"The host's memory: {', '.join(parts)}."


def _priced(report: CapacityReport) -> str:
    if report.prices is None:
        return ""
    host = report.prices
    return (
        f" Prices: {host.name} of {host.cpus:g} CPUs and {host.memory_gib:g} GiB at {host.price:,g} {host.currency} a"
        f" month ({host.source}, {host.date.isoformat()})."
    )


def broken(platform: str, block: int, reason: str) -> str:
    """A fill that cannot be read."""
    return f"{platform}, block {block + 1}: its fill cannot be read: {reason}"
