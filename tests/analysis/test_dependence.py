"""Whether neighbouring blocks are alike, of series whose truth is known."""

import numpy as np
import pytest
from scipy import signal, stats

from tare.estimates.dependence import MIN_BLOCKS, dependence
from tare.estimates.grid import BlockRatios


def _ratios(blocks, logs):
    return BlockRatios(blocks, logs, np.zeros(logs.size, dtype=bool), np.full(logs.size, np.nan))


def _series(rng, n_blocks, n_series, correlation, shared=0.0):
    """First-order autoregressions; ``shared``: how much all have in common."""
    noise = rng.normal(0, 1, (n_series, n_blocks + 50)) + shared * rng.normal(0, 1, n_blocks + 50)
    lines = signal.lfilter([1.0], [1.0, -correlation], noise, axis=1)[:, 50:]
    return [_ratios(np.arange(n_blocks), line) for line in lines]


@pytest.mark.simulation
@pytest.mark.parametrize("shared", [0.0, 2.0])
def test_independent_blocks_are_called_alike_as_rarely_as_stated(shared):
    rng = np.random.default_rng(1)
    called = [dependence(_series(rng, 10, 20, 0.0, shared)).is_sure for _ in range(300)]
    assert sum(called) <= stats.binom.ppf(0.999, 300, 0.01)


@pytest.mark.simulation
@pytest.mark.parametrize("n_blocks", [6, 10, 30])
def test_the_bias_of_independent_blocks_is_one_over_their_number_and_taken_off(n_blocks):
    rng = np.random.default_rng(2)
    series = [dependence(_series(rng, n_blocks, 20, 0.0)) for _ in range(40)]
    assert np.mean([estimate.bias for estimate in series]) == pytest.approx(-1 / n_blocks, abs=0.01)
    assert np.mean([estimate.correlation for estimate in series]) == pytest.approx(0, abs=0.02)


def test_a_long_series_tells_its_correlation_within_its_interval():
    estimate = dependence(_series(np.random.default_rng(3), 600, 3, 0.6))
    low, high = estimate.interval
    assert low < 0.6 < high
    assert high - low < 0.2
    assert estimate.too_narrow == pytest.approx(2.0, abs=0.3)
    assert estimate.is_sure


@pytest.mark.simulation
def test_a_campaigns_pool_finds_what_makes_its_intervals_cover_67_percent():
    """Blocks that depend on each other by 0.6, ten of them, four platforms and ten figures."""
    rng = np.random.default_rng(4)
    assert sum(dependence(_series(rng, 10, 40, 0.6)).is_sure for _ in range(40)) >= 38


def test_blocks_that_go_against_each_other_are_no_reason_to_warn():
    estimate = dependence(_series(np.random.default_rng(5), 200, 3, -0.5))
    assert estimate.correlation < -0.3
    assert not estimate.is_sure
    assert estimate.too_narrow == 1.0


def test_holes_and_few_blocks():
    rng = np.random.default_rng(6)
    whole, holes = _series(rng, 40, 2, 0.8)
    kept = np.arange(40) % 5 != 2
    estimate = dependence([whole, _ratios(holes.blocks[kept], holes.logs[kept])])
    assert estimate.is_sure
    short = MIN_BLOCKS - 1
    assert dependence([_ratios(np.arange(short), rng.normal(size=short))]) is None
    assert dependence([_ratios(np.arange(20), np.zeros(20))]) is None
    assert dependence([]) is None
