"""The result of a calibration: as data (``tare calibrate --json``), in a terminal, and as one line for `tare run`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tare.analysis.calibration import Injected, Rate, Trust
from tare.analysis.trust.dependence import SURE_P, Dependence
from tare.estimates.intervals import Interval
from tare.report.sentences.numbers import EMPTY, percent, signed, signed_range, span
from tare.store import known_part

SCHEMA = "tare.calibration/1"
#: File of the newest calibration, below TARE_HOME.
LATEST_CALIBRATION = "calibration.json"
#: Durations for which the smallest detectable effect is given, in seconds.
TIMES_S = (60.0, 300.0, 1800.0)
#: Lengths in seconds of the longer comparisons that may show "equivalent", and how many of a length there must be.
LONGER_S, MIN = (30.0, 60.0, 180.0), 6
#: Limits that the figures are checked against (docs/method.md).
MAX_ALARMS, COVERED, MAX_BIAS, MAX_MISS = 0.01, (0.93, 0.97), 0.001, 0.002


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RateReport(_Frozen):
    """A share with its exact 95 % interval."""

    count: int
    of: int
    low: float
    high: float

    def __str__(self) -> str:
        return (
            f"{self.count} of {self.of} ({percent(self.count / self.of)}, {percent(self.low)} to {percent(self.high)})"
        )


class Resolution(_Frozen):
    """What a campaign of this duration resolves for one platform, as fractions; null where two blocks do not fit."""

    seconds: float
    half_width: float | None
    smallest_effect: float | None


class Proof(_Frozen):
    """How many comparisons of this length, of three arms, had the verdict "equivalent"."""

    seconds: float
    equivalent: RateReport


class DependenceReport(_Frozen):
    """Lag-1 autocorrelation of blocks' log ratios, pooled over the comparisons of the campaign."""

    n_series: int
    n_blocks: int
    correlation: float  # less the bias of independent blocks
    low: float  # about 95 %
    high: float
    bias: float  # expected for independent blocks; about -1/n
    p: float  # of a correlation at least as large, for independent blocks


class ConditionReport(_Frozen):
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
    dependence: DependenceReport | None = None  # None: too few blocks, or a file of an earlier version


class InjectedReport(_Frozen):
    """An amount of added work and the measured difference, as fractions."""

    platform: str
    metric: str
    added: float
    found: float
    low: float
    high: float
    n_blocks: int
    is_found: bool


class CalibrationReport(_Frozen):
    """One calibration of one machine."""

    schema_: str = SCHEMA
    machine: str  # processor and kernel for which it is valid
    at: float  # UNIX time, seconds
    workload: str
    conditions: list[ConditionReport]
    injected: list[InjectedReport]

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=lambda name: name.rstrip("_"), populate_by_name=True
    )


def condition(load: str, trust: Trust, longer: Sequence[tuple[float, Trust]] = ()) -> ConditionReport:
    """One metric's result. ``longer``: lengths in seconds, each with the same blocks as comparisons so long."""
    return ConditionReport(
        load=load,
        metric=trust.metric,
        margin=trust.margin,
        false_alarms=_rate(trust.false_alarms),
        covered=_rate(trust.covered),
        equivalent=_rate(trust.equivalent),
        invalid=trust.invalid,
        bias=trust.bias.point,
        bias_low=_finite(trust.bias.low),
        bias_high=_finite(trust.bias.high),
        half_width=trust.half_width,
        block_sd=trust.block_sd,
        block_seconds=trust.seconds,
        resolves=[
            Resolution(
                seconds=time_s,
                half_width=_number_or_none(trust.half_width_after(time_s)),
                smallest_effect=_number_or_none(trust.smallest_effect(time_s)),
            )
            for time_s in TIMES_S
        ],
        proofs=[
            Proof(seconds=seconds, equivalent=_rate(comparison.equivalent))
            for seconds, comparison in longer
            if comparison.metric == trust.metric and comparison.equivalent.of >= MIN
        ],
        dependence=_dependence(trust.dependence) if trust.dependence is not None else None,
    )


