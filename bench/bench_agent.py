"""Round trip of a trivial command in a warm instance, and what an idle instance and its agent cost.

Goals: median at most 2 ms on native, runc and docker; harness and agent together at most 1 % of a core while a
workload is measured (here: while `sleep` runs, so that all CPU time seen is theirs).
"""

from __future__ import annotations

import statistics
import time

from tare.campaign.host_session import HostSession, default_cpus
from tare.campaign.plan.campaign_request import DEFAULT_MEMORY
from tare.errors import TareError
from tare.image import image_build
from tare.model import Arm, Resources
from tare.platforms import platform_registry

ROUND_TRIPS = 500
SLEEP_S = 10


def main() -> None:
    """Print a row a platform."""
    image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
    print("| platform | round trip, median | p95 | harness while a command sleeps | instance and agent |")
    print("| --- | --- | --- | --- | --- |")
    resources = Resources(default_cpus(), DEFAULT_MEMORY)
    with HostSession() as host:
        launcher, _ = host.prepare(image, resources)
        for name in ("native", "runc", "docker", "gvisor", "docker-gvisor"):
            try:
                print(row(launcher, name), flush=True)
            except TareError as error:
                print(f"| {name} | {error.what} | | | |")


def row(launcher, name) -> str:
    """Measure one platform."""
    platform = platform_registry.choose([name])[0]
    answer = platform.detect()
    if not answer.available:
        return f"| {name} | not here: {answer.reason} | | | |"
    platform.prepare(launcher.image)
    running = launcher.start(platform, Arm(name), measured=False)
    try:
        trips = []
        for _ in range(ROUND_TRIPS):
            began = time.perf_counter()
            running.session.execute(["true"], time_limit_s=30)
            trips.append((time.perf_counter() - began) * 1e3)
        harness, instance = time.process_time_ns(), running.cpu_ns()
        running.session.execute(["sleep", str(SLEEP_S)], time_limit_s=2 * SLEEP_S)
        harness, instance = time.process_time_ns() - harness, running.cpu_ns() - instance
    finally:
        running.stop()
        platform.close()
    p95 = statistics.quantiles(trips, n=20)[18]
    shares = " | ".join(f"{used / (SLEEP_S * 1e9):.3%} of a core" for used in (harness, instance))
    return f"| {name} | {statistics.median(trips):.2f} ms | {p95:.2f} ms | {shares} |"


if __name__ == "__main__":
    main()
