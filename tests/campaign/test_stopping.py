"""When there are blocks enough: by widths, at looks, within the time."""

from dataclasses import dataclass, replace

import pytest

from campaign.fakes import FakeLauncher, Quiet, a_plan, a_record
from tare.campaign.execution.runner import Runner
from tare.campaign.plan import stopping
from tare.campaign.plan.stopping import next_workloads, still_wanted, targets
from tare.estimates.running import RunningEstimates
from tare.store import create_store, open_store


@dataclass
class Width:
    """So many blocks are missing, whatever the target."""

    blocks: int

    def missing_for_answers(self):
        return 0

    def missing(self, target, margin):
        assert 0 < target <= margin
        return self.blocks


def test_looks_are_every_three_blocks_from_the_third():
    assert [block for block in range(14) if stopping.is_look(block)] == [3, 6, 9, 12]


def test_the_next_blocks_run_what_takes_least_as_far_as_the_time_goes():
    missing = {"slow": 10, "quick": 10, "middle": 10, "known": 0}
    seconds = {"slow": 3.0, "quick": 1.0, "middle": 2.0, "known": 1.0}
    assert still_wanted(missing, seconds, None) == ("quick", "middle", "slow")
    assert still_wanted(missing, seconds, 60.0) == ("quick", "middle", "slow")
    assert still_wanted(missing, seconds, 45.0) == ("quick", "middle")
    assert still_wanted(missing, seconds, 25.0) == ("quick",)
    assert still_wanted({"known": 0}, seconds, 60.0) == ()


def test_where_none_can_be_reached_all_have_their_share():
    missing, seconds = {"slow": 10, "quick": 10, "middle": 10}, {"slow": 3.0, "quick": 1.0, "middle": 2.0}
    assert still_wanted(missing, seconds, 5.0) == ("quick", "middle", "slow")
    # What no campaign reaches takes nothing from what can be.
    assert still_wanted({"never": 10**9, "soon": 10}, {"never": 1.0, "soon": 1.0}, 60.0) == ("soon",)


@dataclass
class Known:
    """Blocks that are missing until every figure answers a question, and until all are as narrow as was asked for."""

    answers: int
    target: int

    def missing_for_answers(self):
        return self.answers

    def missing(self, target, margin):
        return self.target


def test_what_answers_no_question_yet_comes_before_what_is_only_wide():
    margins = dict.fromkeys(("far", "near", "answered"), 0.05)
    wanted, seconds = targets(margins, None), dict.fromkeys(margins, 1.0)
    known = {"far": Known(100, 900), "near": Known(5, 900), "answered": Known(0, 20)}
    assert next_workloads(known, wanted, margins, seconds, 60.0) == ("near",), "the nearest to an answer"
    assert next_workloads(known, wanted, margins, seconds, None) == ("near", "far")
    known["far"] = known["near"] = Known(0, 900)
    assert next_workloads(known, wanted, margins, seconds, 60.0) == ("answered",)
    assert next_workloads(dict.fromkeys(margins, Known(0, 0)), wanted, margins, seconds, 60.0) == ()


def test_half_of_the_margin_unless_asked_for():
    assert targets({"a": 0.01, "b": 0.05}, None) == {"a": 0.005, "b": 0.025}
    assert targets({"a": 0.01, "b": 0.05}, 0.002) == {"a": 0.002, "b": 0.002}
    assert targets({"a": 0.01}, 0) == {}


class Script:
    """Blocks that are missing, told beforehand, by workload: for each look, in place of what the trials tell."""

    def __init__(self, monkeypatch, store, **missing):
        self.store = store
        self.missing = missing
        self.looked_at = []
        monkeypatch.setattr(RunningEstimates, "known", lambda _, without: self.known())

    def known(self):
        look = len(self.looked_at)
        self.looked_at.append(1 + max(key.block for key in self.store.done()))
        return {name: Width(blocks[look]) for name, blocks in self.missing.items()}


def _plan(blocks=40):
    return replace(a_plan(blocks), targets={"start": 0.01, "alpha": 0.01, "beta": 0.01})


def _blocks(store, workload):
    return {key.block for key in store.done() if key.workload == workload}


def test_a_workload_leaves_when_it_is_known_and_the_campaign_ends_with_the_last(tmp_path, monkeypatch):
    plan = _plan()
    with create_store(tmp_path / "x.tare", a_record(plan)) as store:
        look = Script(monkeypatch, store, start=[30, 0, 0, 0], alpha=[0, 0, 0, 0], beta=[30, 30, 30, 0])
        Runner(plan, store, FakeLauncher(), None, Quiet()).run()
        assert look.looked_at == [3, 6, 9, 12]
        assert _blocks(store, "alpha") == set(range(3))
        assert _blocks(store, "start") == set(range(6))
        assert _blocks(store, "beta") == set(range(12))
        assert store.trials()["seq"].to_list() == list(range(store.trials().height))
        texts = [event.text for event in store.events()]
    assert texts == [
        "after 3 blocks, what goes on: start, beta",
        "after 6 blocks, what goes on: beta",
        "enough after 12 blocks: there is no interval left to be narrowed",
    ]


def test_a_campaign_that_was_cut_off_goes_on_with_the_workloads_that_were_left(tmp_path, monkeypatch):
    plan = _plan()
    wide = [30] * 3
    with create_store(tmp_path / "x.tare", a_record(plan)) as store:
        Script(monkeypatch, store, start=wide, alpha=[0], beta=wide)
        watcher = Quiet(interrupt_after=3 * 12 + 5)  # in the fourth block
        with pytest.raises(KeyboardInterrupt):
            Runner(plan, store, FakeLauncher(), None, watcher).run()
    with open_store(tmp_path / "x.tare") as store:
        script = Script(monkeypatch, store, start=[0], alpha=[0], beta=[0])
        Runner(plan, store, FakeLauncher(), None, Quiet()).run()
        assert script.looked_at == [6]
        assert _blocks(store, "alpha") == set(range(3))
        assert _blocks(store, "beta") == _blocks(store, "start") == set(range(6))


def test_nobody_looks_where_blocks_were_asked_for(tmp_path, monkeypatch):
    plan = a_plan(12)
    with create_store(tmp_path / "x.tare", a_record(plan)) as store:
        script = Script(monkeypatch, store)
        Runner(plan, store, FakeLauncher(), None, Quiet()).run()
        assert script.looked_at == []
        assert _blocks(store, "alpha") == set(range(12))
        assert store.events() == []
