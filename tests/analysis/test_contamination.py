"""Which trials are marked and why, on invented telemetry with known disturbances; and what leaving them out changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import fake_campaign
from fake_campaign import BEGAN, Disturbance, Shape
from tare.analysis import MetricResult, PlatformResult, VerdictKind, analyse
from tare.analysis.quality import contamination
from tare.analysis.quality.findings import Finding, FindingKind
from tare.analysis.verdicts import Reason
from tare.model import Arm, Design, Mode
from tare.store import CampaignRecord, Telemetry, read_store

#: Trials of one second each (10 rounds), one after the other: block b, arm a of 6 begins at second 6 b + a.
SHAPE = Shape(blocks=12, rounds=10, workloads=("prime-slices",), telemetry=True, stolen=False)
#: Trial number 8: the third of the second block, runc's.
AT = 8.0
HIT = (1, "prime-slices", "runc", 0)
CPUS = [1]

Frames = tuple[CampaignRecord, pl.DataFrame, pl.DataFrame, Telemetry]


def frames(tmp_path: Path, *disturbed: Disturbance, shape: Shape = SHAPE) -> Frames:
    path = fake_campaign.write(tmp_path / "a.tare", replace(shape, disturbed=disturbed))
    with read_store(path) as store:
        return store.record, store.samples(), store.trials(), store.telemetry()


def marked(tmp_path: Path, *disturbed: Disturbance) -> dict[tuple[object, ...], dict[str, float]]:
    """The marked trials, by their key: reasons with values."""
    _, _, trials, telemetry = frames(tmp_path, *disturbed)
    reasons: dict[tuple[object, ...], dict[str, float]] = {}
    for row in contamination.marks(trials, telemetry, CPUS).iter_rows():
        reasons.setdefault(row[:4], {})[row[4]] = row[5]
    return reasons


def test_a_quiet_host_marks_nothing(tmp_path: Path) -> None:
    assert marked(tmp_path) == {}


@pytest.mark.parametrize(("kind", "amount"), [("foreign-cpu", 0.3), ("memory-pressure", 0.1), ("swap", 3000.0)])
def test_a_trial_within_a_disturbance_is_marked_with_its_reason(tmp_path: Path, kind: str, amount: float) -> None:
    reasons = marked(tmp_path, Disturbance(kind, AT, AT + 1, amount))
    assert set(reasons) == {HIT}
    assert set(reasons[HIT]) == {kind}
    assert reasons[HIT][kind] == pytest.approx(amount, rel=0.01)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kind", "limit"),
    [
        ("foreign-cpu", contamination.FOREIGN_LIMIT),
        ("memory-pressure", contamination.MEMORY_PRESSURE_LIMIT),
        ("swap", contamination.SWAP_LIMIT),
    ],
)
def test_the_limit_is_of_the_trials_mean_over_its_windows(tmp_path: Path, kind: str, limit: float) -> None:
    # Half of the trial's windows: what counts is its time, and not the worst half second.
    assert marked(tmp_path, Disturbance(kind, AT, AT + 0.5, 1.9 * limit)) == {}
    (tmp_path / "a.tare").unlink()
    reasons = marked(tmp_path, Disturbance(kind, AT, AT + 0.5, 2.1 * limit))
    assert set(reasons) == {HIT}
    assert reasons[HIT][kind] == pytest.approx(1.05 * limit, rel=0.02)


def test_who_is_on_the_measured_cores_other_thread_is_seen_where_it_is_known_which_that_is(tmp_path: Path) -> None:
    _, _, trials, telemetry = frames(tmp_path, Disturbance("sibling", AT, AT + 1, 0.3))
    assert contamination.marks(trials, telemetry, CPUS).is_empty()  # the measured CPU itself shows nothing of it
    marks = contamination.marks(trials, telemetry, CPUS, siblings=[0])
    assert [row[:5] for row in marks.iter_rows()] == [(*HIT, "sibling")]
    assert marks["value"][0] == pytest.approx(0.3, rel=0.01)


def test_a_little_work_on_the_other_thread_is_no_contamination(tmp_path: Path) -> None:
    limit = contamination.SIBLING_LIMIT
    _, _, trials, telemetry = frames(tmp_path, Disturbance("sibling", AT, AT + 0.5, 1.9 * limit))
    assert contamination.marks(trials, telemetry, CPUS, siblings=[0]).is_empty()


def test_the_campaigns_own_client_is_nobody_else_on_the_other_thread(tmp_path: Path) -> None:
    """As with cgroup v2, which does not count by CPU. With one core only, the client is beside the measured."""
    _, _, trials, telemetry = frames(tmp_path, Disturbance("sibling", AT, AT + 1, 0.3))
    busy = telemetry.cpus.filter(pl.col("cpu") == 0).select("tick", pl.col("run_ns").alias("busy_ns"))
    host = telemetry.host.join(busy, on="tick").with_columns(
        pl.col("busy_ns").alias("client_ns"), pl.col("tare_ns") + pl.col("busy_ns")
    )
    by_cpu = telemetry.cpus.with_columns(pl.lit(None, dtype=pl.Int64).alias("tare_ns"))
    client_beside = replace(telemetry, cpus=by_cpu, host=host)
    assert contamination.marks(trials, client_beside, CPUS, siblings=[0]).is_empty()


def test_slices_are_judged_by_the_cpu_that_they_are_on_and_runs_by_all_of_the_instances(tmp_path: Path) -> None:
    """Between the measured CPUs of an instance a neighbour's share is halved; on the probes' CPU it is whole."""
    record, _, trials, telemetry = frames(tmp_path, Disturbance("foreign-cpu", AT, AT + 1, 0.09))
    resources = record.resources.model_copy(update={"cpus": [0, 1], "probe_cpu": 1})
    wider = record.model_copy(update={"resources": resources})
    assert [row[:5] for row in contamination.of_campaign(wider, trials, telemetry).iter_rows()] == [
        (*HIT, "foreign-cpu")
    ]
    before = wider.model_copy(update={"resources": resources.model_copy(update={"probe_cpu": None})})
    assert contamination.of_campaign(before, trials, telemetry).is_empty()  # a file of an older tare: on any of them
    apart = wider.model_copy(update={"design": Design.DUET})
    assert contamination.of_campaign(apart, trials, telemetry).is_empty()  # each arm is on a CPU of its own
    runs = [workload.model_copy(update={"mode": Mode.RUN}) for workload in record.workloads]
    assert contamination.of_campaign(wider.model_copy(update={"workloads": runs}), trials, telemetry).is_empty()


def test_a_quota_that_the_campaign_gave_disturbs_nobody_when_it_is_used_up(tmp_path: Path) -> None:
    record, _, trials, telemetry = frames(tmp_path, Disturbance("throttled", AT, AT + 1, 6.0, Arm("runc")))
    assert [row[4] for row in contamination.of_campaign(record, trials, telemetry).iter_rows()] == ["throttled"]
    resources = record.resources.model_copy(update={"cpu_quota": 0.5})
    limited = record.model_copy(update={"resources": resources})
    assert contamination.of_campaign(limited, trials, telemetry).is_empty()


@pytest.mark.parametrize(("cpus", "others"), [([1], (5,)), ([1, 5], ()), ([1, 2], (5, 6)), ([9], ())])
def test_the_other_threads_are_read_from_the_campaigns_record(cpus: list[int], others: tuple[int, ...]) -> None:
    host = {"cpu": {"siblings": [[0, 4], [1, 5], [2, 6], [3, 7]]}}
    assert contamination.other_threads(host, cpus) == others


@pytest.mark.parametrize("host", [{}, {"cpu": {}}, {"cpu": {"siblings": None}}])
def test_of_a_host_that_did_not_say_nothing_is_known(host: dict[str, Any]) -> None:
    assert contamination.other_threads(host, [1]) == ()


def test_every_trial_that_a_long_disturbance_overlaps_is_marked(tmp_path: Path) -> None:
    reasons = marked(tmp_path, Disturbance("foreign-cpu", AT, AT + 5, 0.3))
    assert len(reasons) == 5
    assert {key[0] for key in reasons} == {1, 2}


def test_a_throttled_instance_marks_its_own_trials_only(tmp_path: Path) -> None:
    reasons = marked(tmp_path, Disturbance("throttled", AT, AT + 1, 4, arm=Arm("runc")))
    assert reasons == {HIT: {"throttled": pytest.approx(4)}}
    (tmp_path / "a.tare").unlink()
    assert marked(tmp_path, Disturbance("throttled", AT, AT + 1, 4, arm=Arm("docker"))) == {}


def test_several_reasons_at_once(tmp_path: Path) -> None:
    disturbances = Disturbance("foreign-cpu", AT, AT + 1, 0.3), Disturbance("memory-pressure", AT, AT + 1, 0.1)
    assert set(marked(tmp_path, *disturbances)[HIT]) == {"foreign-cpu", "memory-pressure"}


def test_what_a_trial_itself_read_of_steal_counts_and_else_its_window(tmp_path: Path) -> None:
    _, _, trials, telemetry = frames(tmp_path, Disturbance("steal", AT, AT + 1, 0.2))
    assert contamination.marks(trials, telemetry, CPUS).is_empty()  # the trials read 0.1 %
    unread = trials.with_columns(pl.lit(None, dtype=pl.Float64).alias("steal"))
    assert contamination.marks(unread, telemetry, CPUS).row(0)[:5] == (*HIT, "steal")
    assert contamination.marks(unread, None, CPUS).is_empty()


def test_a_trial_shorter_than_a_window_is_judged_by_its_window(tmp_path: Path) -> None:
    shape = replace(SHAPE, rounds=1)  # a tenth of a second each
    path = fake_campaign.write(
        tmp_path / "a.tare", replace(shape, disturbed=(Disturbance("foreign-cpu", AT + 0.2, AT + 0.4, 0.5),))
    )
    with read_store(path) as store:
        marks = contamination.marks(store.trials(), store.telemetry(), CPUS)
    assert [row[:5] for row in marks.iter_rows()] == [(*HIT, "foreign-cpu")]
    assert marks["value"][0] == pytest.approx(0.2, rel=0.02)  # of the half second


def test_failed_trials_are_not_marked(tmp_path: Path) -> None:
    _, _, trials, telemetry = frames(tmp_path, Disturbance("foreign-cpu", AT, AT + 1, 0.3))
    failed = trials.with_columns(pl.lit("failed").alias("status"))
    assert contamination.marks(failed, telemetry, CPUS).is_empty()


def test_time_between_two_runs_of_a_campaign_is_no_window(tmp_path: Path) -> None:
    _, _, _, telemetry = frames(tmp_path)
    count = telemetry.host.height
    resumed = telemetry.host.with_columns(pl.col("first") | (pl.col("tick") == 5))
    windows = contamination.windows(replace(telemetry, host=resumed), CPUS)
    assert windows["tick"].to_list() == [tick for tick in range(2, count + 1) if tick != 5]
    assert windows["seconds"].to_numpy() == pytest.approx(np.full(count - 2, 0.5))


def test_foreign_time_on_a_host_that_does_not_count_by_cpu_is_all_that_is_not_tares(tmp_path: Path) -> None:
    """As with cgroup v2: what runs on the measured CPU, less tare's groups without the client, harness and daemons."""
    _, _, _, telemetry = frames(tmp_path, Disturbance("foreign-cpu", AT, AT + 1, 0.3))
    by_cpu = telemetry.cpus.with_columns(pl.lit(None, dtype=pl.Int64).alias("tare_ns"))
    client = 123_000_000 * pl.col("tick")  # it runs elsewhere
    host = telemetry.host.with_columns(pl.col("tare_ns") + client, client.alias("client_ns"))
    windows = contamination.windows(replace(telemetry, cpus=by_cpu, host=host), CPUS)
    during = windows.filter((pl.col("begin") > BEGAN + AT - 0.1) & (pl.col("end") < BEGAN + AT + 1.1))
    assert during["foreign-cpu"].to_list() == pytest.approx([0.3, 0.3], rel=0.01)
    assert windows.filter(pl.col("end") < BEGAN + AT)["foreign-cpu"].max() == pytest.approx(0, abs=1e-6)
    # The harness, the daemons and the kernel are no strangers.
    ours = telemetry.host.with_columns(
        (100_000_000 * pl.col("tick")).alias("own_ns"),
        (30_000_000 * pl.col("tick")).alias("daemons_ns"),
        (20_000_000 * pl.col("tick")).alias("kernel_ns"),
    )
    quiet = contamination.windows(replace(telemetry, host=ours), CPUS)
    assert quiet.filter(pl.col("tick").is_in(during["tick"].to_list()))["foreign-cpu"].max() == pytest.approx(
        0, abs=0.01
    )


