from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from refused import refused
from tare.features.kernel.analysis.unseen import chao2, jaccard, jaccards

#: Of each thing, the repeats that it was seen in, a bit each: quick to draw.
MASKS = st.lists(st.integers(0, 63), max_size=30)


def test_jaccard_by_hand() -> None:
    assert jaccard({"a", "b", "c"}, {"b", "c", "d"}) == 0.5
    assert jaccard({"a"}, {"b"}) == 0.0
    assert jaccard(set(), set()) == 1.0
    assert jaccards([{"a"}, {"a"}, {"b"}]) == [1.0, 0.0, 0.0]
    with refused("not enough repeats"):
        jaccards([{"a"}])


def test_chao2_by_hand() -> None:
    """Four repeats; a, b, c in one of them, d, e in two, f in all: 6 + 3/4 · 9 / 4 = 7.6875."""
    repeats = [{"a", "b", "d", "f"}, {"c", "d", "e", "f"}, {"e", "f"}, {"f"}]
    estimate = chao2(repeats)
    assert estimate.point == pytest.approx(6 + 0.75 * 9 / 4)
    # r = 3/2: the variance is 2 (3/8 · 9/4 + 9/16 · 27/8 + 9/64 · 81/16).
    variance = 2 * (3 / 8 * 9 / 4 + 9 / 16 * 27 / 8 + 9 / 64 * 81 / 16)
    wide = math.exp(1.959964 * math.sqrt(math.log(1 + variance / 1.6875**2)))
    assert estimate.low == pytest.approx(6 + 1.6875 / wide, rel=1e-6)
    assert estimate.high == pytest.approx(6 + 1.6875 * wide, rel=1e-6)


def test_chao2_without_anything_seen_twice() -> None:
    """Two repeats that share nothing: 3 + 1/2 · 3 · 2 / 2 = 4.5."""
    estimate = chao2([{"a", "b"}, {"c"}])
    assert estimate.point == pytest.approx(3 + 0.5 * 3 * 2 / 2)
    assert 3 < estimate.low < estimate.point < estimate.high


def test_chao2_where_repeats_agree_has_nothing_to_add() -> None:
    estimate = chao2([{"a", "b"}] * 5)
    assert (estimate.point, estimate.low, estimate.high) == (2, 2, 2)


def test_chao2_where_all_was_seen_twice_leaves_room_above() -> None:
    """Six things, each in two of three repeats: each is missed by one repeat in three, by all of three in 1/27."""
    estimate = chao2([{"a", "b", "c", "d"}, {"c", "d", "e", "f"}, {"e", "f", "a", "b"}])
    assert (estimate.point, estimate.low) == (6, 6)
    assert estimate.high == pytest.approx((6 + 1.959964 * math.sqrt(6 / 27)) / (1 - 1 / 27), rel=1e-6)


def test_chao2_says_when_it_cannot_tell() -> None:
    with refused("not enough repeats"):
        chao2([{"a"}])
    with refused("nothing was seen"):
        chao2([set(), set()])


@given(MASKS, st.integers(2, 6))
def test_chao2_is_never_below_what_was_seen(masks: list[int], count: int) -> None:
    repeats = [frozenset(str(number) for number, mask in enumerate(masks) if mask >> bit & 1) for bit in range(count)]
    seen = frozenset().union(*repeats)
    if not seen:
        return
    estimate = chao2(repeats)
    assert len(seen) <= estimate.low <= estimate.point <= estimate.high
    assert all(math.isfinite(value) for value in (estimate.low, estimate.point, estimate.high))
    assert chao2(list(reversed(repeats))) == estimate


def test_chao2_covers_the_truth_where_all_are_equally_rare() -> None:
    """Its assumption: 95 of 100 intervals hold the number of things; a band for 400 draws."""
    rng = np.random.default_rng(5)
    names = np.array([str(at) for at in range(300)])
    held, points = 0, []
    for _ in range(400):
        estimate = chao2([set(names[rng.random(300) < 0.3]) for _ in range(5)])
        held += estimate.low <= 300 <= estimate.high
        points.append(estimate.point)
    assert held / 400 == pytest.approx(0.95, abs=0.04)
    assert np.mean(points) == pytest.approx(300, rel=0.01)


def test_chao2_is_a_lower_bound_where_some_are_rarer_than_others() -> None:
    rng = np.random.default_rng(6)
    often = np.concatenate([np.full(200, 0.9), np.full(100, 0.05)])
    points = []
    for _ in range(100):
        estimate = chao2([set(map(str, np.flatnonzero(rng.random(300) < often))) for _ in range(4)])
        points.append(estimate.point)
    assert 220 < np.mean(points) < 303
