"""Check of a study's derived statements: recomputed from its own figures, with every mismatch (docs/literature.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from tare import lazily
from tare.estimates.overhead import variability_overhead
from tare.features.studies.analysis.profile import checked, evaluate
from tare.features.studies.analysis.scores import overhead_ratio, trial_count_overhead
from tare.features.studies.literature import PrintedFigure, Study
from tare.features.studies.literature.study_model import Derived, Slip, StatedChange

if TYPE_CHECKING:
    from scipy import stats
else:
    stats = lazily.LazyModule("scipy.stats")

#: Largest rounding error of a figure, in its last decimal.
_HALF = 0.5 + 1e-9
#: Tolerance, in per cent points, if the text says about, around, almost or up to.
_ABOUT = 2.0
_Printed = float | list[float] | str | None


class Statement(StrEnum):
    """Kind of a study's statement."""

    AGAIN = "again"  # A figure that is printed a second time: its value or its SD.
    CHANGE = "change"  # Per cent more or less.
    DERIVED = "derived"  # Computed from its figures: see `tare.features.studies.literature.study_model.Derived`.
    DEVIATION = "deviation"  # Relative deviations are at most this.
    SCORE = "score"
    SUM = "sum"  # Of scores.
    P = "p"  # P is below this.
    DEGREES = "degrees"  # Degrees of freedom.


