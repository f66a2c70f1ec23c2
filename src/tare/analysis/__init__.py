"""Estimates, intervals and verdicts: pure functions on frames and arrays (docs/method.md)."""

from tare.analysis.analyse import analyse
from tare.analysis.contamination import STEAL_LIMIT
from tare.analysis.intervals import Interval
from tare.analysis.results import Counts, Description, MetricResult, NoiseFloor, PlatformResult, Unmarked
from tare.analysis.verdicts import CPU_COST, Kind, Verdict

__all__ = [
    "CPU_COST",
    "STEAL_LIMIT",
    "Counts",
    "Description",
    "Interval",
    "Kind",
    "MetricResult",
    "NoiseFloor",
    "PlatformResult",
    "Unmarked",
    "Verdict",
    "analyse",
]
