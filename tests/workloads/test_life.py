"""The life of instances: what is read of the times of their operations."""

import subprocess

import pytest

from tare.errors import ParseError
from tare.workloads import workload_registry
from tare.workloads.apart import Burst, BurstStart, Copies, Operation, OperationStep, Restored, Snapshot
from tare.workloads.life.operation_tails import tails
from tare.workloads.life.programs import AGAIN, BEAT, SUM, remembered, remembers

MS = 1_000_000


def _round(whole_ms, **parts):
    steps = {
        Operation(name): OperationStep(int(ms * MS), int(ms * MS / 2), int(ms * MS / 4)) for name, ms in parts.items()
    }
    return {**steps, None: OperationStep(int(whole_ms * MS), sum(step.cpu_ns for step in steps.values()))}


def test_a_whole_life_is_its_clocks_time_and_has_its_parts():
    parts = {"create": 40, "start": 8, "execute": 20, "stop": 6, "remove": 26}
    outcome = workload_registry.get("whole-life").read([_round(102, **parts), _round(100, **parts)])
    assert outcome.series["whole"] == [102, 100]
    assert outcome.series["cpu"] == [50, 50]
    assert {name: outcome.series[name] for name in parts} == {name: [ms, ms] for name, ms in parts.items()}
    assert {name: outcome.series[f"{name}-cpu"] for name in parts} == {name: [ms / 2] * 2 for name, ms in parts.items()}
    assert outcome.work == 2


def test_a_part_without_a_command_has_no_cpu_time():
    life = _round(100, create=40, start=8, execute=20, stop=6, remove=26)
    life[Operation.REMOVE] = OperationStep(26 * MS, 0, 0)
    assert workload_registry.get("whole-life").read([life]).series["remove-cpu"] == [None]


@pytest.mark.parametrize("whole", [94, 106])
def test_parts_that_do_not_make_up_the_whole_are_no_figures(whole):
    parts = {"create": 40, "start": 8, "execute": 20, "stop": 6, "remove": 26}
    with pytest.raises(ParseError, match=f"lives took {whole}.0 ms, and their parts 100.0 ms"):
        workload_registry.get("whole-life").read([_round(whole, **parts)])


def test_an_exec_has_all_of_its_times_and_the_quantiles_that_they_allow():
    outcome = workload_registry.get("exec").read([_round(ms, execute=ms) for ms in range(1, 31)])
    assert outcome.series["return"] == list(range(1, 31))
    assert outcome.series["first-output"] == [ms / 4 for ms in range(1, 31)]
    assert outcome.series["cpu"] == [ms / 2 for ms in range(1, 31)]
    assert outcome.samples == {"p50": 15.5, "p95": pytest.approx(29.45)}  # R: quantile(1:30, c(0.5, 0.95), type = 6)
    assert outcome.unseen == {"p99": "needs 70 more"}


def test_no_quantile_is_made_of_too_few_times():
    figures, unseen = tails([1.0] * 19)
    assert figures == {}
    assert unseen["p95"] == "needs 1 more"
    assert set(tails([1.0] * 20)[0]) == {"p95"}
    assert set(tails([1.0] * 100)[0]) == {"p95", "p99"}


def test_the_end_of_what_does_not_obey_and_a_pause_have_their_own_figures():
    kills = [_round(50, create=20, start=5, kill=7, remove=18)]
    assert workload_registry.get("kill").read(kills).series == {"gone": [7], "cpu": [3.5]}
    assert workload_registry.get("pause").read([_round(12, pause=3, resume=9)]).series == {"pause": [3], "resume": [9]}


def test_a_pause_that_failed_is_a_share_and_has_no_time():
    outcome = workload_registry.get("pause").read([_round(12, pause=3, resume=9), _round(40)])
    assert outcome.series == {"pause": [3], "resume": [9]}
    assert outcome.samples == {"ok": 50}
    assert outcome.work == 1


def _burst(times_ms, failed=0, cpu_s=1.0):
    starts = [BurstStart(int(ms * MS)) for ms in times_ms] + [BurstStart(None, "no room")] * failed
    return Burst(tuple(starts), int(max(times_ms, default=0) * MS), int(cpu_s * 1e9))


def test_a_burst_has_its_median_its_share_and_the_knee():
    outcome = workload_registry.get("burst").read(
        [_burst([100]), _burst([110, 130]), _burst([300, 500, 700], failed=1)]
    )
    assert outcome.samples["p50-1"] == 100
    assert outcome.samples["p50-2"] == 120
    assert outcome.samples["p50-4"] == 500
    assert outcome.samples["ok-4"] == 75
    assert outcome.samples["total-4"] == 700
    # 2 x (200 / 120) ** (log 2 / log (500 / 120)) by logarithms
    assert outcome.samples["knee"] == pytest.approx(2.564, abs=0.001)
    assert outcome.unseen["p95-4"] == "needs 17 more"
    assert outcome.work == 7


def test_a_burst_without_a_knee_says_so():
    outcome = workload_registry.get("burst").read([_burst([100]), _burst([110, 120])])
    assert "knee" not in outcome.samples
    assert outcome.unseen["knee"] == "none up to 2"


def test_a_number_of_starts_that_all_fail_has_a_share_and_the_reason():
    outcome = workload_registry.get("burst").read([_burst([100]), _burst([], failed=2)])
    assert outcome.samples["ok-2"] == 0
    assert outcome.unseen["p50-2"] == "no start succeeded: no room"
    with pytest.raises(ParseError, match="no start succeeded: no room"):
        workload_registry.get("burst").read([_burst([], failed=1)])


def test_sizes_of_bursts_are_repeated_up_to_the_starts_asked_for():
    burst = workload_registry.get("burst")
    assert burst.sizes({"most": 4, "starts": 4}) == (1, 1, 1, 1, 2, 2, 4)
    assert workload_registry.get("burst-staggered").gap_s({"rate": 5}) == 0.2


def test_copies_share_what_they_take_less_than_one_alone():
    copies = [Copies(_burst([100]), 100 << 20), Copies(_burst([200, 300, 400], failed=1), 240 << 20)]
    figures = workload_registry.get("fork").read(copies).samples
    assert (figures["memory-1"], figures["memory-4"], figures["shared-4"]) == (100, 80, pytest.approx(20))
    assert (figures["each-4"], figures["ok-4"]) == (300, 75)
    assert "shared-1" not in figures


def test_a_snapshot_has_figures_with_the_page_cache_and_without():
    restored = Restored(30 * MS, 50 * MS, 9 * MS), Restored(80 * MS, 100 * MS, 60 * MS)
    outcome = workload_registry.get("snapshot-64").read(
        [Snapshot(200 * MS, 150 * MS, 90 * MS, 70 << 20, 8 * MS, *restored)]
    )
    assert {name: values[0] for name, values in outcome.series.items()} == {
        "snapshot": 200, "silent": 150, "size": 70, "cpu": 90, "restore": 30, "first-command": 50,
        "restore-dropped": 80, "first-command-dropped": 100, "read": 8, "read-again": 9, "read-again-dropped": 60,
    }  # fmt: skip


def test_a_program_remembers_what_the_host_computes(tmp_path):
    program, option, script = remembers(2, 1)
    argv = [program, option, script.replace("/data/", f"{tmp_path}/")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.read(3) == b"up\n"
            (tmp_path / AGAIN).touch()
            while not (tmp_path / SUM).exists():
                assert process.poll() is None
            assert (tmp_path / SUM).read_text() == str(remembered(1))
            assert (tmp_path / BEAT).stat().st_size > 0
        finally:
            process.kill()
