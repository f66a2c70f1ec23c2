"""More of a complete campaign: the same file, the time that was asked for, and blocks where they help."""

from __future__ import annotations

import shlex

import pytest

import fake_campaign
from campaign.fakes import FakeLauncher, Quiet, a_plan, a_record
from tare.campaign.execution import run_campaign
from tare.campaign.execution.runner import Runner
from tare.errors import UsageError
from tare.estimates.running import RunningEstimates
from tare.estimates.widths import WorkloadWidths
from tare.model import CampaignStatus, Design
from tare.store import block_durations, create_store, open_store, read_store


class Lacking(WorkloadWidths):
    """A workload of which no figure is known well enough, or of which all are."""

    blocks = 0

    def missing_for_answers(self) -> int:
        return self.blocks


@pytest.fixture
def complete(tmp_path):
    plan = a_plan(4)
    with create_store(tmp_path / "x.tare", a_record(plan)) as store:
        Runner(plan, store, FakeLauncher(), None, Quiet()).run()
    return tmp_path / "x.tare", plan


def test_more_adds_blocks_to_the_same_campaign_where_they_help(complete, monkeypatch):
    file, plan = complete
    wide, narrow = Lacking(), Lacking()
    monkeypatch.setattr(Lacking, "missing_for_answers", lambda self: 3 if self is wide else 0)
    monkeypatch.setattr(Lacking, "missing", lambda self, target, margin: 0)
    known = {"start": narrow, "alpha": wide, "beta": narrow}
    monkeypatch.setattr(RunningEstimates, "known", lambda _, without: known)
    with open_store(file) as store:
        before = store.schedule()
        longer = run_campaign._extended(plan, store, 3600.0)
        assert (longer.blocks, longer.look_at) == (None, 4)
        assert longer.budget_s == pytest.approx(3600.0 + sum(block_durations(store.trials()).values()))
        assert set(longer.targets) == {"start", "alpha", "beta"}, "counted blocks had no looks"
        with pytest.raises(KeyboardInterrupt):
            Runner(longer, store, FakeLauncher(), None, Quiet(interrupt_after=8)).run()
        assert store.schedule()[: len(before)] == before
        added = store.schedule()[len(before) :]
    assert {key.workload for key in added} == {"alpha"}
    assert min(key.block for key in added) == 4


def test_more_ends_where_nothing_is_left_to_be_narrowed(complete, monkeypatch):
    file, plan = complete
    monkeypatch.setattr(Lacking, "missing", lambda self, target, margin: 0)
    monkeypatch.setattr(
        RunningEstimates, "known", lambda _, without: dict.fromkeys(("start", "alpha", "beta"), Lacking())
    )
    with open_store(file) as store:
        Runner(run_campaign._extended(plan, store, 3600.0), store, FakeLauncher(), None, Quiet()).run()
        assert max(key.block for key in store.done()) == 3
        assert "enough after 4 blocks" in store.events()[-1].text


def test_a_sequential_campaign_has_no_place_for_more(tmp_path):
    record = a_record(a_plan(2)).model_copy(update={"design": Design.SEQUENTIAL})
    file = tmp_path / "x.tare"
    create_store(file, record).close()
    with pytest.raises(UsageError, match="one pass for each platform"):
        run_campaign.resume(file, Quiet(), agreed=run_campaign.provenance.digest(read_store(file)), more_s=60.0)


def test_a_complete_campaign_is_not_resumed_and_says_how_to_get_more(reading_commands, tmp_path):
    """It tried every platform, measured nothing, and printed the report again."""
    file = fake_campaign.write(tmp_path / "a b.tare")
    with open_store(file) as store:
        store.set_status(CampaignStatus.COMPLETE)
    done = reading_commands.run("run", "--resume", str(file), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (
        f"a b.tare is complete: no trial is missing. For more of it: tare run --more 10m {shlex.quote(str(file))}"
        in (" ".join(done.stderr.split()))
    )
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "fix"),
    [
        (("--more", "10m"), "tare run --more 10m FILE"),
        (("--more", "10m", "--resume", "x.tare"), "tare run --more 10m x.tare"),
        (("--more", "0", "x.tare"), "tare run --more 10m x.tare"),
        (("--more", "10", "x.tare"), "write 10s or 10m"),
        (("--more", "10m", "x.tare", "-p", "runc"), "give --more alone"),
        (("runc", "docker"), "tare run -p runc -p docker, or tare run --more 10m FILE"),
    ],
)
def test_what_is_missing_or_too_much_is_told_with_the_command(reading_commands, tmp_path, arguments, fix):
    done = reading_commands.run("run", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert f"fix: {fix}" in " ".join(done.stderr.split())
