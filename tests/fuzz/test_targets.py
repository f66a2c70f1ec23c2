"""Seconds of what `make fuzz` does for hours: every target on its seeds, and on damaged ones."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.targets import SEEDS, TARGETS

#: Cut out, put in, exchange: (place, how many bytes go, what comes instead).
edits = st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 8), st.binary(max_size=8)), min_size=1, max_size=6)

#: Targets whose every run takes a third of a second: a campaign's file is read, merged and shown.
LONG = {"merged"}


@pytest.mark.parametrize("name", TARGETS)
def test_the_seeds_pass(name):
    seeds = list(SEEDS[name]())
    assert seeds
    for seed in seeds:
        TARGETS[name](seed)


@pytest.mark.thorough
@pytest.mark.parametrize("name", TARGETS)
def test_damaged_seeds_and_any_bytes_pass(name):
    target = TARGETS[name]
    seeds = list(SEEDS[name]())
    share = 10 if name in LONG else 1

    @settings(max_examples=300 // share, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(seeds), edits)
    def damaged(seed, changes):
        data = bytearray(seed)
        for place, gone, come in changes:
            at = place % (len(data) + 1)
            data[at : at + gone] = come
        target(bytes(data))

    @settings(max_examples=100 // share)
    @given(st.binary(max_size=500))
    def any_bytes(data):
        target(data)

    damaged()
    any_bytes()
