"""The least memory limit with which STREAM's triad goes on: that of `memory-least` for a program that needs memory.

Plauth 2017 asked for the least memory "that did not degrade performance" of an application. The program here holds
three arrays and nothing else: what the limit is above ``3 * array_bytes`` is what the platform takes beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tare.workloads.base import Params
from tare.workloads.memory import stream
from tare.workloads.memory.memory_least import MIB, MemoryLeast


class MemoryLeastStream(MemoryLeast):
    """Parameters: ``degrades``, a share of the bandwidth that may be lost, ``tries``; and those of `stream`."""

    name = "memory-least-stream"
    title = "the least memory limit that lets STREAM's triad work on three arrays of 64 MiB"
    inner = stream.WORKLOAD
    metric = "triad"
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"degrades": 0.05, "tries": 5, "array_bytes": 64 * MIB, "slice_ms": 50, "rounds": 4, "warmup_ms": 50},
        "full": {
            "degrades": 0.05,
            "tries": 5,
            "array_bytes": 64 * MIB,
            "slice_ms": 200,
            "rounds": 10,
            "warmup_ms": 200,
        },
    }


WORKLOAD = MemoryLeastStream()
