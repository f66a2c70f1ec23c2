"""A verdict as tables show it: its mark, what the legend says of it, and what all of them together are worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from tare.analysis.verdicts import BaselineSide, VerdictKind
from tare.estimates.intervals import Interval
from tare.report.model import PlatformReport, Report, ResultReport
from tare.report.sentences.numbers import EMPTY
from tare.report.sentences.scale import spread


class Open(StrEnum):
    """Inconclusive, and yet something is known.

    A difference is certain (99 %), but it may be smaller or larger than the margin; or there is a bound of it.
    """

    SURELY_WORSE = "surely-worse"
    SURELY_BETTER = "surely-better"
    BOUNDED = "bounded"


#: A verdict as tables show it: "inconclusive" is split by what is known.
Sign = VerdictKind | Open

#: Each has a mark of its own besides its colour. Filled: beyond the margin; hollow: whether beyond it is open.
MARKS: Mapping[Sign, str] = {
    VerdictKind.BASELINE: "",
    VerdictKind.SLOWER: "▲",
    VerdictKind.FASTER: "▼",
    Open.SURELY_WORSE: "△",
    Open.SURELY_BETTER: "▽",
    Open.BOUNDED: "",  # its text says at most, at least or from which to which
    VerdictKind.EQUIVALENT: "=",
    VerdictKind.TYPICAL: "≈",
    VerdictKind.INCONCLUSIVE: "?",
    VerdictKind.INVALID: "!",
    VerdictKind.NO_DATA: EMPTY,
}

#: Stands beside a figure whose verdict does not survive the correction for the number of figures.
UNSURE = "†"

#: What each means, in the order of the legend: a short name, and the rest of the sentence.
MEANINGS: Mapping[Sign, tuple[str, str]] = {
    VerdictKind.SLOWER: ("worse", "than the baseline by more than the margin"),
    VerdictKind.FASTER: ("better", "by more than the margin"),
    Open.SURELY_WORSE: ("surely worse", "but open whether by more than the margin"),
    Open.SURELY_BETTER: ("surely better", "but open whether by more than the margin"),
    VerdictKind.EQUIVALENT: ("equivalent", "within the margin"),
    VerdictKind.TYPICAL: ("equivalent so far", "in all runs seen, which are too few to exclude rare slow ones"),
    Open.BOUNDED: ("bounded", "at most, at least or from which to which: each end holds at 95 % in what was seen"),
    VerdictKind.INCONCLUSIVE: ("cannot tell", "from so few or so noisy blocks, or with so many failures"),
    VerdictKind.INVALID: ("invalid", "since the two baseline arms differ, or the ratio drifts"),
    VerdictKind.NO_DATA: ("no figure", ""),
}


def sign_of(platform: PlatformReport) -> Sign:
    """Return how a platform's verdict is shown."""
    if platform.verdict is not VerdictKind.INCONCLUSIVE:
        return platform.verdict
    if platform.certain is not None:
        return Open.SURELY_WORSE if platform.certain is BaselineSide.WORSE else Open.SURELY_BETTER
    bounded = platform.effect is not None and platform.effect.bound is not None
    return Open.BOUNDED if bounded else VerdictKind.INCONCLUSIVE


def noise(result: ResultReport) -> str:
    """The A/A interval of a metric as text."""
    floor = result.noise_floor
    if floor is None or floor.point_percent is None or floor.low_percent is None or floor.high_percent is None:
        return "A/A: none"
    over = Interval(floor.point_percent / 100, floor.low_percent / 100, floor.high_percent / 100)
    return f"A/A {spread(over, result.direction)}"


def how_to_read(baseline: str) -> str:
    """Return what the figures of the table are."""
    return (
        f"Against {baseline}: in %, + is worse; 3.3 × is 3.3 times worse; with a unit: what is added. Below each its"
        " 95 % interval over blocks, or the one that decides with its level, and the value that it makes of"
        f" {baseline}'s. ↑ higher is better, ↓ lower. A/A: how {baseline} differs from itself, 95 %."
    )


def together(report: Report) -> str:
    """A sentence on all verdicts together: how many luck may have given; "" without a figure."""
    many = report.multiplicity
    if many is None or not many.n_rows:
        return ""
    text = f"Of {many.n_rows} headlines and CPU costs {many.n_different} differ"
    if not many.n_different:
        return f"{text}."
    text += f"; {_few(many.by_chance)} of these by luck."
    unsure = many.n_different - many.n_different_sure
    if unsure:
        text += f" If one is luck, it is most likely among the {unsure} with {UNSURE} (Holm's correction)."
    return text


def unsure_note(cells: Iterable[str]) -> str:
    """Return what the dagger says, where a table has one; "" where not."""
    if not any(UNSURE in cell for cell in cells):
        return ""
    return f" {UNSURE} so many figures are compared that this one may be luck (Holm's correction)."


def _few(number: float) -> str:
    """Return how many verdicts luck gives where no platform differs, which is the most that it can have given."""
    return f"at most about {number:.0f}" if number >= 0.5 else "hardly any"
