"""Variances that borrow from a campaign's other figures, so that a few blocks tell more (Smyth 2004, as limma).

A variance of three blocks has two degrees of freedom, so its interval is wide or narrow by luck. A campaign has dozens
of such variances, and most of their differences can be predicted. Each variance is drawn towards its prediction, by as
much as predictions hold in this campaign (docs/method.md, Moderated variances).
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

#: Fewer pairs of a workload and a platform do not show how well predictions hold.
MIN_PAIRS = 8
#: A row whose variance has a lower probability under its prediction keeps its own.
GUARD = 0.10
#: Up to this many blocks, a verdict's variance is at least that of the rounds within blocks.
FLOOR_UP_TO = 6
#: Residuals below this quantile of the chance distribution are set to it, because the logarithm of a variance that is
#: small by luck has a long tail.
_CUT = 0.025
_QUANTILES = (np.arange(4_000) + 0.5) / 4_000
#: Prior variances of a logarithm below this are zero in effect: 200,000 degrees of freedom.
_LEAST = 1e-5


@dataclass(frozen=True, slots=True)
class FigureRow:
    """A row of a campaign: a platform in a metric. ``platform`` is None for the baseline against itself."""

    workload: str
    metric: str
    platform: str | None


@dataclass(frozen=True, slots=True)
class Rows:
    """Variances of block ratios, one element for each row. ``fitted``: the rows from which predictions are made."""

    figures: Sequence[FigureRow]
    variances: Floats
    dfs: Floats
    arms: Floats  # Of the baseline: the variance of a contrast is 1 + 1 / arms times that of an arm.
    within: Floats  # Variance of a block's figure from the scatter of its rounds; NaN if a block has one round.
    fitted: Bools


def moderated_looks(contrasts: Mapping[FigureRow, Contrast], fitted: frozenset[FigureRow]) -> dict[FigureRow, Looks]:
    """Return both looks of each contrast of two blocks or more, with moderated spreads where these are safe.

    ``fitted``: headlines and CPU costs, from which variances are predicted. Blocks that depend on their neighbours
    (`tare.estimates.dependence`) keep their own spreads, because there a variance says too little about the mean's
    error.
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
    pairs: Mapping[FigureRow, BlockRatios], contrasts: Mapping[FigureRow, Contrast], fitted: frozenset[FigureRow]
) -> dict[FigureRow, tuple[Spread, Spread]]:
    """Return, for each figure, the spread to print and the spread to judge by."""
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
    """Return variances with their degrees of freedom: ``(d0 s0^2 + d s^2) / (d0 + d)`` with ``d0 + d``.

    s0^2 is a row's prediction, and d0 the weight of the prediction. Rows keep their own variance if the campaign has
    too few rows (`MIN_PAIRS`), or if the prediction does not fit (`GUARD`).
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
    # As in limma, a row is not known better than all rows together.
    most = np.maximum(rows.dfs[fitted].sum(), rows.dfs)
    return (
        np.where(drawn, squeezed(rows.variances, rows.dfs, prior, prior_df), rows.variances),
        np.where(drawn, np.minimum(prior_df + rows.dfs, most), rows.dfs),
    )


def prior_of(predicted: Floats, uncertainty: Floats) -> tuple[Floats, Floats]:
    """Return the prior variance and its degrees of freedom, for log variances around ``predicted`` by ``uncertainty``.

    The scaled F distribution with these moments: ``d0 = 2 trigamma^-1(V)`` and ``ln s0^2 = m + psi(d0/2) - ln(d0/2)``.
    """
    df = 2 * trigamma_inverse(np.maximum(uncertainty, _LEAST))
    return np.asarray(np.exp(predicted + special.digamma(df / 2) - np.log(df / 2))), df


def squeezed(variances: Floats, dfs: Floats, prior: Floats, prior_df: Floats) -> Floats:
    """Return variances drawn towards the prior: the mean of both, weighted by their degrees of freedom."""
    return np.asarray((prior_df * prior + dfs * variances) / (prior_df + dfs))


def unbiased_log(variances: Floats, dfs: Floats) -> Floats:
    """Return the logarithm of the true variance, without bias: ``ln s^2 - psi(d / 2) + ln(d / 2)``."""
    return np.asarray(np.log(variances) - special.digamma(dfs / 2) + np.log(dfs / 2))


def _predictors(rows: Rows, logs: Floats, usable: Bools, fitted: Bools, contrast: Floats) -> Floats:
    """Return the predictors of a log variance, one in each column.

    A constant; the mean log variance of the metric's other rows; the scatter of rounds within blocks, and if there are
    rounds; and the platform's habit: by how much its other workloads vary more than their metrics do.
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
    """Return, by least squares over the fitted rows, each row's prediction and the variance of the truth around it.

    That variance is the residuals' variance beyond chance, plus its own standard error, plus the error of the
    prediction, by the row's leverage. Rows of one platform and workload share their blocks, so pairs are counted, not
    rows.
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
    """Return the cut for ``ln chi^2`` with ``df`` degrees of freedom less its mean, and its variance after the cut."""
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
    """Return a number for each key, equal for equal keys."""
    known: dict[object, int] = {}
    return np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)
