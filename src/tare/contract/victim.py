"""Starts instances of a platform until it is killed (by `kill`): `python -m tare.contract.victim NAME`."""

from __future__ import annotations

import sys

from tare.campaign.host_session import HostSession, default_cpus
from tare.model import Arm, Resources
from tare.platforms import platform_contract, platform_registry
from tare.safe_text import say

MEMORY = 512 << 20


def main(name: str) -> None:
    """Print the label of the instances, then start and stop instances without end."""
    [platform] = platform_registry.choose([name])
    with HostSession() as host:
        image = host.image()
        launcher, _ = host.prepare(image, Resources(default_cpus(), MEMORY))
        platform_contract.prepared(platform, image)
        say(launcher.campaign)
        while True:
            launcher.start(platform, Arm(platform.name), measured=True).stop()


if __name__ == "__main__":
    main(sys.argv[1])
