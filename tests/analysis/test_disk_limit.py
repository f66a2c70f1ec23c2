"""A row whose disk was busy all of the time with the platform and with the baseline says so."""

from dataclasses import replace

import polars as pl
import pytest

import fake_campaign
from tare.analysis import analyse
from tare.analysis.quality.disk import flag_disk
from tare.analysis.quality.findings import FindingKind
from tare.model import SHOWN_COSTS
from tare.store import Telemetry, read_store

#: Of both baseline arms and of docker, a trial a second: which part of each the disk is busy for.
SHAPE = fake_campaign.Shape(
    blocks=4,
    rounds=2,
    workloads=("sysbench-fileio-seqrd",),
    telemetry=True,
    stolen=False,
    failing=None,
    unsupported=None,
)


def _flagged(folder, busy, shape=SHAPE):
    """The platforms with the finding; ``busy``: the disk's share of the time by platform, else 1."""
    with read_store(fake_campaign.write(folder / "a.tare", shape)) as store:
        record, samples, trials, telemetry = store.record, store.samples(), store.trials(), store.telemetry()
    host = telemetry.host.sort("at")
    begins = trials.sort("started")["started"].to_list()
    platforms = trials.sort("started")["platform"].to_list()
    counter, at_before, counts = 0.0, None, []
    for at in host["at"].to_list():
        running = [name for begin, name in zip(begins, platforms, strict=True) if begin < at]
        share = busy.get(str(running[-1]), 1.0) if running else 1.0
        counter += 0.0 if at_before is None else 1000 * (at - at_before) * share
        at_before = at
        counts.append(round(counter))
    host = host.with_columns(pl.Series("disk_busy_ms", counts, dtype=pl.Int64))
    results = flag_disk(
        record, analyse(record, samples, trials), trials, Telemetry(host, telemetry.cpus, telemetry.instances)
    )
    headline = next(result for result in results if result.metric == record.workloads[0].metrics[0].name)
    costs = [platform for result in results if result.metric in SHOWN_COSTS for platform in result.platforms]
    assert not [note for platform in costs for note in platform.notes if note.kind is FindingKind.DISK_LIMITED]
    return {
        platform.platform: next(note for note in platform.notes if note.kind is FindingKind.DISK_LIMITED).numbers
        for platform in headline.platforms
        if any(note.kind is FindingKind.DISK_LIMITED for note in platform.notes)
    }


def test_a_disk_with_time_left_limits_nothing(tmp_path):
    assert _flagged(tmp_path, dict.fromkeys(("native", "runc", "docker", "gvisor-systrap", "gvisor-ptrace"), 0.5)) == {}


def test_a_disk_that_is_always_busy_limits_all_but_who_leaves_it_idle(tmp_path):
    flagged = _flagged(tmp_path, {"docker": 0.6})
    assert "docker" not in flagged, "what it adds to each request shows"
    assert {"native", "runc"} <= set(flagged)
    assert flagged["runc"]["busy"] == pytest.approx(1.0, abs=0.02)


def test_where_the_baseline_leaves_the_disk_idle_nothing_is_its_limit(tmp_path):
    assert _flagged(tmp_path, {"native": 0.6}) == {}


def test_what_a_cpu_does_is_not_the_disks(tmp_path):
    assert _flagged(tmp_path, {}, replace(SHAPE, workloads=("sysbench-cpu",))) == {}


def test_without_telemetry_nothing_is_said(tmp_path):
    with read_store(fake_campaign.write(tmp_path / "a.tare", replace(SHAPE, telemetry=False))) as store:
        results = analyse(store.record, store.samples(), store.trials())
        assert flag_disk(store.record, results, store.trials(), store.telemetry()) == results
