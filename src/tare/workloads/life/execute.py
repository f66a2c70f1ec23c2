"""A command run in a running instance by the platform's own way in: `docker exec`, `runc exec`, `lxc-attach` ...

From the command, as a user types it, until the first byte that the command inside has printed, and until it returned.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.model import Direction, Metric
from tare.workloads.apart import LifeWorkload, Operation, Round
from tare.workloads.base import Outcome, Params
from tare.workloads.life.operation_tails import TAILS, tails
from tare.workloads.life.programs import WAITS


class Execute(LifeWorkload):
    """Parameter: ``time_s``."""

    name = "exec"
    title = "a command run in a running instance, by the platform's own way in"
    metrics = (
        Metric("return", "ms", Direction.LOWER, "until the command has returned"),
        Metric("p50", "ms", Direction.LOWER, "the same: the median"),
        *TAILS,
        Metric("first-output", "ms", Direction.LOWER, "until the first byte of its output"),
        Metric("cpu", "ms", Direction.LOWER, "CPU time of one: the command's, the instance's, the daemons'"),
    )
    work_unit = "command"
    profiles: ClassVar[Mapping[str, Params]] = {"quick": {"time_s": 7}, "full": {"time_s": 30}}
    payload = WAITS
    before = (Operation.CREATE, Operation.START)
    each = (Operation.EXECUTE,)

    def read(self, rounds: Sequence[Round]) -> Outcome:
        steps = [steps[Operation.EXECUTE] for steps in rounds]
        returns = [step.wall_ns / 1e6 for step in steps]
        series: dict[str, Sequence[float | None]] = {
            "return": returns,
            "first-output": [None if step.first_ns is None else step.first_ns / 1e6 for step in steps],
            "cpu": [step.cpu_ns / 1e6 for step in steps],
        }
        figures, unseen = tails(returns)
        return Outcome({"p50": statistics.median(returns), **figures}, len(steps), series, unseen)


WORKLOAD = Execute()
