"""Lives through an instance's operations and says which one is to be its last: `life_victim.py PLATFORM OPERATION`."""

import sys

from tare.campaign.execution.living import Living
from tare.campaign.host_session import HostSession, default_cpus
from tare.model import Resources
from tare.platforms import contract, registry
from tare.workloads.apart import Operation
from tare.workloads.life.programs import WORKS

OPERATIONS = tuple(map(Operation, ("create", "start", "execute", "pause", "resume", "stop", "remove")))
name, last = sys.argv[1], Operation(sys.argv[2])
[platform] = registry.choose([name])
with HostSession() as host:
    launcher, _ = host.prepare(host.image(), Resources(default_cpus(), 512 << 20))
    contract.prepared(platform, launcher.image)
    print(launcher.campaign, flush=True)
    living = Living.placed(platform, launcher, WORKS)
    for operation in OPERATIONS:
        if operation is last:
            print(operation, flush=True)
        living.do(operation)
    print("lived", flush=True)
