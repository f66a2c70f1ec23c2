"""The surroundings of a running instance's programs, for the manifest: read inside, by the agent, and of this host."""

from __future__ import annotations

import platform as python
from collections.abc import Iterable, Mapping
from typing import Any

from tare.campaign.instances.launcher import RunningInstance
from tare.errors import Failed, attempt
from tare.host.facts import environment, posture
from tare.host.kernel import settings
from tare.model import Family
from tare.platforms.base import Platform
from tare.session import Refused

HUGE_PAGES, SCHEDULER, IO_SCHEDULER = "huge pages inside", "cpu scheduler", "i/o scheduler of /data"
SOCKETS = "socket limits inside"
#: Settings that a host may change before a campaign continues.
SETTINGS = frozenset({HUGE_PAGES, IO_SCHEDULER, SOCKETS})
LIMIT_S = 10.0


def facts(platform: Platform, running: RunningInstance) -> dict[str, Any]:
    """Return the facts by name; none inside a black box, and none where a user's own image has no shell.

    A sandbox without a kernel of its own has the host's schedulers, whatever it shows.
    """
    if not platform.has_agent:
        return {}
    files = _shown(running, environment.FILES)
    mounts = files.get(environment.MOUNTS, "")
    of_mounts = attempt(lambda: environment.of_mounts(mounts))
    if isinstance(of_mounts, Failed):  # what a guest shows may be anything
        return {}
    own_kernel = platform.own_kernel or platform.elsewhere
    ext = files.get(environment.EXT_SCHEDULER, "")
    kernel = running.session.hello.kernel if own_kernel else python.release()
    return {
        HUGE_PAGES: settings.choice(files.get(environment.HUGE_PAGES, "")) or environment.UNKNOWN,
        SCHEDULER: environment.scheduler(kernel, ext if own_kernel else environment.host_ext_scheduler()),
        IO_SCHEDULER: _inside(running, mounts)
        if own_kernel
        else environment.io_scheduler(running.instance.spec.space.data),
        SOCKETS: environment.sockets(files),
        **of_mounts,
    }


def remarks(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return what figures of a family are to be read with, by the family, from a platform's manifest."""
    if manifest.get(environment.FSYNC) != environment.IGNORED:
        return {}
    text = "its root's overlay is mounted volatile: a program that syncs outside /data waits for no disk"
    return {Family.STORAGE: text, Family.APPLICATION: text}


def _inside(running: RunningInstance, mounts: str) -> str:
    device = environment.data_device(mounts)
    if device is None:
        return environment.UNKNOWN
    shown = _shown(running, environment.io_scheduler_files(device))
    return next((settings.choice(text) for text in shown.values() if text), environment.UNKNOWN)


def _shown(running: RunningInstance, places: Iterable[str]) -> dict[str, str]:
    try:
        printed = running.session.execute(environment.show(places), time_limit_s=LIMIT_S).stdout
    except Refused:  # a user's own image need not have a shell
        return {}
    return posture.parse_shown(printed.decode(errors="replace"))
