"""One platform's figure in a table, the same in the terminal and in HTML: a mark, the overhead, its interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tare.analysis.intervals import Interval
from tare.analysis.verdicts import TIMES_FROM
from tare.analysis.words import decimals, percent, quantity, signed, times_range
from tare.report.model import PlatformReport, Report, ResultReport, VerdictKind

#: What a cell without a figure shows.
EMPTY = "–"  # noqa: RUF001 (a dash)
#: Never by colour alone: each verdict has a mark of its own.
MARKS: Mapping[VerdictKind, str] = {
    "baseline": "",
    "slower": "▲",
    "faster": "▼",
    "equivalent": "=",
    "typical": "≈",
    "inconclusive": "?",
    "invalid": "!",
    "no-data": EMPTY,
}

#: Beside a figure whose verdict may well be one of those that chance gives in a table of this size.
UNSURE = "†"

MEANINGS: Mapping[VerdictKind, str] = {
    "slower": "worse than the baseline by more than the margin",
    "faster": "better by more than the margin",
    "equivalent": "the difference is within the margin",
    "typical": "the same of all runs seen, too few to exclude rare slow ones",
    "inconclusive": "too few blocks, or too much noise, to tell",
    "invalid": "the two baseline arms differ, or the ratio drifts: trust nothing there",
    "no-data": "no figure",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """What a table shows of one platform in one metric."""

    kind: VerdictKind
    mark: str
    figure: str  # "+4.1 %", a factor, or the baseline's value with its unit
    span: str  # "3.6 … 4.7", or what stands for it


def cell(result: ResultReport, platform: PlatformReport) -> Cell:
    """The cell of a platform that is not the baseline; beside a figure stands how many trials it is not from."""
    shown = _cell(result, platform)
    if not platform.n_failed or platform.op_percent is None:
        return shown
    return replace(shown, span=f"{shown.span},\n{platform.n_failed} failed")


def _cell(result: ResultReport, platform: PlatformReport) -> Cell:
    mark = MARKS[platform.verdict]
    over = _overhead(platform)
    if over is None:
        return Cell(platform.verdict, mark, *_without_figure(result, platform))
    times = _times(result, platform)
    if times is not None:
        size, span = times_range(times)
        return Cell(platform.verdict, mark, f"{size} ×{_unsure(platform)}", span.replace(" to ", " … "))  # noqa: RUF001 (the sign of a factor)
    digits = decimals(100 * (over.high - over.low))
    point, low, high = (signed(100 * value, digits) for value in (over.point, over.low, over.high))
    return Cell(platform.verdict, mark, f"{point} %{_unsure(platform)}", f"{low} … {high}")


def together(report: Report) -> str:
    """What to make of all verdicts at once, in words; nothing where there is none."""
    many = report.multiplicity
    if many is None or not many.n_rows:
        return ""
    said = (
        f"Of {many.n_rows} figures {many.n_different} are slower or faster; if no platform differed, chance alone would"
        f" make {_few(many.by_chance)} so."
    )
    unsure = many.n_different - many.n_different_sure
    if unsure:
        said += f" {UNSURE} take as a hint: {unsure} of them may be chance (Holm's correction over all figures)."
    elif many.n_different:
        said += " All of them survive Holm's correction over all figures."
    if many.n_equivalent:
        said += f" Of {many.n_equivalent} equivalents {many.n_equivalent_sure} survive it."
    return said


def _few(number: float) -> str:
    return f"about {number:.1f}" if number >= 0.05 else "none"


def _unsure(platform: PlatformReport) -> str:
    return UNSURE if platform.verdict in {"slower", "faster"} and platform.survives_holm is False else ""


def baseline_cell(result: ResultReport, platform: PlatformReport) -> Cell:
    """The baseline's own value, with the A/A noise floor under it."""
    figure = "no data" if platform.mean is None else quantity(platform.mean, result.unit)
    return Cell(platform.verdict, MARKS[platform.verdict], figure, noise(result))


def noise(result: ResultReport) -> str:
    """The A/A half-width of a row in words."""
    floor = result.noise_floor
    if floor is None or floor.half_width_percent is None:
        return "A/A: none"
    return f"A/A ±{percent(floor.half_width_percent / 100)}"


def _overhead(platform: PlatformReport) -> Interval | None:
    if platform.op_percent is None or platform.op_low_percent is None or platform.op_high_percent is None:
        return None
    return Interval(platform.op_percent / 100, platform.op_low_percent / 100, platform.op_high_percent / 100)


def _times(result: ResultReport, platform: PlatformReport) -> Interval | None:
    """How many times worse, where that reads better than a percentage."""
    if platform.ratio is None or platform.ratio_low is None or platform.ratio_high is None:
        return None
    lower = result.direction == "lower"
    times = (
        Interval(platform.ratio, platform.ratio_low, platform.ratio_high)
        if lower
        else Interval(1 / platform.ratio, 1 / platform.ratio_high, 1 / platform.ratio_low)
    )
    return times if times.point > TIMES_FROM else None


def _without_figure(result: ResultReport, platform: PlatformReport) -> tuple[str, str]:
    if platform.n_unsupported and not platform.n_ok:
        return "unsupported", ""
    if platform.n_failed and not platform.n_ok:
        return "failed", f"{platform.n_failed} trials"
    if platform.verdict_text.startswith("refused"):
        return "refused", "see below"
    if platform.n_blocks:
        return "1 block", "needs 2"
    if platform.mean is not None:  # what only some platforms have, such as a kernel that boots
        return quantity(platform.mean, result.unit), "no baseline"
    return "no data", ""
