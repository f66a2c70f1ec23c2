"""Each operation of a life on each platform, once: how long it took, in ms, or why it is unsupported or failed.

The table "Operations by platform" of docs/life.md is of such runs. Arguments: platforms; by default those that run on
most hosts. An engine that is to be restarted is one of tare's own; one of `scripts/with-dockerd` is not.
"""

from __future__ import annotations

import contextlib
import sys
from functools import partial

from tare.campaign.execution.own_instances import run_apart
from tare.campaign.host_session import HostSession, default_cpus
from tare.campaign.instances.client import LoadClient
from tare.campaign.instances.launcher import InstanceLauncher
from tare.campaign.instances.pool import InstancePool
from tare.campaign.plan.campaign_request import DEFAULT_MEMORY
from tare.contract.leftovers import left_on_host
from tare.errors import Failed, attempt
from tare.image import image_build
from tare.model import Arm, Resources
from tare.platforms import platform_contract, platform_registry
from tare.platforms.base import Platform
from tare.workloads import workload_registry

NAMES = (
    *("native", "runc", "crun", "gvisor", "docker", "podman", "lxc", "lxd", "containerd", "containerd-cri"),
    *("nspawn", "bubblewrap", "charliecloud", "qemu-tcg", "libvirt-qemu-tcg", "uml"),
)
#: By workload: its parameters, and the metrics that are shown by the head of their column.
SHOWN = {
    "whole-life": (
        {"time_s": 0},
        {"create": "create", "start": "start", "execute": "exec", "stop": "stop", "remove": "remove", "whole": "whole"},
    ),
    "kill": ({"time_s": 0}, {"gone": "kill"}),
    "pause": ({"time_s": 1}, {"pause": "pause", "resume": "resume"}),
    "snapshot-64": ({"time_s": 0, "memory_mib": 384}, {"snapshot": "snapshot", "first-command": "restore"}),
    "fork": ({"most": 4, "memory_mib": 384}, {"each-4": "fork, 4"}),
    "burst": ({"most": 4, "starts": 1, "memory_mib": 192}, {"p50-4": "burst, 4"}),
    "engine-restart": ({"running": 1}, {"restart": "engine-restart"}),
}
HEADS = [head for _, heads in SHOWN.values() for head in heads.values()]


def main() -> None:
    """Print a row a platform, and below them the reasons of empty cells."""
    image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
    print(f"| | {' | '.join(HEADS)} |\n|{' --- |' * (len(HEADS) + 1)}")
    reasons: dict[str, str] = {}
    with HostSession() as host:
        launcher, client = host.prepare(image, Resources(default_cpus(), DEFAULT_MEMORY))
        for name in sys.argv[1:] or NAMES:
            [platform] = platform_registry.choose([name])
            with contextlib.closing(platform):
                cells = row(platform, launcher, client, reasons)
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
    for what, why in reasons.items():
        print(f"{what}: {why}")


def row(platform: Platform, launcher: InstanceLauncher, client: LoadClient, reasons: dict[str, str]) -> list[str]:
    """Return a cell an operation; ``reasons`` gets why one has no figure, by platform and workload."""
    available = platform_contract.detected(platform)
    if not available.available:
        reasons[platform.name] = available.reason
        return [""] * len(HEADS)
    platform_contract.prepared(platform, launcher.image)
    cells = []
    for name, (params, heads) in SHOWN.items():
        pool = InstancePool(platform, Arm(platform.name), launcher, print, print)
        workload = workload_registry.get(name)
        done = attempt(partial(run_apart, workload, params, pool, client))
        if isinstance(done, Failed):
            reasons[f"{platform.name}, {name}"] = f"{type(done.error).__name__}: {done.reason}"
            cells += [""] * len(heads)
            continue
        values: dict[str, list[float]] = {}
        for sample in done.samples:
            values.setdefault(sample.metric, []).append(sample.value)
        cells += [f"{values[metric][0]:,.0f}" if metric in values else "" for metric in heads]
        for lost, text in done.outputs.items():
            reasons[f"{platform.name}, {name}, {lost}"] = text.decode()
    if left := left_on_host(f"{launcher.campaign}x"):
        reasons[f"{platform.name}, left on the host"] = str(left)
    return cells


if __name__ == "__main__":
    main()
