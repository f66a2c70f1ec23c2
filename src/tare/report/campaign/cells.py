"""A platform's cell in a table, the same in the terminal and in HTML: a mark, the difference, its interval."""

from __future__ import annotations

from dataclasses import dataclass

from tare.analysis.quality.findings import FindingKind
from tare.analysis.verdicts import REFUSED, VerdictKind
from tare.report.model import PlatformReport, ResultReport
from tare.report.sentences.numbers import number_of, percent, quantity
from tare.report.sentences.shown import ShownFigure
from tare.report.sentences.signs import MARKS, MEANINGS, UNSURE, Open, Sign, noise, sign_of


@dataclass(frozen=True, slots=True)
class Cell:
    """A table's cell for one platform in one metric."""

    sign: Sign
    mark: str
    figure: str  # "+4.1 %", a factor, an amount, a bound, or the baseline's value with its unit
    span: str  # "3.6 … 4.7", or a text in its place
    below: tuple[str, ...] = ()  # the ratio where the figure is an amount; the value; failed trials; stalls

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
    sign, figure = sign_of(platform), ShownFigure.of(result, platform)
    size, span = figure.ratio()
    value = figure.value()
    below = (*([value] if value else []), *_warnings(platform))
    added = figure.first() if platform.amount_unit == result.unit else None
    if added is not None:
        below = (size or "no ratio", *below)
        size, span = added
    if not size:
        return Cell(sign, MARKS[sign], *_without_figure(result, platform))
    if sign is Open.BOUNDED:
        return Cell(sign, MARKS[sign], figure.bounded(), span, below)
    return Cell(sign, MARKS[sign], size + _unsure(platform), span or _no_interval(platform), below)


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
    return (
        UNSURE
        if platform.verdict in {VerdictKind.SLOWER, VerdictKind.FASTER} and platform.survives_holm is False
        else ""
    )


def baseline_cell(result: ResultReport, platform: PlatformReport) -> Cell:
    """The baseline's own value, with the A/A noise floor under it."""
    figure = "no data" if platform.mean is None else quantity(platform.mean, result.unit)
    return Cell(platform.verdict, MARKS[platform.verdict], figure, noise(result))


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