def _dependence(dependence: Dependence) -> DependenceReport:
    low, high = dependence.interval
    return DependenceReport(
        n_series=dependence.n_series,
        n_blocks=dependence.n_blocks,
        correlation=dependence.correlation,
        low=low,
        high=high,
        bias=dependence.bias,
        p=dependence.p,
    )


def injection(injected: Injected) -> InjectedReport:
    """The result of one addition of work as data."""
    return InjectedReport(
        platform=injected.platform,
        metric=injected.metric,
        added=injected.share,
        found=injected.measured.point,
        low=injected.measured.low,
        high=injected.measured.high,
        n_blocks=injected.n_blocks,
        is_found=injected.is_found,
    )


def _rate(rate: Rate) -> RateReport:
    return RateReport(count=rate.count, of=rate.of, low=rate.low, high=rate.high)


def _number_or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def render(report: CalibrationReport) -> Group:
    """All tables of a calibration, for a terminal."""
    when = datetime.fromtimestamp(report.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    parts: list[RenderableType] = [Text(f"Calibration of {report.machine}, {when}, by {report.workload}", style="bold")]
    if report.conditions:
        parts += ["", Text("The baseline against itself: nothing differs, so what is seen is the instrument")]
        parts += [
            _baseline_table(report.conditions),
            *_failed_checks(report.conditions),
            _resolution_table(report.conditions),
        ]
        parts += (
            [_equivalence_table(report.conditions)] if any(condition.proofs for condition in report.conditions) else []
        )
        parts += _autocorrelations(report.conditions)
    if report.injected:
        parts += ["", Text("Work added to a platform, found against the same platform without")]
        parts += [_additions_table(report.injected), *_failed_additions(report.injected)]
    return Group(*parts)


def _baseline_table(conditions: Sequence[ConditionReport]) -> Table:
    table = _table("load", "metric", "false alarms", "intervals that hold zero", "equivalent", "invalid", "mean", "±")
    for condition in conditions:
        shares = (
            str(condition.false_alarms),
            str(condition.covered),
            str(condition.equivalent),
            str(condition.invalid),
        )
        table.add_row(condition.load, condition.metric, *shares, _mean(condition), percent(condition.half_width))
    return table


def _bias(condition: ConditionReport) -> tuple[float, float]:
    if condition.bias_low is None or condition.bias_high is None:
        return condition.bias, condition.bias
    return condition.bias_low, condition.bias_high


def _mean(condition: ConditionReport) -> str:
    low, high = _bias(condition)
    return f"{signed(100 * condition.bias, 3)} ± {100 * (high - low) / 2:.2f} %"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _failed_checks(conditions: Sequence[ConditionReport]) -> Iterator[Text]:
    """A line per failed check. A rate or a mean fails only where its whole interval lies beyond the limit."""
    for condition in conditions:
        where = f"{condition.load}, {condition.metric}"
        if condition.false_alarms.low > MAX_ALARMS:
            yield _bad(f"{where}: more than {percent(MAX_ALARMS)} false alarms")
        if condition.covered.high < COVERED[0] or condition.covered.low > COVERED[1]:
            yield _bad(
                f"{where}: its 95 % intervals hold zero in {percent(condition.covered.count / condition.covered.of)}"
            )
        low, high = _bias(condition)
        if low > MAX_BIAS or high < -MAX_BIAS:
            yield _bad(f"{where}: the mean of no difference is {_mean(condition)}")


def _autocorrelations(conditions: Sequence[ConditionReport]) -> Iterator[Text]:
    """Autocorrelation of blocks by condition; marked where they are not independent."""
    for condition in conditions:
        if (dependence := condition.dependence) is not None:
            text = (
                f"{condition.load}, {condition.metric}: lag-1 autocorrelation of the blocks"
                f" {signed(dependence.correlation, 2)}, {signed(dependence.low, 2)} to {signed(dependence.high, 2)}"
                " (independent blocks: 0)"
            )
            yield _bad(text) if dependence.p <= SURE_P else Text(text)


def _resolution_table(conditions: Sequence[ConditionReport]) -> Table:
    heads = [f"in {span(time_s)}" for time_s in TIMES_S]
    table = _table("load", "metric", *heads)
    for condition in conditions:
        cells = [
            EMPTY
            if time.smallest_effect is None or time.half_width is None
            else f"{percent(time.smallest_effect)} (±{percent(time.half_width)})"
            for time in condition.resolves
        ]
        table.add_row(condition.load, condition.metric, *cells)
    table.title = "Smallest effect that is told from none in 9 of 10 cases, one platform (half-width of its interval)"
    table.title_justify = "left"
    return table


def _equivalence_table(conditions: Sequence[ConditionReport]) -> Table:
    table = _table("load", "metric", "margin", *(f"in {span(time_s)}" for time_s in LONGER_S))
    for condition in conditions:
        by_length = {proof.seconds: str(proof.equivalent) for proof in condition.proofs}
        cells = [by_length.get(time_s, "too few") for time_s in LONGER_S]
        table.add_row(condition.load, condition.metric, f"± {percent(condition.margin)}", *cells)
    table.title = "Comparisons of the baseline with itself that prove it equivalent within the margin"
    table.title_justify = "left"
    return table


def _additions_table(injected: Sequence[InjectedReport]) -> Table:
    table = _table("platform", "metric", "added", "found, 95 % interval", "off by", "blocks")
    for addition in injected:
        interval = signed_range(_interval(addition))
        off = f"{signed(100 * (addition.found - addition.added), 2)} points"
        table.add_row(
            addition.platform, addition.metric, percent(addition.added), interval, off, str(addition.n_blocks)
        )
    return table


def _failed_additions(injected: Sequence[InjectedReport]) -> Iterator[Text]:
    for addition in injected:
        head = f"{addition.platform}, {addition.metric}: {percent(addition.added)} more work"
        if not addition.is_found:
            yield _bad(f"{head} was not found")
        if addition.low - MAX_MISS > addition.added or addition.high + MAX_MISS < addition.added:
            yield _bad(f"{head} looks like {percent(addition.found)}")


def line(home: Path, machine: str) -> str:
    """One line that `tare run` prints before it starts: the smallest detectable effects, or why they are not known."""
    try:
        report, _ = known_part(CalibrationReport, (home / LATEST_CALIBRATION).read_bytes())
    except FileNotFoundError:
        return "not calibrated: `tare calibrate` tells what this machine can resolve"
    except (OSError, ValidationError):
        return f"not calibrated: {home / LATEST_CALIBRATION} cannot be read; `tare calibrate` makes it anew"
    if report.machine != machine:
        return "calibrated on another processor or kernel: `tare calibrate` tells what this one can resolve"
    first = [condition for condition in report.conditions if condition.load == report.conditions[0].load]
    resolved = []
    for at, time_s in enumerate(TIMES_S):
        effects = [effect for condition in first if (effect := condition.resolves[at].smallest_effect) is not None]
        if effects:
            resolved.append(f"{percent(max(effects))} in {span(time_s)}")
    when = datetime.fromtimestamp(report.at, UTC).strftime("%Y-%m-%d")
    how = f"calibrated {when}, {first[0].load}" if first else f"calibrated {when}"
    return f"{how}: {report.workload} of one platform tells from none {', '.join(resolved) or 'nothing that soon'}"


def _interval(addition: InjectedReport) -> Interval:
    return Interval(addition.found, addition.low, addition.high)


def _table(*heads: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for number, head in enumerate(heads):
        table.add_column(head, justify="left" if number < 2 else "right")
    return table


def _bad(text: str) -> Text:
    return Text(f"✗ {text}", style="bold red")
