"""A calibration that was ended in the middle goes on with all of its arms, and is whole then."""

import pytest

from campaign.fakes import Quiet
from tare.campaign import calibrate
from tare.store.store import Store

pytestmark = pytest.mark.host


def test_an_interrupted_comparison_of_the_baseline_with_itself_goes_on(tmp_path):
    file = tmp_path / "quiet.tare"
    with pytest.raises(KeyboardInterrupt):
        calibrate.same_with_same(file, calibrate.AT_ONCE, Quiet(interrupt_after=20))
    with Store.read(file) as store:
        assert store.status == "interrupted"
        before = store.trials()
    assert before["block"].n_unique() < calibrate.BLOCKS
    calibrate.go_on(file, Quiet())
    with Store.read(file) as store:
        assert store.status == "complete"
        after = store.trials()
    assert after.height == calibrate.BLOCKS * calibrate.ARMS * calibrate.AT_ONCE
    assert set(before["seq"]) <= set(after["seq"])
    assert set(after["status"]) == {"ok"}
    calibrate.go_on(file, Quiet())  # whole: nothing is done
    with Store.read(file) as store:
        assert store.trials().equals(after)
