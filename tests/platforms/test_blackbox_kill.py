"""SIGKILL of the harness while it boots black boxes: `tare clean` leaves nothing."""

import pytest

from tare.contract import kill


@pytest.mark.host
@pytest.mark.parametrize("delay", kill.DELAYS_S)
def test_a_harness_killed_mid_start_leaves_nothing_that_clean_does_not_find(delay):
    kill.killed_after("blackbox", delay)
