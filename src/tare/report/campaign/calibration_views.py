"""The result of a calibration: as data (``tare calibrate --json``), in a terminal, and as one line for `tare run`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError
from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tare.analysis.calibration import Injected, Rate, Trust
from tare.estimates.intervals import Interval
from tare.report.campaign.dependence_view import dependence_report
from tare.report.model.calibration_models import (
    CalibrationReport,
    ConditionReport,
    InjectedReport,
    Proof,
    RateReport,
    Resolution,
)
from tare.report.sentences import calibration_words as words
from tare.report.sentences.numbers import EMPTY, percent, signed, signed_range, span, when
from tare.store import known_part

#: File of the newest calibration, below TARE_HOME.
LATEST_CALIBRATION = "calibration.json"
#: Durations for which the smallest detectable effect is given, in seconds.
TIMES_S = (60.0, 300.0, 1800.0)
#: Lengths in seconds of the longer comparisons that may show "equivalent", and how many of a length there must be.
LONGER_S, MIN = (30.0, 60.0, 180.0), 6


def condition(load: str, trust: Trust, longer: Sequence[tuple[float, Trust]] = ()) -> ConditionReport:
    """Return how comparisons in one metric came out under one load, as the report has it.

    ``longer``: lengths in seconds, each with the same blocks as comparisons so long.
    """
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
        dependence=dependence_report(trust.dependence),
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
    heading = f"Calibration of {report.machine}, {when(report.at)}, by {report.workload}"
    parts: list[RenderableType] = [Text(heading, style="bold")]
    if report.conditions:
        parts += ["", Text(words.BASELINE)]
        parts += [
            _baseline_table(report.conditions),
            *map(_bad, words.failed_checks(report.conditions)),
            _resolution_table(report.conditions),
        ]
        parts += (
            [_equivalence_table(report.conditions)] if any(condition.proofs for condition in report.conditions) else []
        )
        parts += [_bad(text) if sure else Text(text) for text, sure in words.autocorrelations(report.conditions)]
    if report.injected:
        parts += ["", Text(words.ADDED)]
        parts += [_additions_table(report.injected), *map(_bad, words.failed_additions(report.injected))]
    return Group(*parts)


def _baseline_table(conditions: Sequence[ConditionReport]) -> Table:
    table = _table("load", "metric", "false alarms", "intervals that hold zero", "equivalent", "invalid", "mean", "±")
    for condition in conditions:
        shares = (
            words.rate(condition.false_alarms),
            words.rate(condition.covered),
            words.rate(condition.equivalent),
            str(condition.invalid),
        )
        table.add_row(condition.load, condition.metric, *shares, words.mean(condition), percent(condition.half_width))
    return table


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


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
    table.title = words.SMALLEST
    table.title_justify = "left"
    return table


def _equivalence_table(conditions: Sequence[ConditionReport]) -> Table:
    table = _table("load", "metric", "margin", *(f"in {span(time_s)}" for time_s in LONGER_S))
    for condition in conditions:
        by_length = {proof.seconds: words.rate(proof.equivalent) for proof in condition.proofs}
        cells = [by_length.get(time_s, "too few") for time_s in LONGER_S]
        table.add_row(condition.load, condition.metric, f"± {percent(condition.margin)}", *cells)
    table.title = words.EQUIVALENT
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


def line(home: Path, machine: str) -> str:
    """One line that `tare run` prints before it starts: the smallest detectable effects, or why they are not known."""
    try:
        report, _ = known_part(CalibrationReport, (home / LATEST_CALIBRATION).read_bytes())
    except FileNotFoundError:
        return words.NONE
    except (OSError, ValidationError):
        return words.unreadable(home / LATEST_CALIBRATION)
    return words.resolution(report) if report.machine == machine else words.OTHER_MACHINE


def _interval(addition: InjectedReport) -> Interval:
    return Interval(addition.found, addition.low, addition.high)


def _table(*heads: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for number, head in enumerate(heads):
        table.add_column(head, justify="left" if number < 2 else "right")
    return table


def _bad(text: str) -> Text:
    return Text(f"✗ {text}", style="bold red")