@dataclass(frozen=True, slots=True)
class PublishedLine:
    """One printed statement, and the value that follows from the study's own figures; ``wrong``: the two differ."""

    where: str
    metric: str
    platform: str
    what: Statement
    printed: _Printed
    follows: _Printed
    wrong: bool
    # The part of a figure that is printed again, or the derived quantity, in the terms of the study's file.
    of: str = ""

    def is_slip(self, slip: Slip) -> bool:
        """Return True if a listed slip is this line."""
        ours = (self.where, self.metric, self.platform, self.printed, self.follows)
        return slip.kind == "computed" and ours == (
            slip.where, slip.metric, slip.platform, slip.printed, slip.follows,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Checked:
    """A study's recomputed statements, compared with the slips that its file lists."""

    study: str
    lines: tuple[PublishedLine, ...]
    unlisted: tuple[PublishedLine, ...] = field(default=())  # Wrong, but not among the slips.
    unfound: tuple[Slip, ...] = field(default=())  # Listed as computed, but not found.

    @property
    def good(self) -> bool:
        """True if exactly the listed slips were found."""
        return not self.unlisted and not self.unfound


def check(study: Study) -> Checked:
    """Recompute everything that a study derives from its own figures, by its file."""
    lines = tuple(line for kind in _KINDS for line in kind(study))
    wrong = [line for line in lines if line.wrong]
    computed = [slip for slip in study.slip if slip.kind == "computed"]
    return Checked(
        study.name,
        lines,
        tuple(line for line in wrong if not any(line.is_slip(slip) for slip in computed)),
        tuple(slip for slip in computed if not any(line.is_slip(slip) for line in wrong)),
    )


def _again(study: Study) -> Iterator[PublishedLine]:
    """Yield figures that are printed twice, each time rounded to its own decimals."""
    for reprint in study.text.again:
        figure = study.metric(reprint.metric)
        value = (figure.sd if reprint.of == "sd" else figure.value)[reprint.platform]
        coarser = reprint.decimals if figure.decimals is None else min(reprint.decimals, figure.decimals)
        wrong = abs(reprint.value - value) > _HALF * 10.0**-coarser
        follows = round(value, coarser)
        yield PublishedLine(
            reprint.where, reprint.metric, reprint.platform, Statement.AGAIN, reprint.value, follows, wrong, reprint.of
        )


def _changes(study: Study) -> Iterator[PublishedLine]:
    """Yield statements of per cent more or less, with the limits that the figures' rounding allows."""
    for change in study.text.change:
        figure = study.metric(change.metric)
        error = 0.0 if figure.decimals is None else 0.5 * 10.0**-figure.decimals
        value, base = _value(study, figure, change.platform), _value(study, figure, change.than)
        exact = figure.relative and change.than == study.source.baseline
        least = 100 * ((value - error) / (base + (0 if exact else error)) - 1)
        most = 100 * ((value + error) / (base - (0 if exact else error)) - 1)
        low, high = _bounds(change)
        follows = round(100 * (value / base - 1), 1)
        wrong = not low <= most or least > high
        yield PublishedLine(
            change.where, change.metric, change.platform, Statement.CHANGE, change.percent, follows, wrong
        )


def _value(study: Study, figure: PrintedFigure, platform: str) -> float:
    if figure.relative and platform == study.source.baseline:
        return 100.0
    return figure.value[platform]


def _bounds(change: StatedChange) -> tuple[float, float]:
    """Return the limits of values that are printed like this, in per cent: each end rounded to ones or to tenths."""
    low, high = change.percent if isinstance(change.percent, list) else (change.percent, change.percent)
    slack = [_ABOUT if change.about else _HALF * (1 if end == round(end) else 0.1) for end in (low, high)]
    return low - slack[0], high + slack[1]


def _derived(study: Study) -> Iterator[PublishedLine]:
    for derived in study.text.derived:
        computed = _compute(study, derived)
        # A value printed in full may differ in the last bits.
        error = abs(derived.value) * 1e-8 if derived.decimals is None else _HALF * 10.0**-derived.decimals
        follows = computed if derived.decimals is None else round(computed, derived.decimals)
        wrong = abs(computed - derived.value) > error
        yield PublishedLine(
            derived.where,
            derived.metric,
            derived.platform,
            Statement.DERIVED,
            derived.value,
            follows,
            wrong,
            derived.of,
        )


def _compute(study: Study, derived: Derived) -> float:
    """Recompute a derived figure: per cent for overheads and shares."""
    if derived.of == "sum":
        return sum(derived.parts)
    if derived.of == "quotient":
        return derived.parts[0] / derived.parts[1]
    figure, baseline = study.metric(derived.metric), study.source.baseline
    if derived.of == "share":
        assert derived.total is not None
        return 100 * figure.value[derived.platform] / derived.total
    if derived.of == "variability overhead":
        variability = variability_overhead(figure.sd[derived.platform], figure.sd[baseline])
        assert variability is not None
        return 100 * variability
    value, base = figure.value[derived.platform], figure.value[baseline]
    if derived.of == "trial-count overhead":
        return 100 * trial_count_overhead(int(value), int(base))
    return 100 * overhead_ratio(value, base, ignored_below=derived.ignored_below)


def _deviations(study: Study) -> Iterator[PublishedLine]:
    """Yield statements that only certain platforms have a relative deviation above a limit in per cent."""
    for statement in study.deviations:
        for name in statement.metrics:
            for platform, rsd in study.metric(name).rsd.items():
                wrong = rsd > statement.above and platform not in statement.only
                yield PublishedLine(statement.where, name, platform, Statement.DEVIATION, statement.above, rsd, wrong)


def _points(study: Study) -> Iterator[PublishedLine]:
    """Yield scores by the study's evaluation profile, and their sums from the printed scores."""
    if study.profile is None:
        return
    profile = checked(study.profile, study.name)
    names = {feature.name for feature in profile.feature}
    figures = {
        platform: {
            figure.metric: figure.value[platform]
            for figure in study.figure
            if figure.metric in names & _with(figure, platform)
        }
        for platform in study.source.platforms
    }
    sheets = {sheet.platform: sheet for sheet in evaluate(profile, figures, study.source.baseline)}
    printed = {}
    for where, table in study.points.items():
        for name, row in table.items():
            printed[name] = row
            for platform, score in row.items():
                follows = sheets[platform].points[name]
                yield PublishedLine(where, name, platform, Statement.SCORE, score, follows, follows != score)
    for priority, sums in study.sums.items():
        scored = [feature.name for feature in profile.feature if feature.priority == priority]
        for platform, total in sums.items():
            computed = sum(printed[name].get(platform, 0) for name in scored)
            yield PublishedLine("sum of scores", priority, platform, Statement.SUM, total, computed, computed != total)


def _with(figure: PrintedFigure, platform: str) -> set[str]:
    return {figure.metric} if platform in figure.value else set()


def _variance(study: Study) -> Iterator[PublishedLine]:
    """Yield P from F, and degrees of freedom.

    One way over k groups has N - k, and N is a multiple of every point's runs.
    """
    for anova in study.anova:
        p = float(stats.f.sf(anova.f, anova.df_between, anova.df_within))
        yield PublishedLine(anova.where, anova.what, "", Statement.P, anova.p_below, p, p >= anova.p_below)
        groups = anova.df_between + 1
        wrong = bool((anova.df_within + groups) % anova.runs)
        follows = f"a multiple of {anova.runs}, less {groups}"
        yield PublishedLine(anova.where, anova.what, "", Statement.DEGREES, anova.df_within, follows, wrong)


_KINDS: Sequence[Callable[[Study], Iterator[PublishedLine]]] = (
    _again, _changes, _derived, _deviations, _points, _variance,
)  # fmt: skip
