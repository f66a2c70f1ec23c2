"""Lives through an instance's operations and says which one is to be its last: `life_victim.py PLATFORM OPERATION`."""

import sys
from collections.abc import Iterator

from tare.campaign.execution import burst_trial
from tare.campaign.execution.living import Living
from tare.campaign.host_session import HostSession, default_cpus
from tare.campaign.instances.launcher import InstanceLauncher, StartOptions
from tare.campaign.instances.pool import InstancePool
from tare.model import Arm, Resources
from tare.platforms import platform_contract, platform_registry
from tare.platforms.base import Platform
from tare.workloads.apart import Operation
from tare.workloads.life.programs import WAITS, WORKS

OPERATIONS = tuple(map(Operation, ("create", "start", "execute", "pause", "resume", "stop", "remove")))
#: What is killed and removed is restored from its snapshot.
SNAPSHOTS = tuple(map(Operation, ("create", "start", "snapshot", "kill", "restore")))
BURST = "burst"


def live(platform: Platform, launcher: InstanceLauncher, last: str) -> Iterator[str]:
    """Yield what comes next, and then do it."""
    if last == BURST:
        pool = InstancePool(platform, Arm(platform.name), launcher, print, print)
        with burst_trial.placed(4, WAITS, StartOptions(memory_bytes=192 << 20), pool) as instances:
            yield BURST
            burst_trial.start_all(instances)
        return
    living = Living.placed(platform, launcher, WORKS)
    for operation in SNAPSHOTS if last in {Operation.SNAPSHOT, Operation.RESTORE} else OPERATIONS:
        yield operation
        living.do(operation)
        if operation is Operation.KILL:
            living.carry_out(Operation.REMOVE)
            if living.life.remake is not None:
                living.life.remake()


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
