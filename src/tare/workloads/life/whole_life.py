"""From nothing to nothing: an instance is made, started, entered by one command, told to end, and removed.

Each part is timed from its command, as a user types it, until it has come about (`tare.workloads.apart.Operation`);
``create`` and ``remove`` also have what a user of the bare runtimes makes and removes by hand: root, network, bundle.
``whole`` is the clock's time over all of it, without the time in which commands wait to be timed: it is checked against
the sum of the parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.errors import ParseError
from tare.model import Direction, Metric
from tare.workloads.apart import LifeWorkload, Operation, Round
from tare.workloads.base import Outcome, Params
from tare.workloads.life.programs import WAITS

#: The largest share of the whole that may be in none of the parts.
BETWEEN = 0.05
PARTS = (Operation.CREATE, Operation.START, Operation.EXECUTE, Operation.STOP, Operation.REMOVE)


class WholeLife(LifeWorkload):
    """Parameter: ``time_s``."""

    name = "whole-life"
    title = "an instance from nothing to nothing: created, started, one command run, stopped, removed"
    metrics = (
        Metric("whole", "ms", Direction.LOWER, "from nothing to nothing, one command run inside"),
        Metric("cpu", "ms", Direction.LOWER, "CPU time of all of it: commands, instance, daemons", headline=True),
        Metric("create", "ms", Direction.LOWER, "until root, network and the platform's record are made"),
        Metric("start", "ms", Direction.LOWER, "until the platform says that it runs"),
        Metric("execute", "ms", Direction.LOWER, "until a command run inside has returned"),
        Metric("stop", "ms", Direction.LOWER, "until no process is left, its program told to end"),
        Metric("remove", "ms", Direction.LOWER, "until nothing of it is left on the host"),
        *(
            Metric(
                f"{part}-cpu", "ms", Direction.LOWER, f"CPU time of {part}: the command's, the instance's, the daemons'"
            )
            for part in PARTS
        ),
    )
    work_unit = "life"
    profiles: ClassVar[Mapping[str, Params]] = {"quick": {"time_s": 3}, "full": {"time_s": 20}}
    payload = WAITS
    each = PARTS

    def read(self, rounds: Sequence[Round]) -> Outcome:
        whole_ns = sum(steps[None].wall_ns for steps in rounds)
        parts_ns = sum(steps[part].wall_ns for steps in rounds for part in self.each)
        if not (1 - BETWEEN) * whole_ns <= parts_ns <= (1 + BETWEEN) * whole_ns:
            raise ParseError(f"lives took {whole_ns / 1e6:.1f} ms, and their parts {parts_ns / 1e6:.1f} ms")
        series: dict[str, Sequence[float | None]] = {
            "whole": [steps[None].wall_ns / 1e6 for steps in rounds],
            "cpu": [steps[None].cpu_ns / 1e6 for steps in rounds],
            **{part.value: [steps[part].wall_ns / 1e6 for steps in rounds] for part in self.each},
            # A part without a command (a signal, removal by hand) has no CPU time of its own.
            **{f"{part}-cpu": [steps[part].cpu_ns / 1e6 or None for steps in rounds] for part in self.each},
        }
        return Outcome({}, len(rounds), series)


WORKLOAD = WholeLife()
