"""A synthetic campaign, written through the Store's own API, with known effects and noise. Only tests invent data."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tare.model import (
    Arm,
    CpuTick,
    Direction,
    Family,
    InstanceTick,
    Mode,
    Sample,
    SliceFacts,
    Status,
    Tick,
    Trial,
    TrialKey,
)
from tare.store import (
    CampaignRecord,
    LeftOut,
    LevelRecord,
    MetricRecord,
    PlatformRecord,
    ResourceRecord,
    Store,
    WorkloadRecord,
    create_store,
)

#: Of the usual shape's campaign; any other shape is another campaign.
ID = "2f6f7a8e-4c7e-4b8a-9d55-0d6a3f6f7c11"

#: True ratio of each platform to native for work that takes time; rates get the inverse.
SLOWDOWN: Mapping[str, float] = {
    "native": 1.0,
    "runc": 1.0005,
    "docker": 1.002,
    "gvisor-systrap": 1.041,
    "gvisor-ptrace": 3.3,
}


#: When the invented campaign begins, UNIX seconds; trial number n begins n seconds later.
BEGAN = 1_763_712_000.0
#: Seconds between two ticks of the invented telemetry.
TICK_S = 0.5


@dataclass(frozen=True)
class Disturbance:
    """What disturbs the invented host, from when to when in seconds since `BEGAN`, and how much of it.

    ``kind``: steal, foreign-cpu, sibling (of CPU 0, as if it were the other thread of
    the measured core), memory-pressure (shares), swap (pages a second), throttled (periods a second).
    """

    kind: str
    begin: float
    end: float
    amount: float
    arm: Arm | None = None  # whose instance is throttled


@dataclass(frozen=True)
class Shape:
    """What to invent."""

    blocks: int = 12
    rounds: int = 20
    seed: int = 7
    noise: float = 0.004  # of a round
    block_noise: float = 0.002  # of an instance, per block
    slowdown: Mapping[str, float] = field(default_factory=lambda: dict(SLOWDOWN))
    aa_shift: float = 1.0  # true ratio of the second native arm to the first
    failing: tuple[str, str] | None = ("iperf3-tcp", "gvisor-ptrace")  # workload, platform
    failing_every: int = 3  # blocks, from the second on; 1: all
    unsupported: tuple[str, str] | None = ("fileio-seqwr", "gvisor-ptrace")
    workloads: tuple[str, ...] = ("prime-slices", "sysbench-cpu", "fileio-seqwr", "iperf3-tcp", "startup")
    telemetry: bool = False
    disturbed: tuple[Disturbance, ...] = ()
    profile: str = "quick"
    scale: str | None = None  # of a study's profile
    stolen: bool = True  # whether a trial here and there reads that the hypervisor took time


def _metric(name: str, unit: str, direction: str, title: str) -> MetricRecord:
    return MetricRecord(name=name, unit=unit, direction=Direction(direction), title=title)


_COST = _metric("cpu-cost", "ns/event", "lower", "CPU cost of the whole platform")

_WORKLOADS = {
    "prime-slices": WorkloadRecord(
        name="prime-slices",
        title="Prime loop of the agent, in slices",
        family=Family.CPU,
        mode=Mode.SLICES,
        margin=0.01,
        work_unit="event",
        params={"slice_ms": 100, "rounds": 20},
        metrics=[_metric("rate", "events/s", "higher", "Events a second"), _COST],
    ),
    "sysbench-cpu": WorkloadRecord(
        name="sysbench-cpu",
        title="sysbench cpu, primes to 10,000",
        family=Family.CPU,
        mode=Mode.RUN,
        margin=0.01,
        work_unit="event",
        params={"time_s": 5},
        metrics=[_metric("rate", "events/s", "higher", "Events a second"), _COST],
    ),
    "fileio-seqwr": WorkloadRecord(
        name="fileio-seqwr",
        title="sysbench fileio, sequential write",
        family=Family.STORAGE,
        mode=Mode.RUN,
        margin=0.05,
        work_unit="MiB",
        params={"size_mb": 512},
        metrics=[_metric("throughput", "MiB/s", "higher", "Throughput"), _COST],
    ),
    "sysbench-fileio-seqrd": WorkloadRecord(
        name="sysbench-fileio-seqrd",
        title="sysbench fileio, sequential read",
        family=Family.STORAGE,
        mode=Mode.RUN,
        margin=0.05,
        work_unit="MiB",
        params={"total_mib": 256},
        metrics=[_metric("throughput", "MiB/s", "higher", "Throughput"), _COST],
    ),
    "iperf3-tcp": WorkloadRecord(
        name="iperf3-tcp",
        title="iperf3 TCP from the client",
        family=Family.NETWORK,
        mode=Mode.RUN,
        margin=0.05,
        work_unit="GB",
        params={"time_s": 3},
        metrics=[_metric("throughput", "Gbit/s", "higher", "Throughput"), _COST],
    ),
    "unit-costs": WorkloadRecord(
        name="unit-costs",
        title="Eight unit costs in slices",
        family=Family.CPU,
        mode=Mode.SLICES,
        margin=0.01,
        work_unit="call",
        params={"slice_ms": 20},
        metrics=[_metric(f"call-{index}", "ns", "lower", f"Call {index}") for index in range(8)],
    ),
    **{
        f"served-{load}": WorkloadRecord(
            name=f"served-{load}",
            title=f"A server under {load} connections",
            family=Family.APPLICATION,
            mode=Mode.RUN,
            margin=0.05,
            work_unit="request",
            params={"connections": load},
            metrics=[_metric("rate", "requests/s", "higher", "Requests a second"), _COST],
            level=LevelRecord(
                curve="served", at=load, unit="connections", rate="rate", latency="cpu-cost", limit=400_000.0
            ),
        )
        for load in (1, 8, 64)
    },
    "startup": WorkloadRecord(
        name="startup",
        title="Start-up by four definitions",
        family=Family.STARTUP,
        mode=Mode.START,
        margin=0.05,
        work_unit="start",
        params={},
        metrics=[
            _metric("first-byte", "ms", "lower", "The agent's first byte"),
            _metric("ping", "ms", "lower", "The address answers ping"),
        ],
    ),
}

_LEVEL = {"rate": 3127.0, "throughput": 41.7, "cpu-cost": 318_442.0, "first-byte": 41.0, "ping": 44.5}


def arms(shape: Shape) -> list[Arm]:
    """Native twice, then the others."""
    return [Arm("native"), Arm("native", 1), *(Arm(name) for name in shape.slowdown if name != "native")]


def record(shape: Shape) -> CampaignRecord:
    """The record of an invented campaign on an invented host."""
    return CampaignRecord(
        id=ID if shape == Shape() else str(uuid.uuid5(uuid.UUID(ID), repr(shape))),
        created=BEGAN,
        tare_version="0.1.0",
        seed=shape.seed,
        profile=shape.profile,
        scale=shape.scale,
        baseline="native",
        arms=[(arm.platform, arm.replica) for arm in arms(shape)],
        platforms=[
            PlatformRecord(
                name=name,
                title={"native": "Native chroot"}.get(name, name),
                version="1.2.3",
                details={"runtime": f"/usr/bin/{name}"},
                image_bytes=312_000_000,
                not_honoured=["memory limit counts the sentry"] if name.startswith("gvisor") else [],
                open_by_design={"*": "it is the host itself"} if name == "native" else {},
                network_path="veth pair" if name == "native" else "bridge and veth",
                daemon="dockerd" if name == "docker" else "",
                needs_root=name != "gvisor-systrap",
            )
            for name in shape.slowdown
        ],
        workloads=[_WORKLOADS[name] for name in shape.workloads],
        resources=ResourceRecord(cpus=[1], memory_bytes=512 << 20),
        host={
            "cpu": {"model": "Invented 9000", "count": 2, "flags": ["aes", "avx2"]},
            "kernel": "6.1.0-fake",
            "clocksource": "tsc",
            "virtualized": "kvm",
        },
        image={"hash": "sha256:0123abcd", "release": "bookworm", "packages": {"sysbench": "1.0.20"}},
        agent_hash="sha256:89abcdef",
        fairness={"cache mode": "host page cache", "cgroup": "v1, siblings of equal weight"},
        blocks=shape.blocks,
        left_out=[LeftOut(platform="kata", reason="/dev/kvm is missing", fix="run on a host with KVM")],
    )


def write(path: Path, shape: Shape = Shape()) -> Path:
    """Write the whole campaign and close it."""
    with create_store(path, record(shape)) as store:
        fill(store, shape)
    return path


def fill(store: Store, shape: Shape) -> None:
    """All that a campaign writes into a store that it made."""
    store.set_status("running")
    seq = 0
    for block, trials in _blocks(shape):
        store.plan_block(block, [trial.key for trial in trials])
        store.commit_trials(trials)
        seq += len(trials)
    store.commit_trials((), list(ticks(shape, seq)) if shape.telemetry else ())
    store.add_event("info", "all blocks done")
    store.set_status("complete")


def ticks(shape: Shape, trials: int) -> Iterator[Tick]:
    """Telemetry from before the first trial to after the last, of a host on which only the disturbances happen.

    One CPU is measured (1) and one is not (0). The campaign's instances have the measured one all the time, but what
    others have of it is theirs.
    """
    second = 1_000_000_000
    amounts = dict.fromkeys(("steal", "foreign-cpu", "sibling", "memory-pressure", "swap"), 0.0)  # so far: s, and pages
    throttled = dict.fromkeys(arms(shape), 0.0)
    for number in range(int((trials + 4) / TICK_S)):
        now = BEGAN - 1.0 + number * TICK_S
        for disturbance in shape.disturbed:
            share = min(disturbance.end, now - BEGAN) - max(disturbance.begin, now - TICK_S - BEGAN)
            if share <= 0 or not number:
                continue
            if disturbance.arm is not None:
                throttled[disturbance.arm] += disturbance.amount * share
            else:
                amounts[disturbance.kind] += disturbance.amount * share
        since = number * TICK_S
        stolen, foreign = amounts["steal"], amounts["foreign-cpu"]
        ours = int(second * (since - stolen - foreign))
        busy = int(second * (since - stolen))
        measured = CpuTick(1, int(1000 * (since - stolen)), 0, 0, 0, 0, 0, 0, int(1000 * stolen), busy, ours)
        beside = amounts["sibling"]
        other = CpuTick(0, int(1000 * beside), 0, 0, int(1000 * (since - beside)), 0, 0, 0, 0, int(second * beside), 0)
        yield Tick(
            at=now,
            at_ns=int(second * since) + 1,
            first=number == 0,
            own_ns=0,
            tare_ns=ours,
            client_ns=0,
            daemons_ns=0,
            kernel_ns=0,
            cpu_pressure_us=None,
            memory_pressure_us=int(1e6 * amounts["memory-pressure"]),
            io_pressure_us=None,
            memory_available=8 << 30,
            swapped_in=int(amounts["swap"]),
            swapped_out=0,
            disk_read_bytes=None,
            disk_written_bytes=None,
            disk_busy_ms=None,
            net_received_bytes=number,
            net_sent_bytes=number,
            cpus=(other, measured),
            instances=tuple(InstanceTick(arm, ours, 1 << 20, int(many), 0) for arm, many in throttled.items()),
        )


def _blocks(shape: Shape) -> Iterator[tuple[int, list[Trial]]]:
    rng = np.random.default_rng(shape.seed)
    seq = 0
    for block in range(shape.blocks):
        trials = []
        for workload in record(shape).workloads:
            rounds = shape.rounds if workload.mode is Mode.SLICES else 1
            common = rng.normal(0, 0.05, rounds) + rng.normal(0, 0.05)  # what hits all arms of a round alike
            for arm in arms(shape):
                trials.append(_trial(shape, rng, TrialKey(block, workload.name, arm), workload, common, seq))
                seq += 1
        yield block, trials


def _trial(
    shape: Shape, rng: np.random.Generator, key: TrialKey, workload: WorkloadRecord, common: np.ndarray, seq: int
) -> Trial:
    status, reason = _fate(shape, key)
    rounds = len(common)
    sliced = workload.mode is Mode.SLICES
    scale = 1.0 if sliced else 2.0
    samples: list[Sample] = []
    for metric in workload.metrics if status is Status.OK else ():
        log = np.log(shape.slowdown[key.arm.platform]) + (np.log(shape.aa_shift) if key.arm.replica else 0.0)
        log = log + common + rng.normal(0, shape.noise * scale, rounds) + rng.normal(0, shape.block_noise)
        sign = 1.0 if metric.direction is Direction.LOWER else -1.0
        values = _LEVEL.get(metric.name, 250.0) * np.exp(sign * log)
        samples += [Sample(metric.name, float(value), index) for index, value in enumerate(values)]
    slices = tuple(
        SliceFacts(index, 0, 10**9 * index, 10**8, 99_000_000, None, 1000) for index in range(rounds if sliced else 0)
    )
    return Trial(
        key=key,
        status=status,
        reason=reason,
        seq=seq,
        started=BEGAN + seq,
        wall_ns=10**8 * rounds,
        cpu_ns=99_000_000 * rounds,
        daemon_cpu_ns=10**6 * rounds if key.arm.platform.startswith("docker") else None,
        steal=0.05 if shape.stolen and seq % 97 == 5 else 0.001,
        pressure=None,
        load=0.5,
        samples=tuple(samples),
        slices=slices if status is Status.OK else (),
        outputs={} if sliced else {"stdout": b"events per second: 3127.00\n"},
    )


def _fate(shape: Shape, key: TrialKey) -> tuple[Status, str | None]:
    which = (key.workload, key.arm.platform)
    if which == shape.unsupported:
        return Status.UNSUPPORTED, "the platform has no writable volume"
    if which == shape.failing and key.block % shape.failing_every == 1 % shape.failing_every:
        return Status.FAILED, "iperf3 took longer than 60 s: connection refused"
    return Status.OK, None
