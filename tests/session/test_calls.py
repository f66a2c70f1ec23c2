"""The agent's probes of calls, of mapping and of RAMspeed's families, through a session; and their way into trials."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tare.campaign.execution.slices import Sliced, run_slices
from tare.campaign.instances.launcher import RunningInstance
from tare.campaign.plan.schedule import Stage
from tare.errors import HostError, UnsupportedError
from tare.host import processes
from tare.model import Arm, Mode, Resources
from tare.session import MAX_SLICES, ProbeResult, Refused, Session
from tare.workloads import workload_registry
from tare.workloads.base import Params, SliceWorkload
from tare.workloads.kernel.unit import UnitCost

MS = 1_000_000
MIB = 2**20
WORKLOADS = {
    name: workload
    for name, workload in workload_registry.all_workloads().items()
    if isinstance(workload, SliceWorkload)
}
UNITS = [name for name, workload in WORKLOADS.items() if isinstance(workload, UnitCost)]
ARM = Arm("native")


def one_slice(session: Session, name: str, params: Params, length_ms: int = 10) -> ProbeResult:
    """What one turn of a probe gives; a longer one where a busy machine left it no time."""
    result = turn(session, name, params, length_ms)
    idle = not any(part.work for part in result.slices[0].parts.values())
    return turn(session, name, params, 50 * length_ms) if idle else result


def turn(session: Session, name: str, params: Params, length_ms: int) -> ProbeResult:
    """The same, whatever it did."""
    probe = session.probe(name, dict(params), 5 * MS)
    probe.wait_ready(20)
    start = session.sync_clock().to_agent(time.monotonic_ns()) + 5 * MS
    probe.begin([(start, length_ms * MS)])
    return probe.wait(20)


@pytest.mark.thorough
@pytest.mark.parametrize("name", UNITS)
def test_every_call_of_a_workload_is_one_that_the_agent_makes(name: str, session: Session, tmp_path: Path) -> None:
    workload = WORKLOADS[name]
    params = {**workload.probe_params(workload.profiles["quick"]), "folder": str(tmp_path)}
    [turn] = one_slice(session, workload.probe, params).slices
    figures = workload.read_slice({part: (did.work, did.wall_ns) for part, did in turn.parts.items()}, None)
    assert figures["rate"] > 0
    assert list(tmp_path.iterdir()) == [], "what a call made is gone with it"


def test_a_call_that_nobody_makes_is_answered_with_those_that_there_are(session: Session) -> None:
    with pytest.raises(Refused, match=r"tcp-kib; there is no call getpit") as refused:
        session.probe("calls", {"call": "getpit"}, 0).wait_ready(20)
    assert refused.value.code == "bad-request"


def test_what_the_kernel_does_not_have_is_unsupported_and_the_session_goes_on(session: Session) -> None:
    with pytest.raises(Refused, match="file-create: No such file") as refused:
        session.probe("calls", {"call": "file-create", "folder": "/no/such/folder"}, 0).wait_ready(20)
    assert refused.value.code == "unsupported"
    assert session.execute(["true"]).code == 0


def test_commands_run_and_their_orphans_are_reaped_while_a_probe_starts_processes(session: Session) -> None:
    probe = session.probe("calls", {"call": "fork"}, 5 * MS)
    probe.wait_ready(20)
    start = session.sync_clock().to_agent(time.monotonic_ns()) + 5 * MS
    probe.begin([(start, 300 * MS)])
    for _ in range(20):
        assert session.execute(["sh", "-c", "(sleep 0.01 & ) ; exit 3"]).code == 3
    assert probe.wait(20).slices[0].parts["calls"].work > 0
    session.execute(["sleep", "0.05"])
    listed = session.execute(["sh", "-c", "ps -o stat= --ppid $PPID | grep -c Z || true"]).stdout
    assert listed.strip() == b"0", "a dead child was left"


def test_children_of_a_pipe_end_with_their_probe(session: Session) -> None:
    one_slice(session, "calls", {"call": "pipe"})
    listed = session.execute(["sh", "-c", "ps -o comm= --ppid $PPID"]).stdout
    assert b"tare-agent" not in listed
    assert b"pipe" not in listed.replace(b"\n", b" ").split()


def test_nothing_is_a_program_that_ends_at_once(agent_binary: Path) -> None:
    done = processes.run([str(agent_binary), "nothing"])
    assert (done.code, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("name", ["mmap-sweep", "munmap-sweep"])
def test_a_sweep_maps_and_touches_as_much_of_every_size(name: str, session: Session) -> None:
    workload = WORKLOADS[name]
    [turn] = one_slice(session, name, {"total_bytes": 10 * MIB}, length_ms=40).slices
    work = {part: did.work for part, did in turn.parts.items()}
    assert len(set(work.values())) == 1, work
    assert sum(did.wall_ns for did in turn.parts.values()) <= turn.end_ns - turn.start_ns
    figures = workload.read_slice({part: (did.work, did.wall_ns) for part, did in turn.parts.items()}, 10 * MS)
    assert set(figures) == {metric.name for metric in workload.all_metrics}
    assert figures["cpu-cost"] == pytest.approx(10 * MS / (5 * work["map-4k"] / MIB))


def test_what_a_sweep_keeps_is_bounded_and_given_back(session: Session) -> None:
    resident = "grep VmRSS /proc/$PPID/status | tr -dc 0-9"
    before = int(session.execute(["sh", "-c", resident]).stdout)
    probe = session.probe("mmap-sweep", {"total_bytes": 40 * MIB}, 200 * MS)
    probe.wait_ready(20)
    during = int(session.execute(["sh", "-c", resident]).stdout)
    assert 20 * 1024 < during - before < 50 * 1024
    probe.begin([])
    probe.wait(20)
    assert int(session.execute(["sh", "-c", resident]).stdout) - before < 5 * 1024


@pytest.mark.parametrize("name", ["ramspeed-int", "ramspeed-float", "ramspeed-sse", "ramspeed-sse-nt"])
def test_ramspeed_moves_all_streams(name: str, session: Session) -> None:
    workload = WORKLOADS[name]
    [turn] = one_slice(session, name, {"block_bytes": 65_536, "array_bytes": MIB}).slices
    work = {part: did.work for part, did in turn.parts.items()}
    assert {part: done // work["write"] for part, done in work.items()} == {
        "write": 1, "read": 1, "copy": 2, "scale": 2, "add": 3, "triad": 3,
    }  # fmt: skip
    figures = workload.read_slice({part: (did.work, did.wall_ns) for part, did in turn.parts.items()}, 10 * MS)
    assert set(figures) == {metric.name for metric in workload.all_metrics}


# As a campaign runs them: what is refused is a row of its own kind.


def sliced(session: Session, name: str, memory_bytes: int = 2**30, rounds: int = 2, **params: Any) -> Sliced:
    """One stage of some rounds on this agent, as if it was an instance."""
    spec = SimpleNamespace(resources=Resources((0,), memory_bytes))
    clock = {"cpu_ns": time.process_time_ns, "daemon_cpu_ns": lambda: None}
    running = cast(
        "RunningInstance", SimpleNamespace(arm=ARM, session=session, instance=SimpleNamespace(spec=spec), **clock)
    )
    stage = Stage(name, Mode.SLICES, (ARM,), rounds=((ARM,),) * rounds)
    schedule = {"slice_ms": 20, "rounds": rounds, "warmup_ms": 5}
    workload = WORKLOADS[name]
    return run_slices(workload, {**workload.profiles["quick"], **schedule, **params}, stage, {ARM: running})[ARM]


@pytest.mark.thorough
def test_a_campaign_runs_them(session: Session) -> None:
    done = sliced(session, "call-getpid", slice_ms=500)  # on a busy machine an agent misses 20 ms
    assert done.error is None
    assert [sample.metric for sample in done.samples if sample.metric == "rate"] == ["rate", "rate"]


@pytest.mark.thorough
def test_more_slices_than_one_probe_takes_are_run_in_parts(session: Session) -> None:
    rounds = MAX_SLICES + 2
    done = sliced(session, "call-getpid", rounds=rounds, slice_ms=1)
    assert done.error is None
    assert [turn.round for turn in done.slices] == list(range(rounds))
    counted = {
        sample.round for sample in done.samples if sample.metric == "rate"
    }  # one that came too late has no figure
    assert counted <= set(range(rounds))
    assert min(counted) < MAX_SLICES // 2 < max(counted)
    assert all(turn.start_ns < other.start_ns for turn, other in pairwise(done.slices))
    assert done.work > 0


def test_what_the_platform_lacks_is_no_failure(session: Session) -> None:
    done = sliced(session, "file-create", folder="/no/such/folder")
    assert isinstance(done.error, UnsupportedError)
    assert "file-create: No such file" in done.error.what


def test_what_a_user_has_wrong_is_a_failure(session: Session) -> None:
    assert isinstance(sliced(session, "call-getpid", call="getpit").error, Refused)


@pytest.mark.thorough
def test_a_sweep_is_fitted_to_the_instance(session: Session) -> None:
    assert sliced(session, "munmap-sweep", memory_bytes=64 * MIB, slice_ms=500).error is None
    refused = sliced(session, "mmap-sweep", memory_bytes=64 * MIB, total_bytes=40 * MIB).error
    assert isinstance(refused, HostError)
    assert "total_bytes" in (refused.fix or "")
