"""Tries a user's application once, on native, before any campaign."""

from __future__ import annotations

from dataclasses import dataclass

from tare.campaign.execution.runs import Measured, run_trial
from tare.campaign.host_session import HostSession, default_cpus
from tare.image.build import Image
from tare.model import Arm, Progress, Resources
from tare.platforms import contract, registry
from tare.workloads.base import RunWorkload

PLATFORM = "native"


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of the run that `once` made: what was measured, and the image that it ran in."""

    measured: Measured
    image: Image


def once(workload: RunWorkload, memory_bytes: int, progress: Progress, name: str = PLATFORM) -> Tried:
    """Run a workload once in an instance of a platform with this much memory, as a campaign does.

    Raises `TareError`.
    """
    (platform,) = registry.choose([name])
    with HostSession(progress) as host:
        image = host.image([workload])
        launcher, client = host.prepare(image, Resources(default_cpus(), memory_bytes))
        contract.prepared(platform, image)
        progress(f"starting an instance of {name}")
        running = launcher.start(platform, Arm(platform.name), measured=False)
        try:
            progress("starting the application, and its load")
            return Tried(run_trial(workload, workload.profiles["quick"], running, client), image)
        finally:
            running.stop()
