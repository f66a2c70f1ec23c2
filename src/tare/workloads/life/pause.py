"""A busy instance is paused and goes on, by the platform's own commands.

``pause``: from the command until it has returned; the host then sees that the instance uses no CPU time, or the trial
fails. ``resume``: from the command until the instance uses CPU time again, which may be before the command returns.
``ok``: the share of pauses whose command did not fail: runc's does on cgroup v1 if the kernel takes too long to freeze
a busy instance, and lets it go on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.model import Direction, Metric
from tare.workloads.apart import LifeWorkload, Operation, Round
from tare.workloads.base import Outcome, Params
from tare.workloads.life.programs import WORKS


class Pause(LifeWorkload):
    """Parameter: ``time_s``."""

    name = "pause"
    title = "a busy instance is paused, and goes on"
    metrics = (
        Metric("pause", "ms", Direction.LOWER, "until it stands still"),
        Metric("resume", "ms", Direction.LOWER, "until it goes on", headline=True),
        Metric("ok", "%", Direction.HIGHER, "share of pauses that succeeded"),
    )
    work_unit = "pause"
    profiles: ClassVar[Mapping[str, Params]] = {"quick": {"time_s": 2}, "full": {"time_s": 20}}
    payload = WORKS
    before = (Operation.CREATE, Operation.START)
    each = (Operation.PAUSE, Operation.RESUME)
    may_fail = frozenset({Operation.PAUSE})

    def read(self, rounds: Sequence[Round]) -> Outcome:
        paused = [steps for steps in rounds if Operation.PAUSE in steps]
        series = {part.value: [steps[part].wall_ns / 1e6 for steps in paused] for part in self.each}
        return Outcome({"ok": 100 * len(paused) / len(rounds)}, len(paused), series)


WORKLOAD = Pause()
