"""Lives through an instance's operations and says which one is to be its last: `life_victim.py PLATFORM OPERATION`."""

import sys
from collections.abc import Iterator

from tare.campaign.execution import burst_trial, forks
from tare.campaign.execution.living import Living
from tare.campaign.execution.snapshots import started
from tare.campaign.host_session import HostSession, default_cpus
from tare.campaign.instances.launcher import InstanceLauncher, StartOptions
from tare.campaign.instances.pool import InstancePool
from tare.model import Arm, Resources
from tare.platforms import platform_contract, platform_registry
from tare.platforms.base import Platform
from tare.workloads import workload_registry
from tare.workloads.apart import Operation
from tare.workloads.life.programs import WAITS, WORKS

OPERATIONS = tuple(map(Operation, ("create", "start", "execute", "pause", "resume", "stop", "remove")))
#: What is killed and removed is restored from its snapshot.
SNAPSHOTS = tuple(map(Operation, ("create", "start", "snapshot", "kill", "restore")))
KILL = tuple(map(Operation, ("create", "start", "kill")))
BURST, FORK, ENGINE_RESTART = "burst", "fork", "engine-restart"


def live(platform: Platform, launcher: InstanceLauncher, last: str) -> Iterator[str]:
    """Yield what comes next, and then do it."""
    pool = InstancePool(platform, Arm(platform.name), launcher, print, print)
    if last == BURST:
        with burst_trial.placed(4, WAITS, StartOptions(memory_bytes=192 << 20), pool) as instances:
            yield BURST
            burst_trial.start_all(instances)
        return
    if last == FORK:
        yield from fork(pool)
        return
    living = Living.placed(platform, launcher, WORKS)
    if last == ENGINE_RESTART:
        for operation in burst_trial.START:
            living.do(operation)
        yield ENGINE_RESTART
        platform.restart_engine()
        return
    sequences = {Operation.SNAPSHOT: SNAPSHOTS, Operation.RESTORE: SNAPSHOTS, Operation.KILL: KILL}
    for operation in sequences.get(last, OPERATIONS):
        if operation != last and operation.value in living.life.lacks:
            continue
        yield operation
        living.do(operation)
        if operation is Operation.KILL:
            living.carry_out(Operation.REMOVE)
            if living.life.remake is not None:
                living.life.remake()


def fork(pool: InstancePool) -> Iterator[str]:
    """Yield once two copies of an instance wait for their start, and then start them."""
    workload, terms = workload_registry.get("fork"), StartOptions(memory_bytes=384 << 20)
    prepared = Living.placed(pool.platform, pool.launcher, workload.payload, terms)
    started(prepared)
    prepared.do(Operation.SNAPSHOT)
    with forks._placed(2, workload, terms, pool, prepared) as copies:
        yield FORK
        burst_trial.start_all(copies)


name, last = sys.argv[1:]
[platform] = platform_registry.choose([name])
with HostSession() as host:
    launcher, _ = host.prepare(host.image(), Resources(default_cpus(), 512 << 20))
    platform_contract.prepared(platform, launcher.image)
    print(launcher.campaign, flush=True)
    for operation in live(platform, launcher, last):
        if operation == last:
            print(operation, flush=True)
    print("lived", flush=True)
