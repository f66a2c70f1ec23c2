"""SIGKILL of the harness while it boots black boxes: `tare clean` leaves nothing."""

import pytest

from tare.contract import killed_harness


@pytest.mark.host
@pytest.mark.parametrize("delay", killed_harness.DELAYS_S)
def test_a_harness_killed_mid_start_leaves_nothing_that_clean_does_not_find(delay):
    killed_harness.killed_after("blackbox", delay)
