"""A sandbox that could not be removed is none of the campaign's: what it runs is marked as another program's work."""

import pytest

from campaign.busy_neighbour import Readings, neighbour
from campaign.fakes import a_plan, a_record
from tare.analysis.quality import contamination
from tare.campaign.telemetry.sampler import Sampler
from tare.host import cgroup
from tare.host.resources import removers, unremoved
from tare.host.resources.journal import CleanupStack
from tare.model import Resources
from tare.store import create_store

pytestmark = pytest.mark.host


def test_what_a_sandbox_that_stayed_runs_is_foreign(launcher, tmp_path, monkeypatch):
    monkeypatch.setattr(unremoved, "_noted", {})
    cpu = launcher.resources.probe_cpu
    group = cgroup.Group("tare/strayx1")
    sampler = Sampler((cpu,), interval_s=0.1)
    readings = Readings(sampler)
    with CleanupStack(launcher.journal) as cleanup:
        cleanup.own(removers.control_group(group.path))
        group.create(Resources((cpu,), 64 << 20))
        with neighbour(cpu, group.leaf("tool")) as busy, sampler.sampling(tuple):
            ours = readings.while_spent(busy, 0.5e9)
            entry = next(
                entry.file for entry in launcher.journal.entries() if entry.resource.facts.get("path") == group.path
            )
            unremoved.note(unremoved.Unremoved(entry, f"cgroup {group.path}", "it stays", group.path))
            theirs = readings.while_spent(busy, 1e9)
    assert sampler.failed is None
    ticks = readings.ticks

    def tare_ns(first, last, _):
        return ticks[last].tare_ns - ticks[first].tare_ns

    # Others may want this CPU too.
    assert tare_ns(*ours) >= ours[2], "an instance's work is the campaign's"
    first, last, spent = theirs
    assert tare_ns(*theirs) < 0.1 * spent
    with create_store(tmp_path / "x.tare", a_record(a_plan(others=()))) as store:
        store.commit_trials((), ticks)
        windows = contamination.windows(store.telemetry(), [cpu])
    assert windows.height == len(ticks) - 1
    after = windows[first:last]
    assert 1e9 * (after["foreign-cpu"] * after["seconds"]).sum() > 0.8 * spent
