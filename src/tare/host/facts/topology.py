"""Topology of CPUs (core, kind and memory), and the choice of CPUs to measure on. Pure functions on ``/sys``'s data.

The other thread of a measured core should stay idle: a program on it takes a third to a half of the core's speed, in
CPU time too, so no counter of the measured CPU shows it. Instances get CPUs of one kind, because a figure that depends
on where a thread ran (a performance core or an efficiency core) says nothing of the platform.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

#: Instances get all of this many CPUs. With more, some cores are left for the harness and the client.
ENOUGH = 2
#: One core of this many, and at least one, is left: a client that loads many CPUs from one core is the limit itself.
CORES_A_CLIENT = 4
#: CPUs of one kind have at least this share of the fastest CPU's capacity or highest clock rate. Among equal cores,
#: vendors favour some by up to 6 % (Turbo Boost Max 3.0); other kinds of cores have 70 % and less.
SAME_KIND = 0.85
#: From this many cores on beside the measured ones, the harness has one, and the client the others. With fewer, a
#: client with a core less would be the limit more often than the harness disturbs it.
CORES_APART = 3
#: Groups of CPUs: those of each core, kind or NUMA node.
Cores = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a machine's CPUs, as it shows it. An empty tuple: it shows nothing, or all CPUs are alike."""

    cores: Cores | None = None  # None: unknown.
    kinds: Cores = ()  # The fastest kind first.
    isolated: tuple[int, ...] = ()  # The scheduler places nothing there by itself.
    nodes: Cores = ()  # Of each NUMA node.


def kinds_of(capacity: Mapping[int, int]) -> Cores:
    """Group CPUs by kind from their capacity or highest clock rate, the fastest kind first; empty for one kind."""
    kinds: list[list[int]] = []
    top = 0
    for cpu, value in sorted(capacity.items(), key=lambda item: (-item[1], item[0])):
        if not kinds or value < SAME_KIND * top:
            kinds.append([])
            top = value
        kinds[-1].append(cpu)
    return tuple(tuple(sorted(kind)) for kind in kinds) if len(kinds) > 1 else ()


def cores_of(siblings: Mapping[int, tuple[int, ...]], *, virtual: bool) -> Cores | None:
    """Return the cores from the ``thread_siblings_list`` of all CPUs, without offline CPUs; None: unknown.

    ``virtual``: in a guest, cores of one thread each may really be two halves of one core, so nothing is known.
    """
    if not siblings or not all(cpu in group for cpu, group in siblings.items()):
        return None
    cores = tuple(sorted({tuple(cpu for cpu in group if cpu in siblings) for group in siblings.values()}))
    return None if virtual and all(len(core) == 1 for core in cores) else cores


def siblings_of(cpus: Collection[int], cores: Iterable[Sequence[int]] | None) -> tuple[int, ...]:
    """Return the other threads of these CPUs' cores; empty if the cores are unknown."""
    return tuple(sorted({cpu for core in cores or () if set(core) & set(cpus) for cpu in core} - set(cpus)))


def choose(usable: Collection[int], layout: Layout, count: int | None = None) -> tuple[int, ...]:
    """Return ``count`` CPUs for the instances, each of a core of its own while there are enough cores: the last ones.

    They are isolated CPUs if there are any, because these were reserved for such a purpose. Otherwise they are of the
    fastest kind, and of one NUMA node, or of more if these are too few. The first CPUs are left for the harness, the
    client and interrupts. None: one thread of each core of such a group, except the first quarter's; both threads if
    this leaves only one core; both of two CPUs; all isolated CPUs. With one CPU, platforms that are threads themselves,
    such as gVisor's systrap or a machine with its monitor, would not run as they do for their users.
    """
    pool = next((pool for pool in _pools(usable, layout) if len(pool) >= (count or 1)), sorted(usable))
    cpus_by_last: dict[int, list[int]] = {}  # The pool's CPUs of each core, the last first, by the last.
    for cpu in sorted(pool, reverse=True):
        core = (cpu, *siblings_of((cpu,), layout.cores))
        cpus_by_last.setdefault(max(set(core) & set(pool)), []).append(cpu)
    by_core = [cpus_by_last[last] for last in sorted(cpus_by_last, reverse=True)]
    if count is None and (len(pool) <= ENOUGH or set(pool) <= set(layout.isolated)):
        count = len(pool)
    if count is None:
        kept = by_core[: max(1, len(by_core) - max(1, len(by_core) // CORES_A_CLIENT))]
        threads = [core[0] for core in kept] if len(kept) >= ENOUGH else [cpu for core in kept for cpu in core]
        return tuple(sorted(threads)[1 if len(threads) == len(pool) else 0 :])
    # One thread of each core; second threads only if there are no more cores.
    order = [core[turn] for turn in range(max(map(len, by_core))) for core in by_core if turn < len(core)]
    return tuple(sorted(order[:count]))


def _pools(usable: Collection[int], layout: Layout) -> Iterator[list[int]]:
    """Yield groups of CPUs to choose from, the best first."""
    isolated = set(usable) & set(layout.isolated)
    for cpus in ([isolated] if isolated else []) + [set(usable)]:
        fastest = next(filter(None, (cpus & set(kind) for kind in layout.kinds)), cpus)
        on_nodes = [sorted(fastest & set(node)) for node in layout.nodes]
        yield max(reversed(on_nodes), key=len, default=sorted(fastest))
        yield sorted(fastest)
        yield sorted(cpus)


def elsewhere(usable: Collection[int], measured: Collection[int], cores: Cores | None) -> tuple[int, ...]:
    """Return the CPUs that are left for the harness and the client.

    First choice: CPUs of other cores than the measured. Second: other threads. Third: all but the last measured CPU, on
    which probes work. If that is the only CPU, that.
    """
    unmeasured = set(usable) - set(measured)
    away = unmeasured - set(siblings_of(measured, cores)) or unmeasured or set(usable) - {max(measured)}
    return tuple(sorted(away or set(usable)))


def apart(cpus: Collection[int], cores: Cores | None) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Split the CPUs that are left (`elsewhere`) into the harness's and the client's: the same where they are few."""
    by_core: dict[int, list[int]] = {}
    for cpu in sorted(cpus):
        by_core.setdefault(min((cpu, *siblings_of((cpu,), cores))), []).append(cpu)
    first, *others = by_core.values()
    if len(others) + 1 < CORES_APART:
        return tuple(sorted(cpus)), tuple(sorted(cpus))
    return tuple(first), tuple(sorted(cpu for core in others for cpu in core))
