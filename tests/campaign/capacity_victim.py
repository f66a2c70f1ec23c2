"""Fills a host with instances of a platform and says how many there are: `capacity_victim.py PLATFORM MOST`."""

import sys

from tare.campaign.execution import capacity_trial
from tare.campaign.host_session import HostSession, default_cpus
from tare.campaign.instances.pool import InstancePool
from tare.errors import Failed
from tare.model import Arm, Resources
from tare.platforms import platform_contract, platform_registry
from tare.workloads import workload_registry as workloads

name, most = sys.argv[1], int(sys.argv[2])
[platform] = platform_registry.choose([name])
workload = workloads.get("capacity")
params = {**workload.profiles["quick"], "most": most, "fill": True}


def refuse(failed: Failed) -> None:
    raise failed.error


# What is measured is not what these tests are about.
capacity_trial.cgroup.COUNTED_S, capacity_trial.SETTLE_LOOKS = 0.3, 0

with HostSession() as host:
    launcher, _ = host.prepare(host.image(), Resources(default_cpus(), 256 << 20), prefix=20)
    platform_contract.prepared(platform, launcher.image)
    print(launcher.campaign, flush=True)

    def tell(line: str) -> None:
        print(line, flush=True)

    pool = InstancePool(platform, Arm(name), launcher, refuse, lambda _: None, published=False, progress=tell)
    try:
        result = capacity_trial.fill(workload, params, pool)
    finally:
        pool.clear()
    print(result.outputs["fill"].decode(), flush=True)
