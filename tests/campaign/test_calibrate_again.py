"""A calibration that was ended in the middle goes on with all of its arms, and is whole then."""

import pytest

from campaign.fakes import Quiet
from tare.analysis.calibration import injected
from tare.campaign import known_results
from tare.store import read_store

pytestmark = [pytest.mark.host, pytest.mark.own_host]


def test_an_interrupted_comparison_of_the_baseline_with_itself_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(known_results, "BLOCKS", 4)  # of those of a comparison, some to be ended in
    file = tmp_path / "quiet.tare"
    with pytest.raises(KeyboardInterrupt):
        known_results.same_with_same(file, known_results.AT_ONCE, Quiet(interrupt_after=20))
    with read_store(file) as store:
        assert store.status == "interrupted"
        before = store.trials()
    assert before["block"].n_unique() < known_results.BLOCKS
    known_results.go_on(file, Quiet())
    with read_store(file) as store:
        assert store.status == "complete"
        after = store.trials()
    assert after.height == known_results.BLOCKS * known_results.ARMS * known_results.AT_ONCE
    assert set(before["seq"]) <= set(after["seq"])
    assert set(after["status"]) == {"ok"}
    known_results.go_on(file, Quiet())  # whole: nothing is done
    with read_store(file) as store:
        assert store.trials().equals(after)


def test_an_interrupted_search_for_added_work_goes_on_with_its_slowed_copies(tmp_path, monkeypatch):
    # A half more work is seen in four blocks, whatever runs beside them; of 5 % a gate's neighbours once left 1.3 %.
    monkeypatch.setattr(known_results, "ADDED", (0.02, 0.5))
    file = tmp_path / "added.tare"
    with pytest.raises(KeyboardInterrupt):
        known_results.with_added_work(file, ["native"], 4, Quiet(interrupt_after=6))
    with read_store(file) as store:
        assert store.status == "interrupted"
        assert store.record.slowed == list(known_results.ADDED)
        before = store.trials()
    warnings = []
    known_results.go_on(file, Quiet(), warnings.append)
    with read_store(file) as store:
        assert store.status == "complete"
        after = store.trials()
        added = known_results.added(store.record)
        additions = injected(store.record, store.samples(), added)
        measured = {
            addition.share: addition.measured for addition in additions if addition.metric == "cpu-cost"
        }  # busy machines take less from it
        assert [event.text for event in store.events() if event.level == "warning"] == warnings
    assert after.height == 4 * (2 + len(known_results.ADDED))
    assert set(before["seq"]) < set(after["seq"])
    assert set(after["status"]) == {"ok"}
    assert [name for _, name, _ in added] == [f"native+{100 * share:g}%" for share in known_results.ADDED]
    assert measured[0.5].point == pytest.approx(0.5, abs=0.2), "the copies do more after the resume too"
