"""The result of a calibration as data: what ``tare calibrate --json`` prints."""

from __future__ import annotations

from tare.records import Documented
from tare.report.model.result_models import DependenceReport

SCHEMA = "tare.calibration/1"


class RateReport(Documented):
    """A share with its exact 95 % interval."""

    count: int
    of: int
    low: float
    high: float


class Resolution(Documented):
    """The resolution of a campaign of this length for one platform, as fractions; null where two blocks do not fit."""

    seconds: float
    half_width: float | None
    smallest_effect: float | None


class Proof(Documented):
    """The comparisons of this length, of three arms, that had the verdict "equivalent"."""

    seconds: float
    equivalent: RateReport


class ConditionReport(Documented):
    """The baseline against itself, in one metric, under one load."""

    load: str
    metric: str
    margin: float
    false_alarms: RateReport
    covered: RateReport
    equivalent: RateReport
    invalid: int
    bias: float
    bias_low: float | None = None  # of its 95 % interval; None: one comparison, or a file of an earlier version
    bias_high: float | None = None
    half_width: float
    block_sd: float
    block_seconds: float
    resolves: list[Resolution]
    proofs: list[Proof] = []
    dependence: DependenceReport | None = None  # over the campaign's comparisons; None: too few blocks


class InjectedReport(Documented):
    """An amount of added work and the measured difference, as fractions."""

    platform: str
    metric: str
    added: float
    found: float
    low: float
    high: float
    n_blocks: int
    is_found: bool


class CalibrationReport(Documented):
    """One calibration of one machine."""

    schema_: str = SCHEMA
    machine: str  # processor and kernel for which it is valid
    at: float  # UNIX time, seconds
    workload: str
    conditions: list[ConditionReport]
    injected: list[InjectedReport]
