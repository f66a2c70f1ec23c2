"""Texts of a calibration: where a figure lies beyond its limit, and what a machine can resolve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tare.estimates.dependence import SURE_P
from tare.report.model.calibration_models import CalibrationReport, ConditionReport, InjectedReport, RateReport
from tare.report.sentences.numbers import day, percent, signed, span

#: Limits that the figures are checked against (docs/method.md).
MAX_ALARMS, COVERED, MAX_BIAS, MAX_MISS = 0.01, (0.93, 0.97), 0.001, 0.002
BASELINE = "The baseline against itself: nothing differs, so what is seen is the instrument"
ADDED = "Work added to a platform, found against the same platform without"
SMALLEST = "Smallest effect that is told from none in 9 of 10 cases, one platform (half-width of its interval)"
EQUIVALENT = "Comparisons of the baseline with itself that prove it equivalent within the margin"
#: Why a machine's resolution is not known.
NONE = "not calibrated: `tare calibrate` tells what this machine can resolve"
OTHER_MACHINE = "calibrated on another processor or kernel: `tare calibrate` tells what this one can resolve"


def unreadable(file: Path) -> str:
    """Say that the newest calibration cannot be read."""
    return f"not calibrated: {file} cannot be read; `tare calibrate` makes it anew"


def resolution(report: CalibrationReport) -> str:
    """The smallest effects that a machine tells from none, in one line."""
    first = [condition for condition in report.conditions if condition.load == report.conditions[0].load]
    effects: dict[float, list[float]] = {}
    for condition in first:
        for time in condition.resolves:
            if time.smallest_effect is not None:
                effects.setdefault(time.seconds, []).append(time.smallest_effect)
    resolved = [f"{percent(max(effects[time_s]))} in {span(time_s)}" for time_s in sorted(effects)]
    how = f"calibrated {day(report.at)}, {first[0].load}" if first else f"calibrated {day(report.at)}"
    return f"{how}: {report.workload} of one platform tells from none {', '.join(resolved) or 'nothing that soon'}"


def rate(share: RateReport) -> str:
    """A share with its interval."""
    ends = f"{percent(share.low)} to {percent(share.high)}"
    return f"{share.count} of {share.of} ({percent(share.count / share.of)}, {ends})"


def mean(condition: ConditionReport) -> str:
    """The mean of no difference, with half of its interval."""
    low, high = _bias(condition)
    return f"{signed(100 * condition.bias, 3)} ± {100 * (high - low) / 2:.2f} %"


def failed_checks(conditions: Sequence[ConditionReport]) -> Iterator[str]:
    """A line per failed check. A rate or a mean fails only where its whole interval lies beyond the limit."""
    for condition in conditions:
        where = f"{condition.load}, {condition.metric}"
        if condition.false_alarms.low > MAX_ALARMS:
            yield f"{where}: more than {percent(MAX_ALARMS)} false alarms"
        if condition.covered.high < COVERED[0] or condition.covered.low > COVERED[1]:
            yield f"{where}: its 95 % intervals hold zero in {percent(condition.covered.count / condition.covered.of)}"
        low, high = _bias(condition)
        if low > MAX_BIAS or high < -MAX_BIAS:
            yield f"{where}: the mean of no difference is {mean(condition)}"


def failed_additions(injected: Sequence[InjectedReport]) -> Iterator[str]:
    """A line for added work that was not found, or not as much as it was."""
    for addition in injected:
        head = f"{addition.platform}, {addition.metric}: {percent(addition.added)} more work"
        if not addition.is_found:
            yield f"{head} was not found"
        if addition.low - MAX_MISS > addition.added or addition.high + MAX_MISS < addition.added:
            yield f"{head} looks like {percent(addition.found)}"


def autocorrelations(conditions: Sequence[ConditionReport]) -> Iterator[tuple[str, bool]]:
    """Autocorrelation of blocks by condition, and whether they are surely not independent."""
    for condition in conditions:
        if (dependence := condition.dependence) is not None:
            yield (
                f"{condition.load}, {condition.metric}: lag-1 autocorrelation of the blocks"
                f" {signed(dependence.correlation, 2)}, {signed(dependence.low, 2)} to {signed(dependence.high, 2)}"
                " (independent blocks: 0)",
                dependence.p <= SURE_P,
            )


def _bias(condition: ConditionReport) -> tuple[float, float]:
    if condition.bias_low is None or condition.bias_high is None:
        return condition.bias, condition.bias
    return condition.bias_low, condition.bias_high
