"""Current disturbances of the measured CPUs, from two neighbouring readings of the telemetry.

The report judges whole trials by the same sums, as frames (`tare.analysis.quality.contamination.windows`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tare.model import CpuTick, Tick


@dataclass(frozen=True, slots=True)
class Noise:
    """Noise between two readings: shares of the measured CPUs' time (0 to 1), and pages swapped a second.

    ``foreign``: None if unknown because an instance ended. ``cpu``: the measured CPU with most work of other programs,
    None if the host does not count it by CPU. ``memory``: the share of the time in which some task waited for memory;
    None if the kernel does not report it.
    """

    steal: float
    foreign: float | None
    cpu: int | None
    memory: float | None
    swapped: float


def noise(before: Tick, after: Tick, cpus: Collection[int]) -> Noise | None:
    """Return the noise between two readings; None if no time passed, or none of the CPUs is in both."""
    pairs = [(then, now) for now in after.cpus for then in before.cpus if now.cpu == then.cpu and now.cpu in cpus]
    span_ns = after.at_ns - before.at_ns
    if after.first or span_ns <= 0 or not pairs:
        return None
    total_ms = sum(_total_ms(now) - _total_ms(then) for then, now in pairs)
    stolen_ms = sum(now.steal_ms - then.steal_ms for then, now in pairs)
    pages = after.swapped_in + after.swapped_out - before.swapped_in - before.swapped_out
    waited_us = (
        None
        if after.memory_pressure_us is None or before.memory_pressure_us is None
        else after.memory_pressure_us - before.memory_pressure_us
    )
    return Noise(
        steal=stolen_ms / total_ms if total_ms > 0 else 0.0,
        foreign=_foreign(
            before, after, pairs, span_ns, everywhere={cpu_tick.cpu for cpu_tick in after.cpus} <= set(cpus)
        ),
        cpu=_busiest(pairs),
        memory=None if waited_us is None else 1_000 * waited_us / span_ns,
        swapped=1e9 * pages / span_ns,
    )


def _total_ms(tick: CpuTick) -> int:
    worked = tick.user_ms + tick.nice_ms + tick.system_ms + tick.irq_ms + tick.softirq_ms
    return worked + tick.idle_ms + tick.iowait_ms + tick.steal_ms


def _foreign(
    before: Tick, after: Tick, pairs: list[tuple[CpuTick, CpuTick]], span_ns: int, *, everywhere: bool
) -> float | None:
    harness_ns = after.own_ns - before.own_ns
    if harness_ns > span_ns:  # An instance ended, and its processes were counted as the harness's.
        return None
    here = [_here_ns(then, now) for then, now in pairs]
    counted = [here_ns for here_ns in here if here_ns is not None]
    if len(counted) == len(here):
        tare_ns = sum(counted)
    else:
        tare_ns = after.tare_ns - before.tare_ns - (0 if everywhere else after.client_ns - before.client_ns)
    ours = tare_ns + harness_ns + after.daemons_ns - before.daemons_ns + after.kernel_ns - before.kernel_ns
    ran_ns = sum(now.run_ns - then.run_ns for then, now in pairs)
    return max(0.0, (ran_ns - ours) / (span_ns * len(pairs)))


def _here_ns(then: CpuTick, now: CpuTick) -> int | None:
    return None if then.tare_ns is None or now.tare_ns is None else now.tare_ns - then.tare_ns


def _busiest(pairs: list[tuple[CpuTick, CpuTick]]) -> int | None:
    others = []
    for then, now in pairs:
        here_ns = _here_ns(then, now)
        if here_ns is None:
            return None
        others.append((now.run_ns - then.run_ns - here_ns, now.cpu))
    return max(others)[1]