def test_where_an_instance_ended_what_others_used_is_not_known(tmp_path: Path) -> None:
    """Its processes count as the harness's own from then on: nothing foreign would be seen, and is not claimed."""
    _, _, trials, telemetry = frames(tmp_path, Disturbance("foreign-cpu", AT, AT + 1, 0.3))
    ended = int(2 * (AT + 1)) + 2  # the tick at the end of the first window of the disturbance
    lives = pl.when(pl.col("tick") >= ended).then(20_000_000_000).otherwise(0).alias("own_ns")
    host = telemetry.host.with_columns(lives)
    windows = contamination.windows(replace(telemetry, host=host), CPUS)
    assert windows.filter(pl.col("foreign-cpu").is_null())["tick"].to_list() == [ended]
    marks = contamination.marks(trials, replace(telemetry, host=host), CPUS)
    assert [row[:5] for row in marks.iter_rows()] == [(*HIT, "foreign-cpu")]  # by the window that is known


# --- what leaving them out would change ------------------------------------------------------------------------


def rate(frames: Frames, **changed: pl.DataFrame) -> MetricResult:
    record, samples, trials, telemetry = frames
    marks = contamination.marks(trials, telemetry, CPUS)
    return analyse(record, changed.get("samples", samples), trials, marks)[0]


