"""Promises about instances that live by their platform's own commands (`tare.platforms.base.Life`)."""

from __future__ import annotations

from tare.campaign.execution.living import Living
from tare.campaign.execution.snapshots import snapshot_of
from tare.campaign.instances.launcher import StartOptions
from tare.contract.bench import Bench, promise
from tare.contract.leftovers import left_on_host
from tare.errors import UnsupportedError
from tare.host.kernel import parentage
from tare.workloads.apart import Operation
from tare.workloads.life.programs import WORKS, remembered, remembers

#: An instance whose memory is to be the same touches so much, and has so much more.
TOUCHED_MIB, ROOM_MIB = 16, 320


def lives_by_its_commands(bench: Bench) -> str | None:
    """By its own commands it is made, entered, paused, told to end and removed: it stood still, and nothing is left."""
    remark = None
    try:
        instance = Living.placed(bench.platform, bench.launcher, WORKS)
    except UnsupportedError as error:
        return f"unsupported: {error.what}"
    with parentage.adopting():
        try:
            for operation in (Operation.CREATE, Operation.START, Operation.EXECUTE):
                instance.do(operation)
            try:
                instance.do(Operation.PAUSE)
                instance.do(Operation.RESUME)
            except UnsupportedError as error:
                remark = f"unsupported: {error.what}"
            instance.do(Operation.STOP)
            promise(not instance.spec.group.pids(), "processes of it are left after its stop")
            instance.do(Operation.REMOVE)
        finally:
            instance.end()
    left = left_on_host(instance.spec.id)
    promise(not left, f"left on the host: {left}")
    return remark


def restored_remembers(bench: Bench) -> str | None:
    """An instance that was restored from its snapshot answers, and has the same memory."""
    terms = StartOptions(memory_bytes=(TOUCHED_MIB + ROOM_MIB) << 20)
    try:
        instance = Living.placed(bench.platform, bench.launcher, remembers(TOUCHED_MIB, TOUCHED_MIB), terms)
    except UnsupportedError as error:
        return f"unsupported: {error.what}"
    with parentage.adopting():
        try:
            snapshot_of(instance, remembered(TOUCHED_MIB))
        except UnsupportedError as error:
            return f"unsupported: {error.what}"
        finally:
            instance.end()
    return None
