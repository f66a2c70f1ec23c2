"""Live instances of platforms to look at, one after the other, on ground as a campaign has it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tare.campaign import ground
from tare.campaign.instances import Nursery
from tare.errors import Failed, HostError, TareError, UsageError, attempt
from tare.footprint.model import Surface
from tare.footprint.record import keep_surface
from tare.footprint.site import Wish, opened
from tare.footprint.surface import Reader
from tare.image import build
from tare.image.build import Image
from tare.model import Arm, Resources
from tare.platforms import contract
from tare.platforms.base import Instance, Platform
from tare.platforms.parts.helpers import processes_by_pid
from tare.store.record import LeftOut

MEMORY = 512 << 20
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Looked:
    """A platform's surface; or, where there is none, why not."""

    platform: str
    surface: Surface | None
    reason: str = ""
    fix: str = ""


def surfaces(platforms: Sequence[Platform], progress: Progress) -> Iterator[Looked]:
    """The surface of one instance of each, which has run a first command and waits for the next.

    What does not run here, or has nothing on this host to look at, is told with the reason. Raises `HostError` where
    nothing can be started at all.
    """
    reader = Reader()
    image = build.ensure(build.agent_path(), progress=progress)
    resources = Resources(ground.default_cpus(), MEMORY)
    with ground.sole_campaign(), ground.prepared(image, resources, None) as (nursery, _):
        for platform in platforms:
            progress(f"looking for {platform.name}")
            looked = attempt(partial(_looked, reader, platform, image, nursery, progress))
            attempt(platform.close)  # nothing was started that could stay
            yield _not_looked(platform, looked) if isinstance(looked, Failed) else looked


def _looked(reader: Reader, platform: Platform, image: Image, nursery: Nursery, progress: Progress) -> Looked:
    answer = contract.detected(platform)
    if not answer.available:
        return Looked(platform.name, None, answer.reason, answer.fix)
    contract.prepared(platform, image)
    return Looked(platform.name, _started(reader, platform, nursery, progress))


def _not_looked(platform: Platform, failed: Failed) -> Looked:
    error = failed.error
    if isinstance(error, TareError):
        return Looked(platform.name, None, error.what, error.fix or "")
    return Looked(platform.name, None, failed.reason)


def into(file: Path, names: Sequence[str], progress: Progress) -> Iterator[Looked]:
    """The same of platforms by name (none: the usual ones) and of the baseline, each kept in a campaign's file at once.

    The file is a new one, or one that is there (`tare.footprint.site`). Raises `TareError`.
    """
    reader = Reader()
    left_out: list[LeftOut] = []
    with opened(Wish("surface", file, secrets.randbelow(2**31), names), progress, left_out.append) as site:
        for missing in left_out:
            yield Looked(missing.platform, None, missing.reason, missing.fix or "")
        for one in site.ready:
            surface = attempt(partial(_started, reader, one.platform, site.nursery, progress))
            if isinstance(surface, Failed):
                looked = _not_looked(one.platform, surface)
                site.store.add_event("warning", f"no surface of {one.platform.name}: {looked.reason}")
                yield looked
            else:
                keep_surface(site.store, surface)
                yield Looked(one.platform.name, surface)


def _started(reader: Reader, platform: Platform, nursery: Nursery, progress: Progress) -> Surface:
    progress(f"starting {platform.name}")
    live = nursery.start(platform, Arm(platform.name), measured=False)
    try:
        progress(f"reading the filters of {platform.name}")
        return _read(reader, platform, live.instance)
    finally:
        live.stop()


def _read(reader: Reader, platform: Platform, instance: Instance) -> Surface:
    if not instance.accounted:  # what of it is here (a client, a tool) does nothing for its tenant
        raise HostError(f"{platform.name} does not run on this host's kernel: a hypervisor or another machine runs it")
    return reader.surface(platform.name, instance.host_processes())


def running(pids: Sequence[int], progress: Progress) -> Iterator[Looked]:
    """The surface of each process that runs already, with all that descend from it. Raises `UsageError`."""
    reader = Reader()
    for pid in pids:
        name = f"pid {pid}"
        if not Path(f"/proc/{pid}").exists():
            raise UsageError(f"there is no process {pid}", fix="name one that runs, by its id on this host")
        progress(f"reading the filters of {name}")
        try:
            yield Looked(name, reader.surface(name, family(pid)))
        except TareError as error:
            yield Looked(name, None, error.what, error.fix or "")


def family(pid: int) -> list[int]:
    """A process and all that descend from it; what its ended children started is no longer known to be its own."""
    children: dict[int, list[int]] = {}
    for other, seen in processes_by_pid().items():
        children.setdefault(seen.parent, []).append(other)
    found, todo = [], [pid]
    while todo:
        one = todo.pop()
        found.append(one)
        todo += children.get(one, [])
    return sorted(found)
