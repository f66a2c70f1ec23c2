"""Estimates, intervals and verdicts: pure functions on frames and arrays (docs/method.md)."""

from tare.analysis.analyse import analyse
from tare.analysis.quality.contamination import STEAL_LIMIT
from tare.analysis.results import Description, MetricResult, NoiseFloor, PlatformResult, TrialCounts, Unmarked
from tare.analysis.verdicts import Verdict, VerdictKind
from tare.estimates.intervals import Interval
from tare.model import CPU_COST

__all__ = [
    "CPU_COST",
    "STEAL_LIMIT",
    "Description",
    "Interval",
    "MetricResult",
    "NoiseFloor",
    "PlatformResult",
    "TrialCounts",
    "Unmarked",
    "Verdict",
    "VerdictKind",
    "analyse",
]