def platform(result: MetricResult, name: str) -> PlatformResult:
    (match,) = (entry for entry in result.platforms if entry.platform == name)
    return match


def slowed(samples: pl.DataFrame, platform: str, block: int, factor: float) -> pl.DataFrame:
    here = (pl.col("platform") == platform) & (pl.col("block") == block) & (pl.col("replica") == 0)
    return samples.with_columns(pl.when(here).then(pl.col("value") * factor).otherwise(pl.col("value")).alias("value"))


def test_without_marks_there_is_nothing_to_tell(tmp_path: Path) -> None:
    result = rate(frames(tmp_path))
    assert all(entry.unmarked is None for entry in result.platforms)
    kinds = {note.kind for entry in result.platforms for note in entry.notes}
    assert not kinds & {FindingKind.CONTAMINATED, FindingKind.UNMARKED}


def test_the_estimate_without_is_beside_the_one_with_them(tmp_path: Path) -> None:
    disturbed = frames(tmp_path, Disturbance("foreign-cpu", AT, AT + 1, 0.3))
    hit = slowed(disturbed[1], "runc", 1, 0.7)
    runc = platform(rate(disturbed, samples=hit), "runc")
    assert runc.counts.contaminated == 1
    assert runc.counts.reasons == {"foreign-cpu": 1}
    assert runc.n_blocks == 12
    assert runc.verdict.kind is VerdictKind.INCONCLUSIVE  # the verdict is that of all trials
    assert runc.unmarked is not None
    assert (runc.unmarked.n_trials, runc.unmarked.n_baseline, runc.unmarked.n_blocks) == (1, 0, 11)
    # 220 rounds, not 240: a slow mode in 1.4 % of them, with the rest of the interval, is a trifle beyond the margin.
    assert runc.unmarked.verdict.kind is VerdictKind.TYPICAL
    # By hand: the same samples without that block.
    record, _, trials, _ = disturbed
    left = analyse(record, hit.filter(~((pl.col("platform") == "runc") & (pl.col("block") == 1))), trials)
    assert runc.unmarked.overhead == platform(left[0], "runc").overhead
    assert [note.kind for note in runc.notes].count(FindingKind.UNMARKED) == 1
    assert Finding(FindingKind.CONTAMINATED, {"marked": 1, "ok": 12, "foreign-cpu": 1}) in runc.notes
    docker = platform(rate(disturbed, samples=hit), "docker")
    assert docker.unmarked is None


