"""When there are blocks enough: by widths, at looks, within the time."""

from dataclasses import dataclass, replace

import pytest

from campaign.fakes import FakeNursery, Quiet, a_plan, a_record
from tare.campaign import stopping
from tare.campaign.runner import Runner
from tare.campaign.stopping import Need, need, parse_precision, still_wanted, targets
from tare.errors import UsageError
from tare.store.store import Store


@dataclass
class Width:
    half_width: float | None
    n_blocks: int


def test_looks_are_every_five_blocks_from_the_tenth():
    assert [block for block in range(31) if stopping.is_look(block)] == [10, 15, 20, 25, 30]


def test_a_width_shrinks_with_the_root_of_the_blocks():
    missing = need(Width(0.02, 10), 0.01, 2.0)
    assert missing.blocks == 30  # four times as many in all
    assert missing.gain == pytest.approx(2 / (2 * 10 * 2.0))
    assert need(Width(0.01, 10), 0.01, 2.0) is None
    assert need(Width(None, 0), 0.01, 2.0) is None, "more blocks make no interval of nothing"


def test_the_next_blocks_run_what_narrows_most_as_far_as_the_time_goes():
    needs = {"slow": Need(10, 1.0), "quick": Need(10, 5.0), "middle": Need(10, 2.0)}
    seconds = {"slow": 3.0, "quick": 1.0, "middle": 2.0}
    assert still_wanted(needs, seconds, None) == ("quick", "middle", "slow")
    assert still_wanted(needs, seconds, 60.0) == ("quick", "middle", "slow")
    assert still_wanted(needs, seconds, 45.0) == ("quick", "middle")
    assert still_wanted(needs, seconds, 25.0) == ("quick",)
    assert still_wanted(needs, seconds, 5.0) == ("quick",), "none can be reached: the resolution is bettered"
    assert still_wanted({}, seconds, 60.0) == ()


@pytest.mark.parametrize(("text", "value"), [("0.5%", 0.005), ("0.02", 0.02), ("0", 0.0), ("2 %", 0.02)])
def test_a_precision_is_a_fraction(text, value):
    assert parse_precision(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "%", "fine", "-1%", "100%", "nan", "inf"])
def test_what_is_no_precision_is_said_with_the_fix(text):
    with pytest.raises(UsageError, match="is not a precision") as said:
        parse_precision(text)
    assert "0.5%" in said.value.fix


def test_half_of_the_margin_unless_asked_for():
    assert targets({"a": 0.01, "b": 0.05}, None) == {"a": 0.005, "b": 0.025}
    assert targets({"a": 0.01, "b": 0.05}, 0.002) == {"a": 0.002, "b": 0.002}
    assert targets({"a": 0.01}, 0) == {}


class Script:
    """Widths that are told beforehand, by workload: one for each look."""

    def __init__(self, **widths):
        self.widths = widths
        self.looked_at = []

    def __call__(self, store):
        look = len(self.looked_at)
        self.looked_at.append(1 + max(key.block for key in store.done()))
        return {name: Width(told[look], 10) for name, told in self.widths.items()}


def _plan(blocks=40):
    return replace(a_plan(blocks), targets={"start": 0.01, "alpha": 0.01, "beta": 0.01})


def _blocks(store, workload):
    return {key.block for key in store.done() if key.workload == workload}


def test_a_workload_leaves_when_it_is_known_and_the_campaign_ends_with_the_last(tmp_path):
    plan = _plan()
    look = Script(start=[0.02, 0.01, None, None], alpha=[0.001, 0.001, 0.001, 0.001], beta=[0.02, 0.02, 0.02, 0.005])
    with Store.create(tmp_path / "x.tare", a_record(plan)) as store:
        Runner(plan, store, FakeNursery(), None, Quiet(), look).run()
        assert look.looked_at == [10, 15, 20, 25]
        assert _blocks(store, "alpha") == set(range(10))
        assert _blocks(store, "start") == set(range(15))
        assert _blocks(store, "beta") == set(range(25))
        assert store.trials()["seq"].to_list() == list(range(store.trials().height))
        said = [event.text for event in store.events()]
    assert said == [
        "after 10 blocks, what goes on: start, beta",
        "after 15 blocks, what goes on: beta",
        "enough after 25 blocks: there is no interval left to be narrowed",
    ]


def test_a_campaign_that_was_cut_off_goes_on_with_the_workloads_that_were_left(tmp_path):
    plan = _plan()
    wide = [0.02] * 3
    with Store.create(tmp_path / "x.tare", a_record(plan)) as store:
        watcher = Quiet(interrupt_after=10 * 12 + 5)  # in the eleventh block
        with pytest.raises(KeyboardInterrupt):
            Runner(plan, store, FakeNursery(), None, watcher, Script(start=wide, alpha=[0.001], beta=wide)).run()
    with Store.open(tmp_path / "x.tare") as store:
        script = Script(start=[0.001], alpha=[0.001], beta=[0.001])
        Runner(plan, store, FakeNursery(), None, Quiet(), script).run()
        assert script.looked_at == [15]
        assert _blocks(store, "alpha") == set(range(10))
        assert _blocks(store, "beta") == _blocks(store, "start") == set(range(15))


def test_nobody_looks_where_blocks_were_asked_for(tmp_path):
    plan = a_plan(12)
    with Store.create(tmp_path / "x.tare", a_record(plan)) as store:
        Runner(plan, store, FakeNursery(), None, Quiet(), Script()).run()
        assert _blocks(store, "alpha") == set(range(12))
        assert store.events() == []
