"""The facts around one trial: when it began, how long it took, what the host was doing meanwhile."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from tare.campaign.telemetry import Reading
from tare.model import Sample, SliceFacts, Status, Trial, TrialKey


@dataclass(frozen=True, slots=True)
class TrialClock:
    """Begun before a trial; makes its row when it ends."""

    cpus: tuple[int, ...]
    started: float
    before: Reading

    @classmethod
    def begin(cls, cpus: Sequence[int]) -> Self:
        """Start the clock, for the host CPUs that instances are pinned to."""
        return cls(tuple(cpus), time.time(), Reading.take(cpus))

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
        """The row of a trial that went well."""
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
        """The row of a trial that did not, with what its tools had printed by then."""
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
        now = Reading.take(self.cpus)
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
