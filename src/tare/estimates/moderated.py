"""Variances that borrow from the other figures of a campaign, so that a few blocks tell more (Smyth 2004, as limma).

A variance of three blocks has two degrees of freedom: an interval from it alone is wide or narrow by luck. A campaign
has dozens of such variances, and most of what makes them differ can be predicted. Each is drawn towards its prediction
by as much as the predictions hold in this campaign (docs/method.md, Moderated variances).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tare import lazily
from tare.estimates.contrasts import Contrast
from tare.estimates.dependence import dependence
from tare.estimates.grid import BlockRatios
from tare.estimates.intervals import Floats
from tare.estimates.looks import Looks, Spread

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily.LazyModule("scipy.special")

Bools = NDArray[np.bool_]

#: Below this many pairs of a workload and a platform nobody can say how well predictions hold.
MIN_PAIRS = 8
#: A row whose variance is less probable than this by its prediction keeps its own.
GUARD = 0.10
#: Up to this many blocks no verdict rests on less variance than the rounds within blocks have by themselves.
FLOOR_UP_TO = 6
#: Residuals below this point of the distribution that chance alone gives are set to it: the logarithm of a variance
#: that is small by luck has a long tail.
_CUT = 0.025
_QUANTILES = (np.arange(4_000) + 0.5) / 4_000
#: Prior variances of a logarithm below this are as good as none: 200,000 degrees of freedom.
_LEAST = 1e-5


@dataclass(frozen=True, slots=True)
class Figure:
    """A row of a campaign: a platform in a metric. ``platform`` is None for the baseline against itself."""

    workload: str
    metric: str
    platform: str | None


@dataclass(frozen=True, slots=True)
class Rows:
    """Variances of block ratios, an element a row. ``fitted``: the rows that the prediction is made from."""

    figures: Sequence[Figure]
    variances: Floats
    dfs: Floats
    arms: Floats  # of the baseline: the variance of a contrast is 1 + 1 / arms times that of an arm
    within: Floats  # variance of a block's figure by the scatter of its rounds; NaN where a block has one round
    fitted: Bools


def moderated_looks(contrasts: Mapping[Figure, Contrast], fitted: frozenset[Figure]) -> dict[Figure, Looks]:
    """Both looks of each contrast of two blocks or more, with moderated spreads where these are safe.

    ``fitted``: headlines and CPU costs, from which variances are predicted. Blocks that depend on their neighbours
    (`tare.estimates.dependence`) have spreads of their own alone: there a variance says too little of the mean's error.
    """
    looks = {figure: seen for figure, contrast in contrasts.items() if (seen := contrast.looks()) is not None}
    depends = dependence(
        [contrasts[figure].pairs for figure in looks if figure in fitted and figure.platform is not None]
    )
    if depends is not None and depends.is_sure:
        return looks
    typical = {figure: contrasts[figure].pairs for figure in looks}
    totals = {figure: pairs for figure in looks if (pairs := contrasts[figure].totals) is not None}
    typical_spreads, total_spreads = (_spreads(pairs, contrasts, fitted) for pairs in (typical, totals))
    return {
        figure: Looks(
            seen.typical.moderated(*typical_spreads[figure]),
            None if seen.totals is None else seen.totals.moderated(*total_spreads[figure]),
        )
        for figure, seen in looks.items()
    }


def _spreads(
    pairs: Mapping[Figure, BlockRatios], contrasts: Mapping[Figure, Contrast], fitted: frozenset[Figure]
) -> dict[Figure, tuple[Spread, Spread]]:
    """Of each figure the spread that is printed and the one that is judged by."""
    sizes = np.array([ratios.logs.size for ratios in pairs.values()], dtype=np.float64)
    within = np.array([_mean(ratios.within) for ratios in pairs.values()])
    rows = Rows(
        tuple(pairs),
        np.array([ratios.logs.var(ddof=1) for ratios in pairs.values()]),
        sizes - 1,
        np.array([contrasts[figure].arms for figure in pairs], dtype=np.float64),
        within,
        np.array([figure in fitted for figure in pairs], dtype=np.bool_),
    )
    variances, dfs = moderated(rows)
    floor = np.where((sizes <= FLOOR_UP_TO) & (dfs > rows.dfs) & np.isfinite(within), within, 0.0)
    shown, judged = (np.sqrt(chosen / sizes) for chosen in (variances, np.maximum(variances, floor)))
    return {
        figure: (Spread(float(shown[at]), float(dfs[at])), Spread(float(judged[at]), float(dfs[at])))
        for at, figure in enumerate(pairs)
    }


def _mean(within: Floats) -> float:
    known = within[np.isfinite(within)]
    return float(known.mean()) if known.size else math.nan


def moderated(rows: Rows) -> tuple[Floats, Floats]:
    """Variances with their degrees of freedom: ``(d0 s0^2 + d s^2) / (d0 + d)`` with ``d0 + d``.

    s0^2 is a row's prediction and d0 what that is worth. Rows keep their own where the campaign has too few of them
    (`MIN_PAIRS`), and where the prediction does not fit (`GUARD`).
    """
    usable = (rows.variances > 0) & (rows.dfs > 0)
    fitted = rows.fitted & usable
    pair_of = _numbers([(figure.workload, figure.platform) for figure in rows.figures])
    if np.unique(pair_of[fitted]).size < MIN_PAIRS:
        return rows.variances, rows.dfs
    contrast = 1 + 1 / rows.arms
    logs = np.full(usable.size, np.nan)
    logs[usable] = unbiased_log(rows.variances[usable] / contrast[usable], rows.dfs[usable])
    predictors = _predictors(rows, logs, usable, fitted, contrast)
    predicted, uncertainty = _fit(predictors, logs, rows.dfs, pair_of, fitted)
    prior, prior_df = prior_of(predicted, uncertainty)
    prior = contrast * prior
    drawn = usable & (special.fdtrc(np.maximum(rows.dfs, 1), prior_df, rows.variances / prior) >= GUARD)
    most = np.maximum(rows.dfs[fitted].sum(), rows.dfs)  # as limma: no row is known better than all of them together
    return (
        np.where(drawn, squeezed(rows.variances, rows.dfs, prior, prior_df), rows.variances),
        np.where(drawn, np.minimum(prior_df + rows.dfs, most), rows.dfs),
    )


def prior_of(predicted: Floats, uncertainty: Floats) -> tuple[Floats, Floats]:
    """The prior variance and its degrees of freedom, where log variances lie around ``predicted`` by ``uncertainty``.

    The scaled F distribution with these moments: ``d0 = 2 trigamma^-1(V)`` and ``ln s0^2 = m + psi(d0/2) - ln(d0/2)``.
    """
    df = 2 * trigamma_inverse(np.maximum(uncertainty, _LEAST))
    return np.asarray(np.exp(predicted + special.digamma(df / 2) - np.log(df / 2))), df


def squeezed(variances: Floats, dfs: Floats, prior: Floats, prior_df: Floats) -> Floats:
    """Variances drawn towards the prior: the mean of both, weighted by their degrees of freedom."""
    return np.asarray((prior_df * prior + dfs * variances) / (prior_df + dfs))


def unbiased_log(variances: Floats, dfs: Floats) -> Floats:
    """The logarithm of the true variance, without bias: ``ln s^2 - psi(d / 2) + ln(d / 2)``."""
    return np.asarray(np.log(variances) - special.digamma(dfs / 2) + np.log(dfs / 2))


def _predictors(rows: Rows, logs: Floats, usable: Bools, fitted: Bools, contrast: Floats) -> Floats:
    """What a log variance is predicted from, a column each.

    A constant; the mean log variance of the metric's other rows; the scatter of rounds within blocks, and whether there
    are rounds; and the platform's habit, by how much its other workloads vary more than their metrics do.
    """
    filled, count = np.where(usable, logs, 0.0), usable.astype(np.float64)
    metric_of = _numbers([(figure.workload, figure.metric) for figure in rows.figures])
    sums, counts = (np.bincount(metric_of, weights)[metric_of] for weights in (filled, count))
    others = np.where(counts > count, (sums - filled) / np.maximum(counts - count, 1), float(logs[usable].mean()))
    apart = np.where(fitted, filled - sums / np.maximum(counts, 1), 0.0)
    platform_of = _numbers([figure.platform for figure in rows.figures])
    pair_of = _numbers([(figure.workload, figure.platform) for figure in rows.figures])
    elsewhere, number = (
        np.bincount(platform_of, weights)[platform_of] - np.bincount(pair_of, weights)[pair_of]
        for weights in (apart, fitted.astype(np.float64))
    )
    habit = np.where(number > 0, elsewhere / np.maximum(number, 1), 0.0)
    has_rounds = np.isfinite(rows.within) & (rows.within > 0)
    scatter = np.where(has_rounds, np.log(np.where(has_rounds, rows.within, 1.0) / contrast), 0.0)
    return np.column_stack((np.ones(usable.size), others, scatter, has_rounds.astype(np.float64), habit))


def _fit(
    predictors: Floats, logs: Floats, dfs: Floats, pair_of: NDArray[np.int64], fitted: Bools
) -> tuple[Floats, Floats]:
    """Least squares over the fitted rows: each row's prediction, and the variance of the truth around it.

    That is what residuals vary by beyond chance, with its own standard error added, plus the error of the prediction,
    by the row's leverage. Rows of one platform and workload share their blocks, so that those pairs are what counts.
    """
    chosen, residual_dfs = predictors[fitted], dfs[fitted]
    inverse = np.linalg.pinv(chosen.T @ chosen)
    coefficients = inverse @ chosen.T @ logs[fitted]
    rank = int(np.linalg.matrix_rank(chosen))
    lows, by_chance = (np.array(values) for values in zip(*map(_chance, residual_dfs.tolist()), strict=True))
    residuals = np.maximum(logs[fitted] - chosen @ coefficients, lows)
    n_rows = residuals.size
    squares = residuals**2 * n_rows / max(1, n_rows - rank)
    groups = np.unique(pair_of[fitted], return_inverse=True)[1]
    n_pairs = int(groups.max()) + 1
    by_pair = np.bincount(groups, squares) * n_pairs / n_rows
    variance = float(squares.mean())
    error = float(by_pair.std(ddof=1)) / math.sqrt(n_pairs)
    beyond_chance = max(0.0, variance + error - float(by_chance.mean()))
    leverage = np.einsum("ij,jk,ik->i", predictors, inverse, predictors)
    return predictors @ coefficients, beyond_chance + variance * leverage * n_rows / n_pairs


@functools.cache
def _chance(df: float) -> tuple[float, float]:
    """Of ``ln chi^2`` of so many degrees of freedom less its mean: the cut, and the variance once that is applied."""
    middle = float(special.digamma(df / 2)) + math.log(2)
    low = math.log(float(special.chdtri(df, 1 - _CUT))) - middle
    cut = np.maximum(np.log(special.chdtri(df, 1 - _QUANTILES)) - middle, low)
    return low, float((cut**2).mean())


def trigamma_inverse(values: Floats) -> Floats:
    """Solve ``trigamma(y) = x`` by Newton's method on 1 / trigamma, which is convex (Smyth 2004, appendix)."""
    values = np.asarray(values, dtype=np.float64)
    estimate = 0.5 + 1 / values
    for _ in range(50):
        trigamma = special.polygamma(1, estimate)
        step = trigamma * (1 - trigamma / values) / special.polygamma(2, estimate)
        estimate = estimate + step
        if float(np.max(-step / estimate, initial=0.0)) < 1e-8:
            break
    return estimate


def _numbers(keys: Sequence[object]) -> NDArray[np.int64]:
    """A number for each key, equal for equal ones."""
    known: dict[object, int] = {}
    return np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)
