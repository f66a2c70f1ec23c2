"""The restart of the engine that instances share, beside running ones: only of an engine of tare's own.

``restart``: from its beginning until a new instance has run a first command; ``answers``: until the engine is there
again; ``survivors``: the share of the running instances that run a command afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tare.model import Direction, Metric
from tare.workloads.apart import Restart, RestartWorkload
from tare.workloads.base import Outcome, Params
from tare.workloads.life.programs import WAITS


class EngineRestart(RestartWorkload):
    """Parameter: ``running``."""

    name = "engine-restart"
    title = "the restart of the engine that instances share, beside running ones"
    metrics = (
        Metric("restart", "ms", Direction.LOWER, "until a new instance's first command has returned"),
        Metric("answers", "ms", Direction.LOWER, "until the engine is there again"),
        Metric("survivors", "%", Direction.HIGHER, "share of running instances that run a command afterwards"),
    )
    work_unit = "restart"
    profiles: ClassVar[Mapping[str, Params]] = {"quick": {"running": 2}, "full": {"running": 4}}
    payload = WAITS

    def read(self, restart: Restart) -> Outcome:
        figures = {
            "restart": restart.wall_ns / 1e6,
            "answers": restart.answers_ns / 1e6,
            "survivors": 100 * restart.survivors / restart.running,
        }
        return Outcome(figures, 1)


WORKLOAD = EngineRestart()
