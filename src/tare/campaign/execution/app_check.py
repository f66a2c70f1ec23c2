"""Tries a user's application once, on one platform or several, before any campaign."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from tare.campaign.execution.preflight import available, close_all
from tare.campaign.execution.runs import Measured, run_trial
from tare.campaign.host_session import HostSession, default_cpus
from tare.campaign.instances.client import LoadClient
from tare.campaign.instances.launcher import InstanceLauncher
from tare.errors import Failed, HostError, attempt
from tare.image.image_build import Image
from tare.model import Arm, Progress, Resources
from tare.platforms import platform_contract, platform_registry
from tare.platforms.base import Platform
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
    [(_, result)] = each(workload, memory_bytes, progress, [name])
    if isinstance(result, Failed):
        raise result.error
    return result


def each(
    workload: RunWorkload, memory_bytes: int, progress: Progress, names: Sequence[str]
) -> Iterator[tuple[str, Tried | Failed]]:
    """As `once` on each of these platforms, one after the other: its name, and the result or what went wrong.

    Raises `TareError` for what concerns them all.
    """
    chosen = platform_registry.choose(names)
    with HostSession(progress) as host:
        host.callback(close_all, chosen)
        image = host.image([workload])
        launcher, client = host.prepare(image, Resources(default_cpus(), memory_bytes))
        for platform in chosen:
            yield platform.name, attempt(partial(_once, workload, platform, image, launcher, client, progress))


def _once(
    workload: RunWorkload,
    platform: Platform,
    image: Image,
    launcher: InstanceLauncher,
    client: LoadClient,
    progress: Progress,
) -> Tried:
    _, missing = available([platform], progress=progress, keep=lambda _what, _failed: None)
    for left_out in missing:
        raise HostError(f"{platform.name} does not run here: {left_out.reason}", fix=left_out.fix)
    platform_contract.prepared(platform, image)
    progress(f"starting an instance of {platform.name}")
    running = launcher.start(platform, Arm(platform.name), measured=False)
    try:
        progress("starting the application, and its load")
        return Tried(run_trial(workload, workload.profiles["quick"], running, client), image)
    finally:
        running.stop()
