"""Which platforms fit what a user runs and asks for: for the page and `tare report --choose`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tare.analysis.answers import AnswerState, Dimension
from tare.errors import UsageError
from tare.report.campaign.use_views import answerable, default_weights, told_apart, weighed
from tare.report.model import AnswerReport, DimensionReport, Report
from tare.report.sentences import choice_words
from tare.report.sentences.choice_words import Criterion, Trait
from tare.report.sentences.use_words import TYPED, Aspect, UserUse, weighted_figure

_ASK = re.compile(r"([a-z]+)(?:<([0-9]+(?:\.[0-9]+)?)\s*([%a-zA-Z]*)|=(no)|=([a-z]+)|\*([0-9]+(?:\.[0-9]+)?))")
#: Characters of a word that an error shows.
_SHOWN = 100
_FIX = 'write "for=web cpu<10% start<300ms calls<300 daemon=no root=no", or some of these'
_FOR = f"for={'|'.join(UserUse)}"

_UNITS: Mapping[Criterion, Mapping[str, float]] = {
    Criterion.CPU: {"%": 1.0, "": 1.0},
    Criterion.START: {"ms": 1.0, "s": 1000.0, "": 1.0},
    Criterion.CALLS: {"": 1.0},
}


@dataclass(frozen=True, slots=True)
class Requirements:
    """The limits, each below, and what a platform may not have; what is run, and a user's own weights for that."""

    below: Mapping[Criterion, float]
    without: frozenset[Trait]
    use: UserUse | None = None
    own_weights: Mapping[Aspect, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pick:
    """The platform that is best in something. ``state``: how sure that is. ``others``: not told apart from it."""

    what: str
    platform: str
    figure: str
    state: AnswerState
    others: tuple[str, ...] = ()
    ends: str = ""  # of the figure's range


def parse(text: str) -> Requirements:
    """Return what is asked for, from ``cpu<10% daemon=no``. Raises `UsageError`."""
    below: dict[Criterion, float] = {}
    without: set[Trait] = set()
    use: UserUse | None = None
    own: dict[Aspect, float] = {}
    for word in text.replace(",", " ").split():
        match = _ASK.fullmatch(word)
        name, number, unit, ruled_out, run, weight = match.groups() if match else ("",) * 6
        if name == "for":
            use = _use(run or "")
        elif weight and name in TYPED:
            own[TYPED[name]] = float(weight)
        elif ruled_out and name in set(Trait):
            without.add(Trait(name))
        elif number and name in set(Criterion) and unit in _UNITS[Criterion(name)]:
            below[Criterion(name)] = float(number) * _UNITS[Criterion(name)][unit]
        else:
            raise UsageError(f"{word[:_SHOWN]!r} is nothing to choose by", fix=_FIX)
    if own and use is None:
        raise UsageError("weights change those of what is run", fix=f"{_FOR} {text.strip()[:_SHOWN]}")
    if not below and not without and use is None:
        raise UsageError("no criterion is given", fix=_FIX)
    return Requirements(below, frozenset(without), use, own)


def _use(word: str) -> UserUse:
    try:
        return UserUse(word)
    except ValueError:
        raise UsageError(f"{word[:_SHOWN]!r} is nothing that tare has weights for", fix=_FOR) from None


def weights_of(requirements: Requirements) -> dict[Aspect, float] | None:
    """The weights that platforms are sorted by; None: by CPU cost."""
    return None if requirements.use is None else default_weights(requirements.use, requirements.own_weights)


def amount(answer: AnswerReport, of: Criterion) -> float | None:
    """A platform's figure: per cent, ms or calls; None where there is none."""
    if of is Criterion.CALLS:
        return None if answer.calls is None else float(answer.calls)
    standing = _standing(answer, of)
    if standing is None:
        return None
    if of is Criterion.CPU:
        return standing.op_percent
    return None if standing.value is None else standing.value * _UNITS[Criterion.START].get(standing.unit, float("nan"))


def _standing(answer: AnswerReport, of: Criterion) -> DimensionReport | None:
    dimension = Dimension.CPU_COST if of is Criterion.CPU else Dimension.START
    return next((standing for standing in answer.dimensions if standing.dimension is dimension), None)


def _state(answer: AnswerReport, of: Criterion) -> AnswerState:
    """Return how it stands; calls were read, and not estimated."""
    standing = _standing(answer, of)
    return AnswerState.ALIKE if of is Criterion.CALLS or standing is None else standing.state


def has(answer: AnswerReport, trait: Trait) -> bool | None:
    """Return True if a platform has it; None if the campaign does not say."""
    return answer.daemon if trait is Trait.DAEMON else answer.needs_root


def isolating(report: Report) -> set[str]:
    """Names of the platforms that isolate anything: a second baseline leaves every door open."""
    return {platform.name for platform in report.platforms if "*" not in platform.open_by_design}


def by_cost(report: Report) -> list[AnswerReport]:
    """All platforms, the least CPU cost first; then those without one, and last what isolates nothing."""
    isolate = isolating(report)

    def key(answer: AnswerReport) -> tuple[bool, bool, float]:
        cost = amount(answer, Criterion.CPU)
        return answer.platform not in isolate, cost is None, cost or 0.0

    return sorted(report.answers, key=key)


def by_use(report: Report, weights: Mapping[Aspect, float]) -> list[AnswerReport]:
    """All platforms, the least weighted cost first; then those without one, and last what isolates nothing."""
    isolate = isolating(report)
    places = {of.platform: at for at, of in enumerate(weighed(report, weights))}
    return sorted(report.answers, key=lambda answer: (answer.platform not in isolate, places[answer.platform]))


def against(answer: AnswerReport, requirements: Requirements) -> list[str]:
    """Return why a platform does not have what is asked for, in words; none where it does."""
    return [*_too_much(answer, requirements), *_has_what_it_may_not(answer, requirements)]


def _too_much(answer: AnswerReport, requirements: Requirements) -> Iterator[str]:
    for of, limit in requirements.below.items():
        value = amount(answer, of)
        if value is None or not value < limit:
            yield choice_words.amount_text(of, value)


def _has_what_it_may_not(answer: AnswerReport, requirements: Requirements) -> Iterator[str]:
    for trait in sorted(requirements.without):
        present = has(answer, trait)
        if present is not False:
            yield choice_words.trait_text(trait, known=present is not None)


def picks(report: Report) -> list[Pick]:
    """The best platform for each of some questions, of those that isolate; a question without a figure is left out."""
    isolate = isolating(report)
    of_all = [answer for answer in report.answers if answer.platform in isolate]
    if len(of_all) < 2:
        return []
    return [
        *_for_each_use(report, of_all),
        *_least(report, choice_words.QUICKEST, of_all, Criterion.START),
        *_least(report, choice_words.LEAST_EXPOSED, of_all, Criterion.CALLS),
    ]


def _for_each_use(report: Report, answers: Sequence[AnswerReport]) -> Iterator[Pick]:
    """The least weighted cost for each use that the campaign answers; of the first one also with less to need."""
    uses = answerable(report)
    for use in uses:
        yield from _least_weighted(report, choice_words.best_for(use), answers, use)
    for use in uses[:1]:
        without = [answer for answer in answers if not answer.daemon]
        rootless = [answer for answer in answers if answer.needs_root is False]
        yield from _least_weighted(report, choice_words.best_for(use, choice_words.WITHOUT_DAEMON), without, use)
        yield from _least_weighted(report, choice_words.best_for(use, choice_words.WITHOUT_ROOT), rootless, use)


def _least_weighted(report: Report, title: str, answers: Sequence[AnswerReport], use: UserUse) -> Iterator[Pick]:
    among = {answer.platform for answer in answers}
    ranked = [of for of in weighed(report, default_weights(use)) if of.platform in among and of.times is not None]
    if ranked and (times := ranked[0].times) is not None:
        state = AnswerState.ALIKE if ranked[0].sure else AnswerState.OPEN
        figure, ends = weighted_figure(times)
        yield Pick(title, ranked[0].platform, figure, state, told_apart(ranked[0], ranked[1:]), ends)


def _least(report: Report, title: str, answers: Sequence[AnswerReport], of: Criterion) -> Iterator[Pick]:
    with_amount = [(value, answer) for answer in answers if (value := amount(answer, of)) is not None]
    if with_amount:
        (least, best), *rest = sorted(with_amount, key=lambda pair: pair[0])
        _, highest = _interval(report, best, of) or (least, least)
        others = (
            answer.platform for value, answer in rest if (_interval(report, answer, of) or (value, value))[0] <= highest
        )
        yield Pick(title, best.platform, choice_words.pick_figure(of, least), _state(best, of), tuple(others))


def _interval(report: Report, answer: AnswerReport, of: Criterion) -> tuple[float, float] | None:
    """The 95 % interval of a start, in ms; None where there is none, as of calls, which were read."""
    standing = _standing(answer, of)
    if of is Criterion.CALLS or standing is None:
        return None
    figures = next(
        (
            platform
            for result in report.results
            if (result.workload, result.metric) == (standing.workload, standing.metric)
            for platform in result.platforms
            if platform.platform == answer.platform
        ),
        None,
    )
    if figures is None:
        return None
    added, low, high = figures.amount, figures.amount_low, figures.amount_high
    if standing.value is None or added is None or low is None or high is None:
        return None
    scale, baseline = _UNITS[Criterion.START].get(standing.unit, math.nan), standing.value - added
    return scale * (baseline + low), scale * (baseline + high)
