"""Copies of a prepared instance, started at one instant from its snapshot (`ForkWorkload`)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from tare.campaign.execution.burst_trial import START, end_all, reasons_of, require_fits, start_all
from tare.campaign.execution.density import ApartResult
from tare.campaign.execution.life import result_of
from tare.campaign.execution.living import Living, living
from tare.campaign.execution.snapshots import read_memory, started
from tare.campaign.instances.launcher import StartOptions
from tare.campaign.instances.pool import InstancePool
from tare.errors import Failed, PlatformError, attempt
from tare.host.facts import memory
from tare.host.filesystems import shared_files
from tare.host.kernel import parentage
from tare.workloads.apart import BurstStart, Copies, ForkWorkload, Operation
from tare.workloads.base import Params
from tare.workloads.life.programs import BEAT, remembered

#: It grows by a byte a millisecond, for the minutes of a trial.
_MAX_BEAT = 16 << 20


def copies(workload: ForkWorkload, params: Params, pool: InstancePool) -> ApartResult:
    """Run one trial. Raises `UnsupportedError`, `HostError`, `PlatformError`."""
    terms = StartOptions(memory_bytes=int(params["memory_mib"]) << 20)
    require_fits(max(workload.counts(params)) + 1, terms, pool)
    done = []
    with parentage.adopting(), living(pool, workload.payload, terms) as prepared:
        prepared.command(Operation.SNAPSHOT)  # unsupported before anything is started
        started(prepared)
        prepared.do(Operation.SNAPSHOT)
        for count in workload.counts(params):
            with _placed(count, workload, terms, pool, prepared) as made:
                done.append(_copies(made, remembered(workload.read_mib)))
    return result_of(workload.read(done), reasons_of(tried.started for tried in done))


@contextlib.contextmanager
def _placed(
    count: int, workload: ForkWorkload, terms: StartOptions, pool: InstancePool, prepared: Living
) -> Iterator[list[Living]]:
    made: list[Living] = []
    place = prepared.life.snapshot_at
    assert place is not None, "what has a snapshot has its place"
    try:
        for _ in range(count):
            copy = Living.placed(pool.platform, pool.launcher, workload.payload, terms, snapshot=place)
            made.append(copy)
            if prepared.life.files is None:  # the copy has the file open that the instance had
                _take_beat(prepared, copy)
            copy.hold(*START)
        yield made
    finally:
        end_all(made, pool)


def _take_beat(prepared: Living, copy: Living) -> None:
    """Copy the file that the instance has open. Raises `PlatformError` for one that is not what its program makes."""
    if not shared_files.copy(prepared.spec.space.data, copy.spec.space.data, BEAT, _MAX_BEAT):
        raise PlatformError(f"its file {BEAT} has more than {_MAX_BEAT >> 20} MiB")


def _copies(made: list[Living], expected: int) -> Copies:
    """Start them all; a copy that fails is a figure, also one that does not remember what it should."""
    burst = start_all(made)
    starts = tuple(_remembers(copy, begun, expected) for copy, begun in zip(made, burst.starts, strict=True))
    pss = sum(
        memory.resident(copy.spec.group.pids()).pss
        for copy, begun in zip(made, starts, strict=True)
        if not begun.reason
    )
    return Copies(replace(burst, starts=starts), pss)


def _remembers(copy: Living, begun: BurstStart, expected: int) -> BurstStart:
    """Return a copy's start once it has read its memory, and a failed one if it did not or has another memory."""
    if begun.reason:
        return begun
    read = attempt(lambda: read_memory(copy, expected))
    return BurstStart(None, read.reason) if isinstance(read, Failed) else begun
