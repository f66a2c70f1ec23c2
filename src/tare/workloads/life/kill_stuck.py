"""The end of an instance whose program does not end when it is told: killed by the platform's own command.

From the command, as a user types it, until no process of the instance is left. Each round is of a new instance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.model import Direction, Metric
from tare.workloads.apart import LifeWorkload, Operation, Round
from tare.workloads.base import Outcome, Params
from tare.workloads.life.programs import STAYS


class KillStuck(LifeWorkload):
    """Parameter: ``time_s``."""

    name = "kill"
    title = "the end of an instance that does not end when it is told"
    metrics = (
        Metric("gone", "ms", Direction.LOWER, "until no process of it is left"),
        Metric("cpu", "ms", Direction.LOWER, "CPU time of it: the command's, the instance's, the daemons'"),
    )
    work_unit = "end"
    profiles: ClassVar[Mapping[str, Params]] = {"quick": {"time_s": 2}, "full": {"time_s": 20}}
    payload = STAYS
    each = (Operation.CREATE, Operation.START, Operation.KILL, Operation.REMOVE)

    def read(self, rounds: Sequence[Round]) -> Outcome:
        steps = [steps[Operation.KILL] for steps in rounds]
        series = {
            "gone": [step.wall_ns / 1e6 for step in steps],
            "cpu": [step.cpu_ns / 1e6 for step in steps],
        }
        return Outcome({}, len(steps), series)


WORKLOAD = KillStuck()
