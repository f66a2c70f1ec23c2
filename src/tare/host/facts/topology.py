"""Which CPUs share a core, a kind and a memory, and which to measure on. Pure functions on what ``/sys`` shows.

The other thread of a measured core is best left idle: what runs on it takes a third to a half of the core's speed, in
CPU time too, so that no counter of the measured CPU shows it. Instances get CPUs of one kind, since a figure that
depends on where a thread ran (a performance core or an efficiency core) says nothing of the platform.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

#: So many CPUs are all the instances'; of more, some cores are left for the harness and the client.
ENOUGH = 2
#: One core of so many, and at least one, is left: a client that loads many CPUs from one is the limit itself.
CORES_A_CLIENT = 4
#: CPUs of one kind have at least this share of the fastest one's capacity or highest clock rate. Among equal cores
#: vendors favour some by up to 6 % (Turbo Boost Max 3.0); other kinds of cores have 70 % and less.
SAME_KIND = 0.85
#: Groups of CPUs: those of each core, kind or NUMA node.
Cores = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """What a machine shows of its CPUs. An empty tuple: nothing, or all CPUs are alike."""

    cores: Cores | None = None  # None: not known
    kinds: Cores = ()  # the fastest kind first
    isolated: tuple[int, ...] = ()  # the scheduler places nothing there by itself
    nodes: Cores = ()  # of each NUMA node


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
    """The cores from every online CPU's ``thread_siblings_list``, those that are offline left out; None: not known.

    ``virtual``: a guest whose every core has one thread may have been shown that for two halves of one core, so that
    nothing is known.
    """
    if not siblings or not all(cpu in group for cpu, group in siblings.items()):
        return None
    cores = tuple(sorted({tuple(cpu for cpu in group if cpu in siblings) for group in siblings.values()}))
    return None if virtual and all(len(core) == 1 for core in cores) else cores


def siblings_of(cpus: Collection[int], cores: Iterable[Sequence[int]] | None) -> tuple[int, ...]:
    """The other threads of these CPUs' cores; none where the cores are not known."""
    return tuple(sorted({cpu for core in cores or () if set(core) & set(cpus) for cpu in core} - set(cpus)))


def choose(usable: Collection[int], layout: Layout, count: int | None = None) -> tuple[int, ...]:
    """Return ``count`` CPUs for the instances, each of a core of its own while there are enough cores: the last ones.

    They are isolated ones where there are any, as these were kept free for this; else of the fastest kind, and of one
    NUMA node; wider only where these are too few. The first CPUs are left for the harness, the client and interrupts.
    None: one thread of each core of such a group but the first quarter's; both threads of the only core that this
    leaves, and of two CPUs both (with one CPU, platforms that are threads themselves, as gVisor's systrap and a machine
    with its monitor, are not what their users have); all of those that are isolated.
    """
    pool = next((pool for pool in _pools(usable, layout) if len(pool) >= (count or 1)), sorted(usable))
    cpus_by_last: dict[int, list[int]] = {}  # the pool's CPUs of each core, the last first, by the last
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
    # One thread of each core; second ones only when there are no more cores.
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
    """The CPUs that are left for the harness and the client.

    Those of other cores than the measured; where there are none, other threads; where there are none either, all but
    the last measured one, on which probes work; and where that is the only one, that.
    """
    unmeasured = set(usable) - set(measured)
    away = unmeasured - set(siblings_of(measured, cores)) or unmeasured or set(usable) - {max(measured)}
    return tuple(sorted(away or set(usable)))