def test_a_marked_trial_of_the_baseline_concerns_every_platform(tmp_path: Path) -> None:
    disturbed = frames(tmp_path, Disturbance("foreign-cpu", 6, 8, 0.3))  # both native arms of block 1
    result = rate(disturbed)
    native, runc = platform(result, "native"), platform(result, "runc")
    assert (native.counts.contaminated, native.unmarked) == (2, None)
    assert runc.counts.contaminated == 0
    assert runc.unmarked is not None
    assert (runc.unmarked.n_trials, runc.unmarked.n_baseline, runc.unmarked.n_blocks) == (0, 2, 11)
    assert Finding(FindingKind.UNMARKED) not in runc.notes  # it would change nothing to speak of
    spoiled = slowed(disturbed[1], "native", 1, 0.5)
    assert platform(rate(disturbed, samples=spoiled), "runc").notes.count(Finding(FindingKind.UNMARKED)) == 1


def test_when_all_trials_are_marked_no_figure_is_left_and_that_is_told(tmp_path: Path) -> None:
    runc = platform(rate(frames(tmp_path, Disturbance("foreign-cpu", -1, 80, 0.3))), "runc")
    assert runc.overhead is not None
    assert runc.unmarked is not None
    assert (runc.unmarked.overhead, runc.unmarked.n_blocks) == (None, 0)
    assert runc.unmarked.verdict.reason is Reason.ALL_MARKED
    assert (runc.unmarked.n_trials, runc.unmarked.n_baseline) == (12, 24)
    assert runc.notes.count(Finding(FindingKind.UNMARKED)) == 1


def test_reasons_are_counted_where_there_are_several(tmp_path: Path) -> None:
    disturbed = frames(
        tmp_path,
        Disturbance("foreign-cpu", AT, AT + 1, 0.3),
        Disturbance("memory-pressure", AT, AT + 1, 0.2),
        Disturbance("memory-pressure", AT + 6, AT + 7, 0.2),
    )
    runc = platform(rate(disturbed), "runc")
    assert (runc.counts.contaminated, runc.counts.reasons) == (2, {"foreign-cpu": 1, "memory-pressure": 2})
    numbers = {"marked": 2, "ok": 12, "foreign-cpu": 1, "memory-pressure": 2}
    assert Finding(FindingKind.CONTAMINATED, numbers) in runc.notes
