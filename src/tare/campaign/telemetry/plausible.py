"""Plausibility of the host's counters: kernels, hypervisors and lxcfs have shown impossible ones.

An idle time of 10^18 ticks, stolen time that runs backwards: such a reading is dropped, with its reason, and the window
between its neighbours takes its place. Where a counter has begun anew, readings agree with each other again from the
second on, and no window spans the break.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

from tare.model import CpuTick, InstanceTick, Tick

#: No counter is larger: as nanoseconds 36 years, as bytes an EiB; and sums of some of them are within 64 bits.
LARGEST = 1 << 60
#: How much more than the time that passed a CPU's counters may count, in ns: a paused machine's time comes at once, as
#: stolen. And by how much they may run backwards: idle time and that of waiting for disks do (proc(5)).
AHEAD_NS, BEHIND_NS = 3_600 * 10**9, 10**9
#: How many times as much as the time that passed a counter of one CPU may count: clocks are coarse.
_TIMES = 10
_KINDS = tuple(kind.name for kind in fields(CpuTick) if kind.name.endswith("_ms"))
_NUMBERS = {
    Tick: tuple(number.name for number in fields(Tick) if number.type in {"int", "int | None"}),
    CpuTick: (*_KINDS, "run_ns", "tare_ns"),
    InstanceTick: tuple(number.name for number in fields(InstanceTick) if number.name != "arm"),
}
#: Nanoseconds of a counter's unit: those of each CPU, of all together, and PSI.
_OF_A_CPU = {**dict.fromkeys(_KINDS, 10**6), "run_ns": 1}
_OF_ALL = ("tare_ns", "client_ns", "daemons_ns", "kernel_ns")
_PRESSURES = ("cpu_pressure_us", "memory_pressure_us", "io_pressure_us")
#: Counters that only grow, and by how much between two readings: 16 TiB of pages, a PiB of a disk. To the harness' own
#: time comes that of each process that ends, for all of its life.
_GROWING = {
    "at_ns": LARGEST, "own_ns": LARGEST, "swapped_in": 1 << 32, "swapped_out": 1 << 32, "disk_read_bytes": 1 << 50,
    "disk_written_bytes": 1 << 50,
}  # fmt: skip


@dataclass(slots=True)
class Judge:
    """Takes the readings of a campaign in their order."""

    _kept: Tick | None = None
    _dropped: Tick | None = None  # the reading before, where it was dropped

    def judged(self, tick: Tick) -> Tick | str:
        """Return the reading, ``first`` where no window may end at it; or why it is dropped."""
        problem = impossible(tick)
        if problem is not None:
            self._dropped = None
            return problem
        problem = None if self._kept is None else contradiction(self._kept, tick)
        anew = self._dropped is not None and contradiction(self._dropped, tick) is None
        if problem is not None and not anew:
            self._dropped = tick
            return problem
        tick = replace(tick, first=self._kept is None or problem is not None)
        self._kept, self._dropped = tick, None
        return tick


def impossible(tick: Tick) -> str | None:
    """Return the first number of a reading that no counter has; None: there is none."""
    parts: tuple[Tick | CpuTick | InstanceTick, ...] = (tick, *tick.cpus, *tick.instances)
    for part in parts:
        for name in _NUMBERS[type(part)]:
            value = getattr(part, name)
            if value is not None and not -LARGEST < value < LARGEST:
                whose = f"CPU {part.cpu}'s " if isinstance(part, CpuTick) else ""
                return f"{whose}{name} is beyond all that is counted"
    return None


def contradiction(before: Tick, now: Tick) -> str | None:
    """Return why the second reading cannot follow the first: a counter that runs backwards or away; None: it can."""
    for cpu, name, grown, least, most in _steps(before, now):
        if not least <= grown <= most:
            whose = "" if cpu is None else f"CPU {cpu}'s "
            return f"{whose}{name} {'runs backwards' if grown < 0 else 'runs away'}"
    return None


def _steps(before: Tick, now: Tick) -> Iterator[tuple[int | None, str, int, float, float]]:
    """Each counter that is in both: its CPU, its name, by how much it grew; and the least and most that it may have."""
    most_ns = _TIMES * max(0, now.at_ns - before.at_ns) + AHEAD_NS
    cpus = {cpu.cpu: cpu for cpu in before.cpus}
    for cpu in now.cpus:
        if (former := cpus.get(cpu.cpu)) is not None:
            for name, unit_ns in _OF_A_CPU.items():
                grown = getattr(cpu, name) - getattr(former, name)
                yield cpu.cpu, name, grown, -BEHIND_NS / unit_ns, most_ns / unit_ns
    of_all_ns = most_ns * max(1, len(now.cpus))
    bounds: dict[str, tuple[float, float]] = dict.fromkeys(_OF_ALL, (-BEHIND_NS, of_all_ns))
    bounds |= dict.fromkeys(_PRESSURES, (-BEHIND_NS / 1000, most_ns / 1000))
    bounds |= {name: (0, most) for name, most in _GROWING.items()}
    for name, (least, most) in bounds.items():
        then, value = getattr(before, name), getattr(now, name)
        if then is not None and value is not None:
            yield None, name, value - then, least, most
