"""A verdict as tables show it: its mark, what the legend says of it, and what all of them together are worth."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from tare.analysis.verdicts import Kind, Side
from tare.report.model import PlatformReport, Report, ResultReport
from tare.report.sentences.numbers import DOTS, EMPTY, amount_range, percent


class Open(StrEnum):
    """A difference is certain (99 %), but it may be smaller or larger than the margin."""

    SURELY_WORSE = "surely-worse"
    SURELY_BETTER = "surely-better"


#: A verdict as tables show it: "inconclusive" is split into a certain difference of open size, and no answer at all.
Sign = Kind | Open

#: Each has a mark of its own besides its colour. Filled: beyond the margin; hollow: whether beyond it is open.
MARKS: Mapping[Sign, str] = {
    Kind.BASELINE: "",
    Kind.SLOWER: "▲",
    Kind.FASTER: "▼",
    Open.SURELY_WORSE: "△",
    Open.SURELY_BETTER: "▽",
    Kind.EQUIVALENT: "=",
    Kind.TYPICAL: "≈",
    Kind.INCONCLUSIVE: "?",
    Kind.INVALID: "!",
    Kind.NO_DATA: EMPTY,
}

#: Stands beside a figure whose verdict does not survive the correction for the number of figures.
UNSURE = "†"

#: What each means, in the order of the legend: a short name, and the rest of the sentence.
MEANINGS: Mapping[Sign, tuple[str, str]] = {
    Kind.SLOWER: ("worse", "than the baseline by more than the margin"),
    Kind.FASTER: ("better", "by more than the margin"),
    Open.SURELY_WORSE: ("surely worse", "but open whether by more than the margin"),
    Open.SURELY_BETTER: ("surely better", "but open whether by more than the margin"),
    Kind.EQUIVALENT: ("equivalent", "within the margin"),
    Kind.TYPICAL: ("equivalent so far", "in all runs seen, which are too few to exclude rare slow ones"),
    Kind.INCONCLUSIVE: ("cannot tell", "from so few or so noisy blocks, or with so many failures"),
    Kind.INVALID: ("invalid", "since the two baseline arms differ, or the ratio drifts"),
    Kind.NO_DATA: ("no figure", ""),
}


def sign_of(platform: PlatformReport) -> Sign:
    """How a platform's verdict is shown."""
    if platform.verdict is Kind.INCONCLUSIVE and platform.certain is not None:
        return Open.SURELY_WORSE if platform.certain is Side.WORSE else Open.SURELY_BETTER
    return platform.verdict


def added(platform: PlatformReport, to: str = DOTS) -> tuple[str, str] | None:
    """The amount that a platform adds to the baseline's figure, and its interval: ("+132 ms", "128 … 137"); or None."""
    if platform.amount is None or platform.amount_unit is None:
        return None
    ends = None
    if platform.amount_low is not None and platform.amount_high is not None:
        ends = platform.amount_low, platform.amount_high
    return amount_range(platform.amount, ends, platform.amount_unit, to)


def noise(result: ResultReport) -> str:
    """Half of the A/A interval of a metric as text."""
    floor = result.noise_floor
    if floor is None or floor.half_width_percent is None:
        return "A/A: none"
    return f"A/A ±{percent(floor.half_width_percent / 100)}"


def how_to_read(baseline: str) -> str:
    """What the figures of the table are."""
    return (
        f"Against {baseline}: in %, + is worse; 3.3 × is 3.3 times worse; with a unit: what is added. Below each its"
        " 95 % interval over blocks. ↑ higher is better, ↓ lower."
        f" A/A: half of that interval for {baseline} against itself, the noise of this campaign."
    )


def together(report: Report) -> str:
    """A sentence on all verdicts together: how many chance would give, and how many survive; "" without a verdict."""
    many = report.multiplicity
    if many is None or not many.n_rows:
        return ""
    text = (
        f"Of {many.n_rows} figures {many.n_different} are worse or better; if no platform differed, chance alone would"
        f" make {_few(many.by_chance)} so."
    )
    unsure = many.n_different - many.n_different_sure
    if unsure:
        text += f" {UNSURE} take as a hint: {unsure} of them may be chance (Holm's correction over all figures)."
    elif many.n_different:
        text += " All of them survive Holm's correction over all figures."
    if many.n_equivalent:
        text += f" Of {many.n_equivalent} equivalents {many.n_equivalent_sure} survive it."
    return text


def _few(number: float) -> str:
    return f"about {number:.1f}" if number >= 0.05 else "none"
