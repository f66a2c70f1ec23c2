"""Promises about instances that live by their platform's own commands (`tare.platforms.base.Life`)."""

from __future__ import annotations

from collections.abc import Sequence

from tare.campaign.execution.living import Living
from tare.campaign.execution.snapshots import snapshot_of
from tare.campaign.instances.launcher import USUAL, Terms
from tare.contract.bench import Bench, promise
from tare.contract.leftovers import left_on_host
from tare.errors import UnsupportedError
from tare.host.kernel import parentage
from tare.workloads.apart import Operation
from tare.workloads.life.programs import WAITS, WORKS, remembered, remembers

#: An instance whose memory is to be the same touches so much, and has so much more.
TOUCHED_MIB, ROOM_MIB = 16, 320


def stops_and_is_removed(bench: Bench) -> str | None:
    """By its own commands an instance is made, entered, told to end, and removed: nothing of it is left."""
    operations = (Operation.CREATE, Operation.START, Operation.EXECUTE, Operation.STOP, Operation.REMOVE)
    return _lived(bench, WAITS, operations)


def pauses_and_goes_on(bench: Bench) -> str | None:
    """A busy instance that is paused uses no CPU time, and goes on when it is resumed."""
    return _lived(bench, WORKS, (Operation.CREATE, Operation.START, Operation.PAUSE, Operation.RESUME))


def restored_remembers(bench: Bench) -> str | None:
    """An instance that was restored from its snapshot answers, and has the same memory."""
    terms = Terms(memory_bytes=(TOUCHED_MIB + ROOM_MIB) << 20)
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


def _lived(bench: Bench, argv: Sequence[str], operations: Sequence[Operation]) -> str | None:
    """Live through operations, each of which checks that it has come about; a remark where there is none such."""
    try:
        instance = Living.placed(bench.platform, bench.launcher, argv, USUAL)
    except UnsupportedError as error:
        return f"unsupported: {error.what}"
    with parentage.adopting():
        try:
            for operation in operations:
                instance.do(operation)
        except UnsupportedError as error:
            return f"unsupported: {error.what}"
        finally:
            instance.end()
    left = left_on_host(instance.spec.id)
    promise(not left, f"left on the host: {left}")
    return None
