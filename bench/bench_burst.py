"""Bursts of up to 64 starts: their times, the share that succeeded, and what is left on the host afterwards.

Arguments: platforms (docker and gvisor), and before them the largest burst, where it is another than 64.
"""

from __future__ import annotations

import sys

from tare.campaign.execution.own_instances import run_apart
from tare.campaign.host_session import HostSession, default_cpus
from tare.campaign.instances.pool import InstancePool
from tare.campaign.plan.campaign_request import DEFAULT_MEMORY
from tare.contract.leftovers import left_on_host
from tare.image import image_build
from tare.model import Arm, Resources
from tare.platforms import platform_contract, platform_registry
from tare.workloads.life.burst import AtOnce

BURST = AtOnce()
METRICS = ("p50", "p95", "ok", "total", "cpu")


def main() -> None:
    """Print a row a platform and number."""
    most = int(sys.argv.pop(1)) if sys.argv[1:] and sys.argv[1].isdigit() else 64
    params = {"most": most, "starts": 1, "memory_mib": 192}
    image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
    print("| platform | starts | p50, ms | p95, ms | ok, % | all, ms | CPU, s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    with HostSession() as host:
        launcher, client = host.prepare(image, Resources(default_cpus(), DEFAULT_MEMORY))
        for name in sys.argv[1:] or ("docker", "gvisor"):
            [platform] = platform_registry.choose([name])
            platform_contract.detected(platform)
            platform_contract.prepared(platform, launcher.image)
            pool = InstancePool(platform, Arm(name), launcher, print, print)
            result = run_apart(BURST, params, pool, client)
            platform.close()
            figures = {sample.metric: sample.value for sample in result.samples}
            for count in sorted(set(BURST.sizes(params))):
                shown = (figures.get(f"{metric}-{count}") for metric in METRICS)
                cells = " | ".join("" if value is None else f"{value:.1f}" for value in shown)
                print(f"| {name} | {count} | {cells} |", flush=True)
            print(
                f"{name}: knee {figures.get('knee', 'none')}; left on the host: {left_on_host(launcher.campaign + 'x')}"
            )
            for output, text in result.outputs.items():
                print(f"{output}: {text.decode()[:400]}")


if __name__ == "__main__":
    main()
