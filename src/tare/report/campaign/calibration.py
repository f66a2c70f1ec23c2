"""What a calibration found, as data (``tare calibrate --json``), in a terminal, and as one line for `tare run`."""

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
from tare.report.campaign.cells import EMPTY
from tare.report.sentences.numbers import percent, signed, signed_range, span
from tare.store import known_part

SCHEMA = "tare.calibration/1"
#: The newest one's file, below TARE_HOME.
LATEST_CALIBRATION = "calibration.json"
#: Times for which the smallest effect is told, in seconds.
TIMES_S = (60.0, 300.0, 1800.0)
#: What is held against the figures (docs/method.md).
#: Lengths of the comparisons in which "equivalent" is looked for, in seconds, where so many are whole.
LONGER_S, MIN = (30.0, 60.0, 180.0), 6
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
    """What so much time can tell of one platform, as fractions; null where it is too short for two blocks."""

    seconds: float
    half_width: float | None
    smallest_effect: float | None


class Proof(_Frozen):
    """How often comparisons of such a length, of three arms, said "equivalent"."""

    seconds: float
    equivalent: RateReport


class DependenceReport(_Frozen):
    """Lag-1 autocorrelation of blocks' log ratios, pooled over the comparisons of the campaign."""

    n_series: int
    n_blocks: int
    correlation: float  # the bias of independent blocks is taken off
    low: float  # about 95 %
    high: float
    bias: float  # what blocks in random order show; about -1/n
    p: float  # that blocks in random order show as much or more


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
    bias_low: float | None = None  # of its 95 % interval; None: one comparison, or a file of before there was one
    bias_high: float | None = None
    half_width: float
    block_sd: float
    block_seconds: float
    resolves: list[Resolution]
    proofs: list[Proof] = []
    dependence: DependenceReport | None = None  # None: too few blocks, or a file of before there was one


class InjectedReport(_Frozen):
    """Added work, and what was found of it; shares."""

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
    machine: str  # what it holds for: processor and kernel
    at: float  # UNIX time, seconds
    workload: str
    conditions: list[ConditionReport]
    injected: list[InjectedReport]

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=lambda name: name.rstrip("_"), populate_by_name=True
    )


def condition(load: str, found: Trust, longer: Sequence[tuple[float, Trust]] = ()) -> ConditionReport:
    """One metric's trust as data. ``longer``: the same blocks as fewer and longer comparisons, of so many seconds."""
    return ConditionReport(
        load=load,
        metric=found.metric,
        margin=found.margin,
        false_alarms=_rate(found.false_alarms),
        covered=_rate(found.covered),
        equivalent=_rate(found.equivalent),
        invalid=found.invalid,
        bias=found.bias.point,
        bias_low=_finite(found.bias.low),
        bias_high=_finite(found.bias.high),
        half_width=found.half_width,
        block_sd=found.block_sd,
        block_seconds=found.seconds,
        resolves=[
            Resolution(
                seconds=time_s,
                half_width=_known(found.half_width_after(time_s)),
                smallest_effect=_known(found.smallest_effect(time_s)),
            )
            for time_s in TIMES_S
        ],
        proofs=[
            Proof(seconds=seconds, equivalent=_rate(one.equivalent))
            for seconds, one in longer
            if one.metric == found.metric and one.equivalent.of >= MIN
        ],
        dependence=_dependence(found.dependence) if found.dependence is not None else None,
    )


def _dependence(found: Dependence) -> DependenceReport:
    low, high = found.interval
    return DependenceReport(
        n_series=found.n_series,
        n_blocks=found.n_blocks,
        correlation=found.correlation,
        low=low,
        high=high,
        bias=found.bias,
        p=found.p,
    )


def injection(found: Injected) -> InjectedReport:
    """One addition of work as data."""
    return InjectedReport(
        platform=found.platform,
        metric=found.metric,
        added=found.share,
        found=found.found.point,
        low=found.found.low,
        high=found.found.high,
        n_blocks=found.n_blocks,
        is_found=found.is_found,
    )


