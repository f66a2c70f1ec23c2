"""Invented footprints for tests: what ran is known, and so is what any report must make of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

import fake_campaign
from tare.footprint_model import IDLE, Footprint, Phase, Scope
from tare.model import Level
from tare.store import create_store, open_store

PLATFORMS = ("native", "docker", "gvisor")
WORKLOADS = ("sysbench-cpu", "iperf3-tcp")
#: Lines that a platform runs by itself, by file: first line and how many.
_OWN = {
    "native": {"mm/mmap.c": (100, 40), "fs/ext4/inode.c": (10, 60), "kernel/sched/core.c": (1, 80)},
    "docker": {
        "mm/mmap.c": (100, 50), "fs/ext4/inode.c": (10, 60), "fs/overlayfs/super.c": (5, 30),
        "net/bridge/br.c": (1, 25), "kernel/sched/core.c": (1, 90),
    },
    "gvisor": {
        "mm/mmap.c": (130, 40), "kernel/seccomp.c": (1, 35), "kernel/sched/core.c": (1, 70),
        "net/bridge/br.c": (1, 20), "arch/x86/kvm/x86.c": (400, 15),
    },
}  # fmt: skip
#: What the host does by itself, thousands of times a second.
_BACKGROUND = {f"kernel/time/timer.c:{line}": 1_000 for line in range(1, 41)}


def footprint(hits: dict[str, int], **facts: object) -> Footprint:
    """One footprint; what is not said is steady work of native's on the host, 10 s of it."""
    fields = {
        "level": Level.LINES, "scope": Scope.HOST, "platform": "native", "phase": Phase.STEADY, "workload": "w",
        "repeat": 0, "seconds": 10.0, "hits": hits,
    }  # fmt: skip
    return Footprint.model_validate(fields | facts)


def write(path: Path, prints: Iterable[Footprint], *, trials: bool = False) -> Path:
    """A campaign's file with these footprints, and with trials or without."""
    shape = fake_campaign.Shape(blocks=3, rounds=2, workloads=("sysbench-cpu",))
    if trials:
        fake_campaign.write(path, shape)
    else:
        create_store(path, fake_campaign.record(shape)).close()
    with open_store(path) as store:
        for footprint in prints:
            store.add_footprint(footprint)
        store.set_status("complete")
    return path


def lines_of(platform: str) -> set[str]:
    """The lines that an invented platform runs."""
    return {f"{file}:{line}" for file, (first, count) in _OWN[platform].items() for line in range(first, first + count)}


def invented(
    level: Level = Level.LINES, *, repeats: int = 3, seed: int = 1, platforms: tuple[str, ...] = PLATFORMS
) -> list[Footprint]:
    """Two idle ones, and for each platform its start and two workloads, in repeats that differ a little.

    Functions are named like the lines ("mm_mmap_c_100") and have an instance's scope too.
    """
    rng = np.random.default_rng(seed)
    prints = [
        _footprint(level, Scope.HOST, IDLE, None, number, _background(rng, 20.0), 20.0) for number in range(2)
    ]  # fmt: skip
    for platform in platforms:
        for repeat in range(repeats):
            for workload in (None, *WORKLOADS):
                hits = _hits(rng, lines_of(platform), workload)
                whole = _background(rng, 10.0, 0.98) | hits
                prints.append(_footprint(level, Scope.HOST, platform, workload, repeat, whole, 10.0))
                if level is not Level.LINES:
                    prints.append(_footprint(level, Scope.INSTANCE, platform, workload, repeat, hits, 10.0))
    return prints


def _footprint(
    level: Level, scope: Scope, platform: str, workload: str | None, repeat: int, hits: dict[str, int], seconds: float
) -> Footprint:
    if level is not Level.LINES:
        hits = {name(line): count for line, count in hits.items()}
    phase = Phase.START if workload is None and platform != IDLE else Phase.STEADY
    return footprint(
        hits, level=level, scope=scope, platform=platform, workload=workload, repeat=repeat, seconds=seconds,
        phase=phase, known=5_000,
    )  # fmt: skip


def name(line: str) -> str:
    """The function that an invented line stands for."""
    return line.replace("/", "_").replace(".", "_").replace(":", "_")


def _background(rng: np.random.Generator, seconds: float, less: float = 1.0) -> dict[str, int]:
    return {line: int(rng.poisson(rate * seconds * less * 0.97)) for line, rate in _BACKGROUND.items()}


def _hits(rng: np.random.Generator, lines: set[str], workload: str | None) -> dict[str, int]:
    """Network lines run for the network's work only; a line in ten is so rare that a repeat may miss it."""
    hits = {}
    for at, line in enumerate(sorted(lines)):
        if line.startswith("net/") and workload != "iperf3-tcp":
            continue
        rate = 0.8 if at % 10 == 0 else 500.0
        if count := int(rng.poisson(rate)):
            hits[line] = count
    return hits
