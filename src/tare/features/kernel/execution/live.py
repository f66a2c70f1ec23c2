"""Surfaces of running instances, started one after the other in a host session like a campaign's."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tare.campaign.host_session import HostSession, default_cpus
from tare.campaign.instances.launcher import InstanceLauncher
from tare.campaign.plan.campaign_request import ALL
from tare.errors import Failed, HostError, TareError, UsageError, attempt
from tare.features.kernel.exchange.count_request import SurfaceRequest
from tare.features.kernel.exchange.result import SurfaceResult
from tare.features.kernel.execution.count_setup import SiteRequest, opened
from tare.features.kernel.surface.surface import Reader
from tare.footprint_model import Surface
from tare.host.kernel import process_table
from tare.image.image_build import Image
from tare.model import Arm, Progress, Resources
from tare.platforms import platform_contract, platform_registry
from tare.platforms.base import Instance, Platform
from tare.store import LeftOut

MEMORY = 512 << 20


@dataclass(frozen=True, slots=True)
class SurfaceReading:
    """A platform's surface, or the reason why it is missing."""

    platform: str
    surface: Surface | None
    reason: str = ""
    fix: str = ""


def surfaces(platforms: Sequence[Platform], progress: Progress) -> Iterator[SurfaceReading]:
    """Yield the surface of one instance of each platform, read after its first command while it waits for the next.

    A platform that does not run here, or has no process on this host, yields the reason instead. Raises `HostError` if
    nothing can be started at all.
    """
    reader = Reader()
    with HostSession(progress) as host:
        image = host.image()
        launcher, _ = host.prepare(image, Resources(default_cpus(), MEMORY))
        for platform in platforms:
            progress(f"looking for {platform.name}")
            outcome = attempt(partial(_reading, reader, platform, image, launcher, progress))
            attempt(platform.close)  # Nothing was started, so close cannot leave anything.
            yield _no_reading(platform, outcome) if isinstance(outcome, Failed) else outcome


def _reading(
    reader: Reader, platform: Platform, image: Image, launcher: InstanceLauncher, progress: Progress
) -> SurfaceReading:
    answer = platform_contract.detected(platform)
    if not answer.available:
        return SurfaceReading(platform.name, None, answer.reason, answer.fix)
    platform_contract.prepared(platform, image)
    return SurfaceReading(platform.name, _started(reader, platform, launcher, progress))


def _no_reading(platform: Platform, failed: Failed) -> SurfaceReading:
    error = failed.error
    if isinstance(error, TareError):
        return SurfaceReading(platform.name, None, error.what, error.fix or "")
    return SurfaceReading(platform.name, None, failed.reason)


def into(file: Path, names: Sequence[str], progress: Progress, agreed: str = "") -> Iterator[SurfaceReading]:
    """Read the surfaces of the named platforms (default: the usual ones) and of the baseline into a campaign file.

    Yields a reading for each platform, like `surfaces`.

    The file may be new or existing (`tare.features.kernel.execution.count_setup`). ``agreed``: see
    `tare.campaign.execution.provenance.require_added`. Raises `TareError`.
    """
    reader = Reader()
    left_out: list[LeftOut] = []
    wanted = SiteRequest("surface", file, secrets.randbelow(2**31), names, agreed=agreed)
    with opened(wanted, progress, left_out.append) as site:
        for missing in left_out:
            yield SurfaceReading(missing.platform, None, missing.reason, missing.fix or "")
        for ready in site.ready:
            surface = attempt(partial(_started, reader, ready.platform, site.launcher, progress))
            if isinstance(surface, Failed):
                reading = _no_reading(ready.platform, surface)
                site.store.add_event("warning", f"no surface of {ready.platform.name}: {reading.reason}")
                yield reading
            else:
                site.store.add_surface(surface)
                yield SurfaceReading(ready.platform.name, surface)


def _started(reader: Reader, platform: Platform, launcher: InstanceLauncher, progress: Progress) -> Surface:
    progress(f"starting {platform.name}")
    running = launcher.start(platform, Arm(platform.name), measured=False)
    try:
        progress(f"reading the filters of {platform.name}")
        surface = _read(reader, platform, running.instance)
        if platform.has_agent:
            # Fails if the instance has ended, in which case only its daemon's helpers were read.
            running.session.ping()
        return surface
    finally:
        running.stop()


def _read(reader: Reader, platform: Platform, instance: Instance) -> Surface:
    if not instance.accounted:  # Its processes here (a client, a tool) do nothing for its tenant.
        raise HostError(f"{platform.name} does not run on this host's kernel: a hypervisor or another machine runs it")
    return reader.surface(platform.name, instance.host_processes)


def of_processes(pids: Sequence[int], progress: Progress) -> Iterator[SurfaceReading]:
    """Yield the surface of each running process, with all its descendants. Raises `UsageError`."""
    reader = Reader()
    for pid in pids:
        name = f"pid {pid}"
        if not Path(f"/proc/{pid}").exists():
            raise UsageError(f"there is no process {pid}", fix="name one that runs, by its id on this host")
        progress(f"reading the filters of {name}")
        try:
            yield SurfaceReading(name, reader.surface(name, partial(process_table.descendants, [pid])))
        except TareError as error:
            yield SurfaceReading(name, None, error.what, error.fix or "")


def carry_out(request: SurfaceRequest, progress: Progress, agreed: str = "") -> SurfaceResult:
    """Read all requested surfaces. ``agreed``: as for `into`.

    Raises `TareError` if nothing can be read at all.
    """
    request.check()
    if request.pids:
        readings = of_processes(request.pids, progress)
    elif request.file is not None:
        readings = into(request.file, request.platforms, progress, agreed)
    else:
        readings = surfaces(_chosen(request.platforms), progress)
    surfaces_read: list[Surface] = []
    left_out: list[LeftOut] = []
    for reading in readings:
        if reading.surface is not None:
            surfaces_read.append(reading.surface)
        else:
            left_out.append(LeftOut(platform=reading.platform, reason=reading.reason, fix=reading.fix or None))
    return SurfaceResult(tuple(surfaces_read), tuple(left_out))


def _chosen(names: Sequence[str]) -> list[Platform]:
    if names and list(names) != [ALL]:
        return platform_registry.choose(names)
    return [platform for platform in platform_registry.all_platforms().values() if names or platform.by_default]
