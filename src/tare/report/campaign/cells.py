"""A platform's cell in a table, the same in the terminal and in HTML: a mark, the difference, its interval."""

from __future__ import annotations

from dataclasses import dataclass

from tare.analysis.trust.findings import FindingKind
from tare.analysis.verdicts import REFUSED, Kind
from tare.estimates.intervals import Interval
from tare.model import Direction
from tare.report.model import PlatformReport, ResultReport
from tare.report.sentences.numbers import DOTS, decimals, number_of, percent, quantity, signed, times_range
from tare.report.sentences.signs import MARKS, MEANINGS, UNSURE, Sign, added, noise, sign_of
from tare.report.sentences.verdicts import TIMES_FROM
from tare.report.sentences.wording import wording


@dataclass(frozen=True, slots=True)
class Cell:
    """What a table shows of one platform in one metric."""

    sign: Sign
    mark: str
    figure: str  # "+4.1 %", a factor, an amount, or the baseline's value with its unit
    span: str  # "3.6 … 4.7", or a text in its place
    below: tuple[str, ...] = ()  # the overhead where the figure is an amount; what was measured; failed trials; stalls

    @property
    def in_line(self) -> str:
        """All of it in one line: "▲ +132 ms (128 … 137), +3.5 %"."""
        span = f" ({self.span})" if self.span else ""
        return ", ".join((f"{self.mark} {self.figure}{span}".strip(), *self.below))

    @property
    def spoken(self) -> str:
        """The mark in words, for screen readers."""
        return MEANINGS[self.sign][0] if self.sign in MEANINGS else ""


def cell(result: ResultReport, platform: PlatformReport) -> Cell:
    """The cell of a platform that is not the baseline."""
    shown = sign_of(platform)
    size, span = _relative(result, platform)
    words = wording(result.metric, result.unit, result.direction, result.family)
    amount = added(platform) if words.amount_first and platform.amount_unit == result.unit else None
    value = () if platform.mean is None else (quantity(platform.mean, result.unit),)
    below = (*value, *_warnings(platform))
    if amount is not None:
        figure, span = amount[0], amount[1] or _no_interval(platform)
        below = (size or "no ratio", *below)
    elif size:
        figure = size
    else:
        return Cell(shown, MARKS[shown], *_without_figure(result, platform))
    return Cell(shown, MARKS[shown], figure + _unsure(platform), span, below)


def _warnings(platform: PlatformReport) -> tuple[str, ...]:
    """Warnings without which a figure may mislead: failed trials, and what stalls cost."""
    failed = [f"{platform.n_failed} of {platform.n_ok + platform.n_failed} failed"] if platform.n_failed else []
    stalls = [
        f"stalls: {percent(finding.numbers['lost'])} lost"
        for finding in platform.findings
        if finding.kind is FindingKind.STALLS
    ]
    return (*failed, *stalls)


def _no_interval(platform: PlatformReport) -> str:
    return "1 block" if platform.n_blocks == 1 else "no interval"


def _unsure(platform: PlatformReport) -> str:
    return UNSURE if platform.verdict in {Kind.SLOWER, Kind.FASTER} and platform.survives_holm is False else ""


def baseline_cell(result: ResultReport, platform: PlatformReport) -> Cell:
    """The baseline's own value, with the A/A noise floor under it."""
    figure = "no data" if platform.mean is None else quantity(platform.mean, result.unit)
    return Cell(platform.verdict, MARKS[platform.verdict], figure, noise(result))


def _relative(result: ResultReport, platform: PlatformReport) -> tuple[str, str]:
    """The overhead and its interval, as a factor from `TIMES_FROM` on; two empty texts where there is none."""
    if platform.op_percent is None or platform.ratio is None:
        return "", ""
    times = platform.ratio if result.direction is Direction.LOWER else 1 / platform.ratio
    if platform.op_low_percent is None or platform.op_high_percent is None:
        factor = times_range(Interval(times, times, times))[0]
        size = f"{factor} ×" if times > TIMES_FROM else f"{signed(platform.op_percent, 1)} %"
        return size, "1 block"
    if times > TIMES_FROM and platform.ratio_low is not None and platform.ratio_high is not None:
        ends = platform.ratio_low, platform.ratio_high
        low, high = ends if result.direction is Direction.LOWER else (1 / ends[1], 1 / ends[0])
        size, span = times_range(Interval(times, low, high), DOTS)
        return f"{size} ×", span
    digits = decimals(platform.op_high_percent - platform.op_low_percent)
    point, low_end, high_end = (
        signed(value, digits) for value in (platform.op_percent, platform.op_low_percent, platform.op_high_percent)
    )
    return f"{point} %", f"{low_end}{DOTS}{high_end}"


def _without_figure(result: ResultReport, platform: PlatformReport) -> tuple[str, str]:
    if platform.n_unsupported and not platform.n_ok:
        return "unsupported", ""
    if platform.n_failed and not platform.n_ok:
        return "failed", number_of(platform.n_failed, "trial")
    if platform.instead is not None:
        return f"see {platform.instead}", "its headline"
    if platform.verdict_reason in REFUSED:
        return "refused", "see below"
    if platform.mean is not None:  # a metric that the baseline lacks, such as boot time
        return quantity(platform.mean, result.unit), "no baseline"
    return "no data", ""
