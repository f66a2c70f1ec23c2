"""Random-effects models of a figure over many hosts: each host is one observation, known with an error of its own.

``y_i = mu + u_i + e_i``, with ``u_i ~ N(0, tau^2)`` between hosts and ``e_i ~ N(0, v_i)`` by the host's own blocks.
All functions take a row a figure and a column a host, and fit all figures at once; NaN is a host without that figure.
Formulas: Viechtbauer 2005 (REML), Paule and Mandel 1982, Knapp and Hartung 2003, Benjamini and Hochberg 1995.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tare import lazily
from tare.estimates.intervals import Floats

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily.LazyModule("scipy.special")

Bools = NDArray[np.bool_]

#: Below this many hosts nothing can be said of the spread between them.
MIN_HOSTS = 2
#: Variances of hosts below this share of the largest spread of a figure are raised to it: a weight stays finite.
_LEAST_SHARE = 1e-9
_MAX_STEPS = 200
_PRECISE = 1e-12
#: Steps of the distribution that a prediction is averaged over, and how precise each is.
_NODES, _PRECISE_NODE = 64, 1e-6
_BISECTIONS = 60


class Between(StrEnum):
    """Estimator of the variance between hosts."""

    REML = "reml"
    PAULE_MANDEL = "paule-mandel"


@dataclass(frozen=True, slots=True)
class Hosts:
    """Effects ``y`` and their variances ``v``, a row a figure and a column a host; ``has``: what is known."""

    y: Floats  # 0 where it is not known
    v: Floats  # 1 where it is not known
    has: Bools

    @classmethod
    def of(cls, y: Floats, v: Floats) -> Hosts:
        """Effects that are NaN, or whose variance is, are left out. Variances must not be negative."""
        y, v = np.atleast_2d(np.asarray(y, dtype=np.float64)), np.atleast_2d(np.asarray(v, dtype=np.float64))
        has = np.isfinite(y) & np.isfinite(v)
        spread = np.where(has, y, 0.0).max(axis=1, keepdims=True, initial=0.0) - np.where(has, y, 0.0).min(
            axis=1, keepdims=True, initial=0.0
        )
        least = np.maximum(_LEAST_SHARE * spread**2, np.finfo(np.float64).tiny ** 0.5)
        return cls(np.where(has, y, 0.0), np.where(has, np.maximum(v, least), 1.0), has)

    def only(self, kept: Bools) -> Hosts:
        """Only some of the hosts, a figure at a time."""
        return Hosts(self.y, self.v, self.has & kept)

    def rows(self, start: int, end: int) -> Hosts:
        """Return some of the figures."""
        return Hosts(self.y[start:end], self.v[start:end], self.has[start:end])

    @property
    def count(self) -> NDArray[np.int64]:
        """Hosts of each figure."""
        return np.asarray(self.has.sum(axis=1), dtype=np.int64)

    def weights(self, tau2: Floats) -> Floats:
        """``1 / (v + tau^2)``, and 0 where nothing is known."""
        return np.where(self.has, 1.0 / (self.v + tau2[:, None]), 0.0)


@dataclass(frozen=True, slots=True)
class Fit:
    """A model of each figure. ``error``: Hartung and Knapp's standard error of the mean, with ``df``.

    NaN where a figure has too few hosts (`MIN_HOSTS`).
    """

    mean: Floats
    tau2: Floats
    error: Floats
    df: Floats
    count: NDArray[np.int64]

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Return the ends of the mean's interval."""
        half = _quantile(self.df, level) * self.error
        return self.mean - half, self.mean + half

    def classic_prediction(self, level: float) -> tuple[Floats, Floats]:
        """Higgins', as metafor has it: ``mean ± t sqrt(tau^2 + error^2)``. It takes the estimated tau^2 for known."""
        half = _quantile(self.df, level) * np.sqrt(self.tau2 + self.error**2)
        return self.mean - half, self.mean + half


def fit(hosts: Hosts, method: Between = Between.REML, *, at_least_one: bool = True) -> Fit:
    """Fit a model a figure.

    ``at_least_one``: an interval is never narrower than one of known variances (Knapp and Hartung's own advice).
    Without it, hosts that agree by luck have an interval that is too narrow.
    """
    tau2 = reml(hosts) if method is Between.REML else paule_mandel(hosts)
    count = hosts.count
    weights = hosts.weights(tau2)
    total = weights.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (weights * hosts.y).sum(axis=1) / total
        df = np.where(count >= MIN_HOSTS, count - 1.0, np.nan)
        scale = _squares(hosts, weights, mean) / df
        if at_least_one:
            scale = np.maximum(scale, 1.0)
        error = np.sqrt(scale / total)
    enough = count >= MIN_HOSTS
    return Fit(
        np.where(count > 0, mean, np.nan), np.where(enough, tau2, np.nan), np.where(enough, error, np.nan), df, count
    )


