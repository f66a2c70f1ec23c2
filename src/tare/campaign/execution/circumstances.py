"""The circumstances of one trial: when it began, how long it took, how busy the host was meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from tare.host.facts import counters
from tare.model import Sample, SliceFacts, Status, Trial, TrialKey


def total_ns(times: Iterable[int | None]) -> int | None:
    """Return the sum of CPU times; None when one of them is unknown, as the work's cost is then."""
    total = 0
    for time_ns in times:
        if time_ns is None:
            return None
        total += time_ns
    return total


@dataclass(frozen=True, slots=True)
class HostReading:
    """The host's counters at one moment."""

    at_ns: int
    ticks: tuple[int, int] | None  # stolen, and all; None where the kernel does not count what is stolen
    waited_us: int | None  # PSI: time in which some task waited for a CPU; None where the kernel has no PSI
    load: float

    @classmethod
    def take(cls, cpus: Sequence[int]) -> Self:
        """Read the host's counters; those that are counted by CPU, for these CPUs only."""
        ticks = counters.steal_and_total(cpus)
        waited = counters.pressure_us("cpu")
        return cls(time.monotonic_ns(), ticks, waited, counters.load())

    def steal_since(self, before: HostReading) -> float | None:
        """Share of the CPUs' time that the hypervisor below took away, 0 to 1.

        None where it is not counted, when the time is too short, and for counters that cannot be.
        """
        if self.ticks is None or before.ticks is None:
            return None
        stolen, total = (now - then for now, then in zip(self.ticks, before.ticks, strict=True))
        return stolen / total if 0 <= stolen <= total and total > 0 else None

    def pressure_since(self, before: HostReading) -> float | None:
        """Share of the time in which some task waited for a CPU, 0 to 1; None without PSI, or if it runs backwards."""
        if self.waited_us is None or before.waited_us is None or self.at_ns <= before.at_ns:
            return None
        waited_us = self.waited_us - before.waited_us
        return min(1.0, waited_us * 1000 / (self.at_ns - before.at_ns)) if waited_us >= 0 else None


@dataclass(frozen=True, slots=True)
class TrialClock:
    """The time and the host's counters before a trial; makes the trial's row when it has ended."""

    cpus: tuple[int, ...]
    started: float
    before: HostReading

    @classmethod
    def begin(cls, cpus: Sequence[int]) -> Self:
        """Start the clock, for the host CPUs that instances are pinned to."""
        return cls(tuple(cpus), time.time(), HostReading.take(cpus))

    def ended(
        self,
        key: TrialKey,
        seq: int,
        samples: tuple[Sample, ...],
        *,
        cpu_ns: int | None,
        daemon_cpu_ns: int | None,
        slices: tuple[SliceFacts, ...] = (),
        outputs: Mapping[str, bytes] | None = None,
    ) -> Trial:
        """Return the row of a successful trial."""
        return self._row(key, seq, Status.OK, None, samples, cpu_ns, daemon_cpu_ns, slices, outputs or {})

    def failed(
        self,
        key: TrialKey,
        seq: int,
        reason: str,
        *,
        status: Status = Status.FAILED,
        outputs: Mapping[str, bytes] | None = None,
    ) -> Trial:
        """Return the row of a failed or unsupported trial, with what its tools had printed until then."""
        return self._row(key, seq, status, reason, (), None, None, (), outputs or {})

    def _row(
        self,
        key: TrialKey,
        seq: int,
        status: Status,
        reason: str | None,
        samples: tuple[Sample, ...],
        cpu_ns: int | None,
        daemon_cpu_ns: int | None,
        slices: tuple[SliceFacts, ...],
        outputs: Mapping[str, bytes],
    ) -> Trial:
        now = HostReading.take(self.cpus)
        return Trial(
            key=key,
            status=status,
            reason=reason,
            seq=seq,
            started=self.started,
            wall_ns=now.at_ns - self.before.at_ns,
            cpu_ns=cpu_ns,
            daemon_cpu_ns=daemon_cpu_ns,
            steal=now.steal_since(self.before),
            pressure=now.pressure_since(self.before),
            load=self.before.load,
            samples=samples,
            slices=slices,
            outputs=outputs,
        )
