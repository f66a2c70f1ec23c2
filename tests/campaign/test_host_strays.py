"""A sandbox that could not be removed is none of the campaign's: what it runs is marked as another program's work."""

import sys
import time

import polars as pl
import pytest

from campaign.fakes import a_plan, a_record
from tare.analysis.trust import contamination
from tare.campaign.telemetry.sampler import Sampler
from tare.host import cgroup, processes
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
    with CleanupStack(launcher.journal) as cleanup:
        cleanup.own(removers.control_group(group.path))
        group.create(Resources((cpu,), 64 << 20))
        busy = processes.start([sys.executable, "-c", "while True: pass"], cgroup_procs=group.leaf("tool"))
        try:
            time.sleep(0.5)  # Python takes a while to start
            with sampler.sampling(tuple):
                time.sleep(1.5)
                noted = time.time()
                entry = next(
                    entry.file for entry in launcher.journal.entries() if entry.resource.facts.get("path") == group.path
                )
                unremoved.note(unremoved.Unremoved(entry, f"cgroup {group.path}", "it stays", group.path))
                time.sleep(1.5)
        finally:
            processes.kill_group(busy)
            busy.wait()
    assert sampler.failed is None
    ticks = sampler.drain()
    ours = [tick.tare_ns for tick in ticks if tick.at < noted], [tick.tare_ns for tick in ticks if tick.at > noted]
    before_ns, after_ns = (counted[-1] - counted[0] for counted in ours)
    assert before_ns > 0.3e9, "an instance's work is the campaign's"  # others may want this CPU too
    assert after_ns < 0.1 * before_ns
    with create_store(tmp_path / "x.tare", a_record(a_plan(others=()))) as store:
        store.commit_trials((), ticks)
        windows = contamination.windows(store.telemetry(), [cpu])
    after = windows.filter(pl.col("begin") > noted + 0.2)["foreign-cpu"].mean()
    assert after > 0.8