def reml(hosts: Hosts) -> Floats:
    """Estimate the variance between hosts by restricted maximum likelihood: Fisher scoring from Hedges' estimate.

    As metafor's ``rma(method = "REML")``. 0 where hosts differ by no more than their own errors say, and where there
    are too few of them.
    """
    tau2 = _hedges(hosts)
    enough = hosts.count >= MIN_HOSTS
    moving = enough.copy()
    for _ in range(_MAX_STEPS):
        if not moving.any():
            break
        rows = Hosts(hosts.y[moving], hosts.v[moving], hosts.has[moving])
        before = tau2[moving]
        after = np.maximum(0.0, before + _scoring_step(rows, before))
        tau2[moving] = after
        still = np.abs(after - before) > _PRECISE * np.maximum(after, _typical_variance(rows))
        moving[moving] = still
    return np.where(enough, tau2, 0.0)


def _scoring_step(hosts: Hosts, tau2: Floats) -> Floats:
    """``(y'PPy - tr P) / tr PP`` with the projection P of a model with a mean alone."""
    weights = hosts.weights(tau2)
    first, second, third = (weights.sum(axis=1), (weights**2).sum(axis=1), (weights**3).sum(axis=1))
    mean = (weights * hosts.y).sum(axis=1) / first
    residuals = np.where(hosts.has, hosts.y - mean[:, None], 0.0)
    explained = (weights**2 * residuals**2).sum(axis=1)
    trace = first - second / first
    squared = second - 2 * third / first + (second / first) ** 2
    return np.asarray((explained - trace) / squared)


def paule_mandel(hosts: Hosts) -> Floats:
    """Estimate the variance between hosts that makes the weighted squares ``k - 1``, as chance alone does.

    0 where they are less already, and where there are too few hosts.
    """
    target = np.maximum(hosts.count - 1.0, 1.0)
    return np.where(hosts.count >= MIN_HOSTS, _with_squares(hosts, target), 0.0)


def _with_squares(hosts: Hosts, target: Floats, start: Floats | None = None, precise: float = _PRECISE) -> Floats:
    """Find the tau^2 at which the weighted squares equal ``target``, by Newton's method from below.

    The squares fall with tau^2 and are convex in it, so that a step never leads beyond the solution. ``start``: no
    more than that.
    """
    tau2 = np.zeros(hosts.count.size) if start is None else start.copy()
    moving, typical = hosts.count >= MIN_HOSTS, _typical_variance(hosts)
    for _ in range(_MAX_STEPS):
        if not moving.any():
            break
        rows = hosts if moving.all() else Hosts(hosts.y[moving], hosts.v[moving], hosts.has[moving])
        weights = rows.weights(tau2[moving])
        total = weights.sum(axis=1)
        mean = (weights * rows.y).sum(axis=1) / total
        residuals = np.where(rows.has, rows.y - mean[:, None], 0.0)
        excess = (weights * residuals**2).sum(axis=1) - target[moving]
        slope = (weights**2 * residuals**2).sum(axis=1)
        step = np.where(slope > 0, excess / np.where(slope > 0, slope, 1.0), 0.0)
        before = tau2[moving]
        after = np.maximum(0.0, before + step)
        tau2[moving] = after
        moving[moving] = np.abs(after - before) > precise * np.maximum(after, typical[moving])
    return tau2


def _squares(hosts: Hosts, weights: Floats, mean: Floats) -> Floats:
    residuals = np.where(hosts.has, hosts.y - mean[:, None], 0.0)
    return np.asarray((weights * residuals**2).sum(axis=1))


def _hedges(hosts: Hosts) -> Floats:
    """Return the variance of the effects less the mean of their errors' variances: where REML begins."""
    count = np.maximum(hosts.count, 1)
    mean = np.where(hosts.has, hosts.y, 0.0).sum(axis=1) / count
    squares = np.where(hosts.has, (hosts.y - mean[:, None]) ** 2, 0.0).sum(axis=1)
    by_error = np.where(hosts.has, hosts.v, 0.0).sum(axis=1) / count
    return np.asarray(np.maximum(0.0, squares / np.maximum(count - 1, 1) - by_error))


def _typical_variance(hosts: Hosts) -> Floats:
    return np.asarray(np.where(hosts.has, hosts.v, 0.0).sum(axis=1) / np.maximum(hosts.count, 1))


def _quantile(df: Floats, level: float) -> Floats:
    known = np.isfinite(df) & (df > 0)
    return np.where(known, special.stdtrit(np.where(known, df, 1.0), (1 + level) / 2), np.nan)


