"""Starts instances of a platform until it is killed: `python -m tare.contract.victim NAME`. For the check of kills."""

from __future__ import annotations

import sys

from tare.campaign import ground
from tare.clean import say
from tare.image import build
from tare.model import Arm, Resources
from tare.platforms import contract, registry

MEMORY = 512 << 20


def main(name: str) -> None:
    """Print the campaign's label, and start and stop instances without end."""
    image = build.ensure(build.agent_path(), progress=lambda _: None)
    [platform] = registry.choose([name])
    resources = Resources(ground.default_cpus(), MEMORY)
    with ground.sole_campaign(), ground.prepared(image, resources, None) as (nursery, _):
        contract.prepared(platform, image)
        say(nursery.campaign)
        while True:
            nursery.start(platform, Arm(platform.name), measured=True).stop()


if __name__ == "__main__":
    main(sys.argv[1])
