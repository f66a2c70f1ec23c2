"""The confinement of a running instance: read inside, by the agent, and outside, of its process on this host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tare.campaign.instances.launcher import RunningInstance
from tare.host.facts import posture
from tare.platforms.base import AGENT, Platform
from tare.session import Refused

INSIDE, OUTSIDE, MITIGATIONS = "security inside", "security outside", "mitigations inside"
BESIDE = "security beside"
LIMIT_S = 10.0


def facts(platform: Platform, running: RunningInstance) -> dict[str, Any]:
    """For the manifest: `INSIDE` and `OUTSIDE` as `posture.of_files` has them, and a guest's kernel's `MITIGATIONS`.

    `BESIDE`: the same of programs that serve its devices (`posture.DEVICES`), by their names.

    What cannot be had is left out: inside a black box there is no agent, and of another machine nothing is outside.
    """
    name = f"tare-{running.instance.spec.id}"
    by_name: dict[str, Any] = {}
    if platform.has_agent:
        argv = posture.show_argv(mitigations=platform.own_kernel)
        try:
            printed = running.session.execute(argv, time_limit_s=LIMIT_S).stdout
        except Refused:  # an application's own image need not have a shell
            printed = b""
        shown = posture.parse_shown(printed.decode(errors="replace"))
        files = {path.removeprefix("/proc/self/"): text for path, text in shown.items()}
        if files:
            by_name[INSIDE] = posture.of_files(files, name)
        mitigations = {
            Path(path).name: text for path, text in shown.items() if path.startswith(f"{posture.MITIGATIONS}/") and text
        }
        if mitigations:
            by_name[MITIGATIONS] = mitigations
    if not platform.elsewhere:
        pids = running.instance.host_processes()
        pid = posture.foremost(pids, Path(AGENT).name)
        outside = {} if pid is None else posture.of_process(pid, name)
        if outside:
            by_name[OUTSIDE] = outside
        beside = posture.beside(pids)
        if beside:
            by_name[BESIDE] = beside
    return by_name