def prediction(hosts: Hosts, level: float) -> tuple[Floats, Floats]:
    """Return the ends between which the true figure of an unmeasured host lies.

    The estimate of tau^2 is itself uncertain, most with few hosts. Its confidence distribution is that of the tau^2 at
    which the weighted squares are a chi-squared variable of k - 1 degrees of freedom (Paule and Mandel's estimate has
    their mean, k - 1). The prediction is the mixture of ``N(mean(tau^2), tau^2 + 1 / sum(w))`` over it. Where errors
    are small beside tau^2 that is Student's prediction, ``mean ± t(k - 1) s sqrt(1 + 1 / k)``.
    """
    enough = hosts.count >= MIN_HOSTS
    shares = (np.arange(_NODES) + 0.5) / _NODES
    means, deviations = [], []
    tau2 = np.zeros(hosts.count.size)
    for share in shares:  # the target falls, so that tau^2 rises
        target = special.chdtri(np.maximum(hosts.count - 1.0, 1.0), share)
        tau2 = _with_squares(hosts, target, tau2, _PRECISE_NODE)
        weights = hosts.weights(tau2)
        total = np.maximum(weights.sum(axis=1), np.finfo(np.float64).tiny)
        means.append((weights * hosts.y).sum(axis=1) / total)
        deviations.append(np.sqrt(tau2 + 1 / total))
    mean, deviation = np.array(means), np.array(deviations)
    tail = (1 - level) / 2
    low, high = (_mixture_quantile(mean, deviation, share) for share in (tail, 1 - tail))
    return np.where(enough, low, np.nan), np.where(enough, high, np.nan)


def _mixture_quantile(means: Floats, deviations: Floats, share: float) -> Floats:
    """Return where a mixture of normal distributions, one a row, has so much below; by bisection, a column a figure."""
    far = abs(float(special.ndtri(share))) + 1.0
    low, high = (means - far * deviations).min(axis=0), (means + far * deviations).max(axis=0)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        below = special.ndtr((middle - means) / deviations).mean(axis=0) < share
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray((low + high) / 2)


def shrunk(hosts: Hosts, model: Fit) -> tuple[Floats, Floats]:
    """Best linear unbiased prediction of each host's true figure, with its standard error.

    ``l mean + (1 - l) y`` with ``l = v / (tau^2 + v)``, and ``l tau^2 + l^2 error^2``, as metafor's ``blup``.
    """
    share = hosts.v / (hosts.v + model.tau2[:, None])
    point = share * model.mean[:, None] + (1 - share) * hosts.y
    error = np.sqrt(share * model.tau2[:, None] + share**2 * model.error[:, None] ** 2)
    return np.where(hosts.has, point, np.nan), np.where(hosts.has, error, np.nan)


def standardised(hosts: Hosts, model: Fit) -> Floats:
    """Deviation of each host from the mean over its standard deviation in the model (metafor's ``rstandard``)."""
    variance = hosts.v + model.tau2[:, None]
    own = variance - 1 / np.maximum(hosts.weights(model.tau2).sum(axis=1), np.finfo(np.float64).tiny)[:, None]
    return np.where(hosts.has & (own > 0), (hosts.y - model.mean[:, None]) / np.sqrt(np.maximum(own, 1e-300)), np.nan)


def deviations(hosts: Hosts, rate: float) -> tuple[Floats, Floats]:
    """Return each host's distance from the others in standard deviations, with the p-value; NaN without a figure.

    Odd hosts make the spread larger that they are measured by, and so hide. So the usual hosts are found first: those
    that are not odd by the median and the median deviation. A model of these alone says how far each host is from them;
    a host that is one of them is compared with the others without it (external studentisation).
    """
    usual = hosts.only(~discoveries(_by_median(hosts), _FIRST_SHARE * rate))
    model = fit(usual, at_least_one=False)
    share = model.tau2[:, None] / (hosts.v + model.tau2[:, None])
    inside = _external(standardised(usual, model), model.count, share)
    variance = hosts.v + model.tau2[:, None] + model.error[:, None] ** 2
    outside = (hosts.y - model.mean[:, None]) / np.sqrt(variance)
    deviation = np.where(hosts.has, np.where(usual.has, inside, outside), np.nan)
    df = np.where(usual.has, model.count[:, None] - 2.0, model.count[:, None] - 1.0)
    return deviation, _two_sided(deviation, df)


def odd_hosts(p: Floats, rate: float) -> Bools:
    """Find the odd hosts, and their odd figures: at most ``rate`` of the hosts that are called odd are not.

    ``p``: of `deviations`, a row a figure. A host has one p-value over its figures, by Simes, and Benjamini and
    Hochberg's procedure over hosts says which are odd. In which of its figures an odd host is so, the procedure says
    over its own ones, at the rate times the share of hosts that are odd (Benjamini and Bogomolov 2014).
    """
    odd = discoveries(_simes(p)[None, :], _LAST_SHARE * rate)[0]
    share = odd.sum() / max(1, int(np.isfinite(p).any(axis=0).sum()))
    is_odd = np.zeros(p.shape, dtype=np.bool_)
    is_odd[:, odd] = discoveries(p[:, odd].T, _LAST_SHARE * rate * share).T
    return is_odd


