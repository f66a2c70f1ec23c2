"""What a look decides from memory is what it would decide from the whole file, to the last bit."""

import random
from dataclasses import replace

import numpy as np
import pytest

import fake_campaign
from campaign.fakes import FakeLauncher, Quiet, a_plan, a_record
from tare.analysis.estimates import headlines
from tare.campaign.execution.runner import Runner
from tare.campaign.plan.interim import Interim
from tare.campaign.plan.stopping import still_wanted
from tare.model import Design, Status
from tare.store import block_durations, create_store, open_store, read_store, workload_seconds
from tare.store.sqlite import SqliteStore

SHAPE = replace(fake_campaign.Shape(), blocks=8, rounds=11)
MARGIN, TARGET = 0.01, 0.005


def _closed(interim, blocks):
    for block in blocks:
        interim.estimates.close(block)
    return interim


def _whole_file(store, blocks):
    return _closed(Interim(store), range(blocks))


def _decision(interim, left_s):
    by_workload = interim.estimates.known()
    missing = {name: estimate.missing(TARGET, MARGIN) for name, estimate in by_workload.items()}
    return missing, still_wanted(missing, workload_seconds(interim.trials()), left_s)


def _assert_same(interim, whole):
    assert interim.estimates.known() == whole.estimates.known()
    _assert_same_contrasts(interim.estimates, whole.estimates)
    assert interim.trials().equals(whole.trials())
    assert block_durations(interim.trials()) == block_durations(whole.trials())
    for left_s in (None, 5.0, 500.0, 50_000.0):
        assert _decision(interim, left_s) == _decision(whole, left_s)
    record = whole.record
    shown = [headlines(record, analysis.estimates, analysis.trials()) for analysis in (interim, whole)]
    assert shown[0] == shown[1]


def _assert_same_contrasts(estimates, whole):
    """The same to the last bit, of arrays too."""
    found, expected = estimates.contrasts(), whole.contrasts()
    assert found.keys() == expected.keys()
    for figure, contrast in found.items():
        other = expected[figure]
        for ratios, others in ((contrast.pairs, other.pairs), (contrast.totals, other.totals)):
            assert (ratios is None) == (others is None)
            if ratios is not None:
                for name in ("blocks", "logs", "lone", "within"):
                    np.testing.assert_array_equal(getattr(ratios, name), getattr(others, name))
        assert (contrast.draws, contrast.arms, contrast.rounding) == (other.draws, other.arms, other.rounding)
    values = [{key: dict(figures.values) for key, figures in side.figures().items()} for side in (estimates, whole)]
    assert values[0] == values[1]


def _crooked(trial):
    """Every third block has fewer rounds, and one sample of docker's no logarithm."""
    key = trial.key
    samples = [sample for sample in trial.samples if key.block % 3 != 1 or sample.round < 3]
    if (key.block, key.workload, key.arm.platform) == (4, "sysbench-cpu", "docker"):
        samples = [replace(sample, value=0.0) for sample in samples]
    return replace(trial, samples=tuple(samples))


@pytest.mark.thorough
@pytest.mark.parametrize("design", list(Design))
@pytest.mark.parametrize("resumed_at", [0, 17, 5 * 6 * 5])  # before the first trial, within a block, between two
def test_a_look_in_memory_is_that_of_the_whole_file(tmp_path, design, resumed_at):
    record = fake_campaign.record(SHAPE).model_copy(update={"design": design})
    measured = 0
    with create_store(tmp_path / "x.tare", record) as store:
        interim = Interim(store)
        for block, trials in fake_campaign._blocks(SHAPE):
            store.plan_block(block, [trial.key for trial in trials])
            # A stage's trials are committed in an order of their own.
            for trial in map(_crooked, random.Random(block).sample(trials, len(trials))):
                if measured == resumed_at:
                    interim = _closed(Interim(store), range(block))
                measured += 1
                store.commit_trials([trial])
                interim.add(trial)
            interim.estimates.close(block)
            _assert_same(interim, _whole_file(store, block + 1))
        failed = store.trials()["status"] == Status.FAILED.value
        assert failed.any(), "trials without samples are among them"


def test_what_is_not_whole_yet_has_no_part_in_a_look(tmp_path):
    with read_store(fake_campaign.write(tmp_path / "x.tare", SHAPE)) as store:
        interim = _closed(Interim(store), range(4))
        counts = {row.n_blocks for estimate in interim.estimates.known().values() for row in estimate.rows}
        assert max(counts) == 4
        assert _closed(interim, [4]).estimates.known() == _whole_file(store, 5).estimates.known()


def test_a_campaign_reads_its_file_once_when_it_goes_on(tmp_path, monkeypatch):
    plan = replace(a_plan(30), targets={"start": 0.01, "alpha": 0.01, "beta": 0.01})
    file = tmp_path / "x.tare"
    with create_store(file, a_record(plan)) as store, pytest.raises(KeyboardInterrupt):
        Runner(plan, store, FakeLauncher(), None, Quiet(interrupt_after=17)).run()
    read = []
    for name in ("samples", "trials", "schedule"):
        inner = getattr(SqliteStore, name)
        monkeypatch.setattr(SqliteStore, name, lambda self, inner=inner, name=name: read.append(name) or inner(self))
    with open_store(file) as store:
        Runner(plan, store, FakeLauncher(), None, Quiet()).run()
        assert [event.text for event in store.events()] == [
            "enough after 6 blocks: there is no interval left to be narrowed"
        ]
    assert sorted(read) == ["samples", "schedule", "trials"]
