"""Estimates, intervals and verdicts: pure functions on frames and arrays (docs/method.md)."""

from tare.analysis.analyse import analyse
from tare.analysis.results import Counts, Description, MetricResult, NoiseFloor, PlatformResult, Unmarked
from tare.analysis.trust.contamination import STEAL_LIMIT
from tare.analysis.verdicts import Kind, Verdict
from tare.estimates.intervals import Interval
from tare.model import CPU_COST

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