def _simes(p: Floats) -> Floats:
    """One p-value of each column: the least of ``n p / rank`` (Simes 1986); NaN of a column without any."""
    ordered = np.sort(p, axis=0)
    count = np.isfinite(p).sum(axis=0)
    ranks = np.arange(1, p.shape[0] + 1)[:, None]
    scaled = np.where(np.isfinite(ordered), count * ordered / ranks, np.inf)
    return np.where(count > 0, np.minimum(scaled.min(axis=0, initial=np.inf), 1.0), np.nan)


#: The floor of what is left of a variance without a host.
_LEAST_ROOM = 0.01
#: What the first look leaves out is left out for sure: of the false-discovery rate it has this share.
_FIRST_SHARE = 0.2
#: And the second look this share: the spread is estimated, which costs up to a tenth of the rate (simulated).
_LAST_SHARE = 0.9
#: The median deviation says as much of a spread as this share of the hosts would by their standard deviation.
_EFFICIENCY = 0.37
#: The median of chi-squared with one degree of freedom.
_MEDIAN_SQUARE = 0.454936423119572


def _by_median(hosts: Hosts) -> Floats:
    """p-values of hosts around the median, by a tau^2 with which the median of squared deviations is a median's."""
    count = hosts.count
    middle = np.nan_to_num(_nanmedian(np.where(hosts.has, hosts.y, np.nan)))
    squares = np.where(hosts.has, (hosts.y - middle[:, None]) ** 2, np.nan)
    low, high = np.zeros(count.size), np.nan_to_num(_nanmedian(squares)) / _MEDIAN_SQUARE
    for _ in range(_BISECTIONS // 2):
        tau2 = (low + high) / 2
        above = np.nan_to_num(_nanmedian(squares / (hosts.v + tau2[:, None]))) > _MEDIAN_SQUARE
        low, high = np.where(above, tau2, low), np.where(above, high, tau2)
    deviation = np.where(hosts.has, hosts.y - middle[:, None], np.nan) / np.sqrt(hosts.v + high[:, None])
    return _two_sided(deviation, np.broadcast_to(_EFFICIENCY * (count[:, None] - 1.0), deviation.shape))


def _nanmedian(values: Floats) -> Floats:
    """Return the median of each row without its NaNs; NaN of a row that has nothing else."""
    ordered = np.sort(values, axis=1)  # NaN last
    count = np.isfinite(values).sum(axis=1)
    rows = np.arange(values.shape[0])
    low, high = np.maximum((count - 1) // 2, 0), np.maximum(count // 2, 0)
    middle = (ordered[rows, low] + ordered[rows, np.minimum(high, values.shape[1] - 1)]) / 2
    return np.where(count > 0, middle, np.nan)


def _external(internal: Floats, count: NDArray[np.int64], share: Floats) -> Floats:
    """Deviations by a spread that the host itself has no part in: ``r / sqrt(1 - share (r^2 - 1) / (k - 2))``.

    Exact where hosts have no errors. ``share``: of tau^2 in a host's variance, since its own error is not estimated
    from the others; the root has a floor, so that no deviation is without bound.
    """
    k = count[:, None].astype(np.float64)
    room = np.maximum(1 - share * (internal**2 - 1) / np.maximum(k - 2, 1), _LEAST_ROOM)
    return np.where(k > 2, internal / np.sqrt(room), np.nan)


def _two_sided(deviation: Floats, df: Floats) -> Floats:
    known = np.isfinite(deviation) & (df > 0)
    p = 2 * special.stdtr(np.where(known, df, 1.0), -np.abs(np.where(known, deviation, 0.0)))
    return np.where(known, p, np.nan)


def discoveries(p: Floats, rate: float) -> Bools:
    """Select p-values of each row by Benjamini and Hochberg's procedure at this rate; NaN is no test."""
    p = np.atleast_2d(p)
    count = np.isfinite(p).sum(axis=1, keepdims=True)
    ordered = np.sort(p, axis=1)  # NaN last
    ranks = np.arange(1, p.shape[1] + 1)
    passed = ordered <= rate * ranks / np.maximum(count, 1)
    limit = np.where(passed, ordered, -1.0).max(axis=1, keepdims=True, initial=-1.0)
    return np.asarray(np.isfinite(p) & (np.where(np.isfinite(p), p, 2.0) <= limit))
