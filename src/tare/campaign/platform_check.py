"""Tries platforms as a campaign starts them: an instance of each is made, its agent speaks, and it is removed.

What `Platform.detect` finds out is less: that programs and daemons are there, and that some sandbox of them runs. Here
it is the platform's own `prepare` and `launch`, with all that a campaign has around them, on a root of some megabytes
(`tare.image.minimal_root`) that stays nowhere.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tare.campaign.host_session import HostSession, default_cpus
from tare.campaign.instances import instance_posture
from tare.campaign.instances.launcher import InstanceLauncher, StartOptions
from tare.host import state
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.image import image_build, minimal_root
from tare.model import Arm, Resources
from tare.platforms import platform_contract
from tare.platforms.base import Platform

MEMORY = 512 << 20
#: A sandbox that has sent nothing after this time does not run here.
START_LIMIT_S = 20.0


@dataclass(frozen=True, slots=True)
class Tryout:
    """The host as a campaign has it, with a root that is made for tryouts alone."""

    launcher: InstanceLauncher
    cleanup: CleanupStack  # of what platforms keep of the root
    #: Platforms share forms of the root and engines' stores: two that prepared at once would make the same twice.
    preparing: threading.Lock = field(default_factory=threading.Lock)

    def run(self, platform: Platform) -> dict[str, Any]:
        """Start an instance until its first command has run, and remove it; returns what keeps it in (`posture`).

        Raises what the platform raises, and `HostError` for what cannot be removed. Several threads may do so at once.
        """
        image = self.launcher.image
        with self.preparing:
            self.cleanup.own(*platform.kept(image))
            platform_contract.prepared(platform, image)
        terms = StartOptions(start_limit_s=START_LIMIT_S * platform.start_limit_factor)
        running = self.launcher.start(platform, Arm(platform.name), measured=False, terms=terms)
        try:
            return instance_posture.facts(platform, running)
        finally:
            running.stop()


def why_not(platform: Platform) -> str:
    """Return why a platform's start is not tried, as the rest of a sentence; "" where it is."""
    if platform.elsewhere:
        return "it is on another machine"
    if platform.own_kernel:
        return "a guest's start may take long"
    if not (platform.same_bits and platform.has_agent):
        return "it does not run tare's image"
    return platform.untried


@contextlib.contextmanager
def ready() -> Iterator[Tryout]:
    """Provide the host as a campaign has it, while the context lasts. Raises `HostError`, `ImageError`."""
    agent = image_build.agent_path()
    with HostSession() as host:
        folder = state.work() / f"tryout{secrets.token_hex(3)}"
        cleanup = host.enter_context(CleanupStack())
        cleanup.own(removers.folder(folder))
        folder.mkdir()
        launcher, _ = host.prepare(minimal_root.make(agent, folder), Resources(default_cpus(), MEMORY))
        yield Tryout(launcher, cleanup)
