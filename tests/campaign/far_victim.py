"""Has a client on another machine and an instance of runc until it is killed: `far_victim.py CLIENT`."""

import sys
import time

from tare.campaign.host_session import HostSession, default_cpus
from tare.model import Arm, Resources
from tare.platforms import platform_contract, platform_registry
from tare.safe_text import say


def main(client):
    """Print the label, and wait."""
    [platform] = platform_registry.choose(["runc"])
    with HostSession() as host:
        image = host.image()
        launcher, _ = host.prepare(image, Resources(default_cpus(), 512 << 20), client=client)
        platform_contract.prepared(platform, image)
        launcher.start(platform, Arm("runc"), measured=False)
        say(launcher.campaign)
        time.sleep(600)


if __name__ == "__main__":
    main(sys.argv[1])
