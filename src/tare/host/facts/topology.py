"""Which CPUs share a core, and which to measure on: the other thread of a measured core is best left idle.

What runs on it takes a third to a half of the core's speed, in CPU time too, so that no counter of the measured CPU
shows it. Pure functions on what ``/sys`` shows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

#: So many CPUs are all the instances'; of more, one is left for the harness and the client.
ENOUGH = 2
#: The CPUs of each core, each once.
Cores = tuple[tuple[int, ...], ...]


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


def choose(usable: Collection[int], cores: Cores | None, count: int | None = None) -> tuple[int, ...]:
    """``count`` CPUs for the instances, each of a core of its own while there are enough cores: the last ones.

    The first CPUs are left for the harness, the client and interrupts. None: all CPUs but the first, of two CPUs both:
    with one CPU, platforms that are threads themselves (gVisor's systrap, a machine with its monitor) are not what
    their users have.
    """
    if count is None:
        count = len(usable) - 1 if len(usable) > ENOUGH else len(usable)
    cpus_by_last: dict[int, list[int]] = {}  # the usable CPUs of each core, the last first, by the last
    for cpu in sorted(usable, reverse=True):
        core = (cpu, *siblings_of((cpu,), cores))
        cpus_by_last.setdefault(max(set(core) & set(usable)), []).append(cpu)
    by_core = [cpus_by_last[last] for last in sorted(cpus_by_last, reverse=True)]
    # One thread of each core; second ones only when there are no more cores.
    order = [core[turn] for turn in range(max(map(len, by_core))) for core in by_core if turn < len(core)]
    return tuple(sorted(order[:count]))


def elsewhere(usable: Collection[int], measured: Collection[int], cores: Cores | None) -> tuple[int, ...]:
    """The CPUs that are left for the harness and the client.

    Those of other cores than the measured; where there are none, other threads; where there are none either, all but
    the last measured one, on which probes work; and where that is the only one, that.
    """
    unmeasured = set(usable) - set(measured)
    away = unmeasured - set(siblings_of(measured, cores)) or unmeasured or set(usable) - {max(measured)}
    return tuple(sorted(away or set(usable)))
