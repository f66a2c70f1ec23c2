"""What the telemetry costs: CPU time of a reading, and of the harness with and without it.

Goal: at most 0.5 % of a core at the default rate. Native instances that idle; the harness waits, as it does in slices.
"""

from __future__ import annotations

import contextlib
import sys
import time

from tare.campaign.host_session import HostSession, default_cpus
from tare.campaign.telemetry.sampler import INTERVAL_S, Sampler
from tare.image import image_build
from tare.model import Arm, Resources
from tare.platforms import platform_registry

SPAN_S = 20.0
INSTANCES = 5


def main() -> None:
    """Print the table."""
    image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
    resources = Resources(default_cpus(), 256 << 20)
    [platform] = platform_registry.choose(["native"])
    platform.prepare(image)
    with (
        HostSession() as host,
        contextlib.ExitStack() as running_instances,
    ):
        launcher, _ = host.prepare(image, resources)
        alive = []
        for number in range(INSTANCES):
            alive.append(launcher.start(platform, Arm("native", number), measured=False))
            running_instances.callback(alive[-1].stop)
        print("| telemetry | readings | CPU of a reading | harness's CPU, of a core |")
        print("| --- | --- | --- | --- |")
        print(f"| none | 0 | | {_harness(contextlib.nullcontext()):.3%} |")
        for interval_s in (INTERVAL_S, 0.1):
            sampler = Sampler(resources.cpus, interval_s)
            share = _harness(sampler.sampling(lambda: tuple(alive)))
            cost = sampler.cpu_ns / sampler.readings / 1e6
            print(
                f"| {1 / interval_s:.0f} Hz, {INSTANCES} instances | {sampler.readings} | {cost:.2f} ms | {share:.3%} |"
            )


def _harness(meanwhile) -> float:
    began = time.monotonic(), time.process_time()
    with meanwhile:
        time.sleep(SPAN_S)
    return (time.process_time() - began[1]) / (time.monotonic() - began[0])


if __name__ == "__main__":
    sys.exit(main())
