"""Snapshots and restores of instances that live by their platform's own commands (`SnapshotWorkload`)."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tare.campaign.execution.density import ApartResult
from tare.campaign.execution.life import result_of
from tare.campaign.execution.living import LIMIT_S, LOOK_S, Living, living
from tare.campaign.instances.launcher import StartOptions
from tare.campaign.instances.pool import InstancePool
from tare.errors import PlatformError
from tare.host.filesystems import roots, shared_files
from tare.host.kernel import parentage
from tare.image import forms
from tare.timeouts import stretched, until
from tare.workloads.apart import Operation, Restored, Snapshot, SnapshotWorkload
from tare.workloads.base import Params
from tare.workloads.life.programs import AGAIN, BEAT, SUM, remembered

#: Characters of an answer: more than a sum has.
_MAX_ANSWER = 40


def snapshots(workload: SnapshotWorkload, params: Params, pool: InstancePool) -> ApartResult:
    """Run one trial. Raises `UnsupportedError`, `HostError`, `PlatformError`."""
    terms = StartOptions(memory_bytes=int(params["memory_mib"]) << 20)
    began, done = time.monotonic(), list[Snapshot]()
    with parentage.adopting():
        while not done or time.monotonic() - began < float(params["time_s"]):
            with living(pool, workload.payload, terms) as instance:
                done.append(snapshot_of(instance, remembered(workload.read_mib)))
    return result_of(workload.read(done))


def snapshot_of(instance: Living, memory: int) -> Snapshot:
    """Start it, write its snapshot, and restore it twice. ``memory``: the sum of what it remembers.

    Raises `UnsupportedError`, and `PlatformError`, also where its memory is not the same.
    """
    for operation in (Operation.SNAPSHOT, Operation.RESTORE):
        instance.command(operation)  # unsupported before anything is started
    started(instance)
    read_ns = read_memory(instance, memory)
    if instance.life.files is not None:
        step = instance.do(Operation.SNAPSHOT)
        silent_ns = instance.life.files.stood_ns()
    else:
        with _watched(instance.spec.space.data) as silence:
            step = instance.do(Operation.SNAPSHOT)
        [silent_ns] = silence
    place = instance.life.snapshot_at
    assert place is not None, "what has a snapshot has its place"
    size = forms.disk_bytes(place)
    _gone(instance)
    warm = _restored(instance, memory)
    roots.drop_page_cache(place)
    dropped = _restored(instance, memory)
    return Snapshot(step.wall_ns, silent_ns, step.cpu_ns, size, read_ns, warm, dropped)


def started(instance: Living) -> None:
    """Create and start it, and wait until it has touched its memory."""
    for operation in (Operation.CREATE, Operation.START):
        instance.do(operation)
    if instance.life.files is not None:
        instance.life.files.wait_for(BEAT)
    else:
        _until(lambda: shared_files.size(instance.spec.space.data, BEAT) > 0, "has not touched its memory")


def _gone(instance: Living) -> None:
    """Kill and remove it, and keep what was made for it by hand."""
    instance.do(Operation.KILL)
    instance.carry_out(Operation.REMOVE)


def _restored(instance: Living, memory: int) -> Restored:
    if instance.life.remake is not None:
        instance.life.remake()
    restored, command = instance.do(Operation.RESTORE), instance.do(Operation.EXECUTE)
    read_ns = read_memory(instance, memory)
    _gone(instance)
    return Restored(restored.wall_ns, restored.wall_ns + command.wall_ns, read_ns)


def read_memory(instance: Living, memory: int) -> int:
    """Have it read its memory; how long that takes, in ns. Raises `PlatformError` where that is not what it was."""
    began = time.monotonic_ns()
    if instance.life.files is not None:
        answer = instance.life.files.answer(AGAIN, SUM)
        took_ns = time.monotonic_ns() - began
    else:
        data = instance.spec.space.data
        try:
            shared_files.make(data, AGAIN)
            _until(lambda: shared_files.size(data, SUM) > 0, "does not answer")
            took_ns = time.monotonic_ns() - began
            answer = shared_files.read(data, SUM, _MAX_ANSWER).decode(errors="replace")
            (data / SUM).unlink()
        except OSError as error:
            raise PlatformError(f"the instance has made something else of its files: {error.strerror}") from error
    if answer != str(memory):
        raise PlatformError(f"its memory is not what it was: {answer[:40]!r} in place of {memory}")
    return took_ns


@contextlib.contextmanager
def _watched(data: Path) -> Iterator[list[int]]:
    """Watch the file that grows all the time; afterwards the list has the longest time in which it did not, in ns."""
    silence: list[int] = []
    over = threading.Event()

    def watch() -> None:
        longest, size, last = 0, shared_files.size(data, BEAT), time.monotonic_ns()
        deadline = until(LIMIT_S)
        while time.monotonic() < deadline:
            time.sleep(LOOK_S)
            ended = over.is_set()
            if (now := shared_files.size(data, BEAT)) != size:
                longest, size, last = max(longest, time.monotonic_ns() - last), now, time.monotonic_ns()
                if ended:
                    break
        silence.append(max(longest, time.monotonic_ns() - last))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield silence
    finally:
        over.set()
        watcher.join()


def _until(come: Callable[[], bool], otherwise: str) -> None:
    deadline = until(LIMIT_S)
    while not come():
        if time.monotonic() > deadline:
            raise PlatformError(f"the instance {otherwise} within {stretched(LIMIT_S):.0f} s")
        time.sleep(LOOK_S)