def _rate(rate: Rate) -> RateReport:
    return RateReport(count=rate.count, of=rate.of, low=rate.low, high=rate.high)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def render(report: CalibrationReport) -> Group:
    """The whole calibration for a terminal."""
    when = datetime.fromtimestamp(report.at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    parts: list[RenderableType] = [Text(f"Calibration of {report.machine}, {when}, by {report.workload}", style="bold")]
    if report.conditions:
        parts += ["", Text("The baseline against itself: nothing differs, so what is seen is the instrument")]
        parts += [_same(report.conditions), *_judged(report.conditions), _resolutions(report.conditions)]
        parts += [_proofs(report.conditions)] if any(one.proofs for one in report.conditions) else []
        parts += _alike(report.conditions)
    if report.injected:
        parts += ["", Text("Work added to a platform, found against the same platform without")]
        parts += [_added(report.injected), *_missed(report.injected)]
    return Group(*parts)


def _same(conditions: Sequence[ConditionReport]) -> Table:
    table = _table("load", "metric", "false alarms", "intervals that hold zero", "equivalent", "invalid", "mean", "±")
    for one in conditions:
        shares = (str(one.false_alarms), str(one.covered), str(one.equivalent), str(one.invalid))
        table.add_row(one.load, one.metric, *shares, _mean(one), percent(one.half_width))
    return table


def _bias(one: ConditionReport) -> tuple[float, float]:
    if one.bias_low is None or one.bias_high is None:
        return one.bias, one.bias
    return one.bias_low, one.bias_high


def _mean(one: ConditionReport) -> str:
    low, high = _bias(one)
    return f"{signed(100 * one.bias, 3)} ± {100 * (high - low) / 2:.2f} %"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _judged(conditions: Sequence[ConditionReport]) -> Iterator[Text]:
    """What does not hold, in words. A rate or a mean fails only where its interval lies wholly beyond what is asked."""
    for one in conditions:
        where = f"{one.load}, {one.metric}"
        if one.false_alarms.low > MAX_ALARMS:
            yield _bad(f"{where}: more than {percent(MAX_ALARMS)} false alarms")
        if one.covered.high < COVERED[0] or one.covered.low > COVERED[1]:
            yield _bad(f"{where}: its 95 % intervals hold zero in {percent(one.covered.count / one.covered.of)}")
        low, high = _bias(one)
        if low > MAX_BIAS or high < -MAX_BIAS:
            yield _bad(f"{where}: the mean of no difference is {_mean(one)}")


def _alike(conditions: Sequence[ConditionReport]) -> Iterator[Text]:
    """Whether blocks may be taken as independent of each other."""
    for one in conditions:
        if (seen := one.dependence) is not None:
            text = (
                f"{one.load}, {one.metric}: lag-1 autocorrelation of the blocks {signed(seen.correlation, 2)},"
                f" {signed(seen.low, 2)} to {signed(seen.high, 2)} (independent blocks: 0)"
            )
            yield _bad(text) if seen.p <= SURE_P else Text(text)


def _resolutions(conditions: Sequence[ConditionReport]) -> Table:
    heads = [f"in {span(time_s)}" for time_s in TIMES_S]
    table = _table("load", "metric", *heads)
    for one in conditions:
        cells = [
            EMPTY
            if time.smallest_effect is None or time.half_width is None
            else f"{percent(time.smallest_effect)} (±{percent(time.half_width)})"
            for time in one.resolves
        ]
        table.add_row(one.load, one.metric, *cells)
    table.title = "Smallest effect that is told from none in 9 of 10 cases, one platform (half-width of its interval)"
    table.title_justify = "left"
    return table


def _proofs(conditions: Sequence[ConditionReport]) -> Table:
    table = _table("load", "metric", "margin", *(f"in {span(time_s)}" for time_s in LONGER_S))
    for one in conditions:
        by_length = {proof.seconds: str(proof.equivalent) for proof in one.proofs}
        cells = [by_length.get(time_s, "too few") for time_s in LONGER_S]
        table.add_row(one.load, one.metric, f"± {percent(one.margin)}", *cells)
    table.title = "Comparisons of the baseline with itself that prove it equivalent within the margin"
    table.title_justify = "left"
    return table


def _added(injected: Sequence[InjectedReport]) -> Table:
    table = _table("platform", "metric", "added", "found, 95 % interval", "off by", "blocks")
    for one in injected:
        seen = signed_range(_interval(one))
        off = f"{signed(100 * (one.found - one.added), 2)} points"
        table.add_row(one.platform, one.metric, percent(one.added), seen, off, str(one.n_blocks))
    return table


def _missed(injected: Sequence[InjectedReport]) -> Iterator[Text]:
    for one in injected:
        if not one.is_found:
            yield _bad(f"{one.platform}, {one.metric}: {percent(one.added)} more work was not found")
        if one.low - MAX_MISS > one.added or one.high + MAX_MISS < one.added:
            yield _bad(f"{one.platform}, {one.metric}: {percent(one.added)} more work looks like {percent(one.found)}")


def line(home: Path, machine: str) -> str:
    """What this machine resolves, for `tare run` to say before it starts; or that nobody knows."""
    try:
        report, _ = known_part(CalibrationReport, (home / LATEST_CALIBRATION).read_bytes())
    except FileNotFoundError:
        return "not calibrated: `tare calibrate` tells what this machine can resolve"
    except (OSError, ValidationError):
        return f"not calibrated: {home / LATEST_CALIBRATION} cannot be read; `tare calibrate` makes it anew"
    if report.machine != machine:
        return "calibrated on another processor or kernel: `tare calibrate` tells what this one can resolve"
    first = [one for one in report.conditions if one.load == report.conditions[0].load]
    told = []
    for at, time_s in enumerate(TIMES_S):
        effects = [effect for one in first if (effect := one.resolves[at].smallest_effect) is not None]
        if effects:
            told.append(f"{percent(max(effects))} in {span(time_s)}")
    when = datetime.fromtimestamp(report.at, UTC).strftime("%Y-%m-%d")
    how = f"calibrated {when}, {first[0].load}" if first else f"calibrated {when}"
    return f"{how}: {report.workload} of one platform tells from none {', '.join(told) or 'nothing that soon'}"


def _interval(one: InjectedReport) -> Interval:
    return Interval(one.found, one.low, one.high)


def _table(*heads: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for number, head in enumerate(heads):
        table.add_column(head, justify="left" if number < 2 else "right")
    return table


def _bad(text: str) -> Text:
    return Text(f"✗ {text}", style="bold red")
