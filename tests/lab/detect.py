"""In a lab: says as JSON what the named platforms answer."""

import dataclasses
import json
import sys

from tare.platforms import platform_registry

print(
    json.dumps(
        {platform.name: dataclasses.asdict(platform.detect()) for platform in platform_registry.choose(sys.argv[1:])},
        default=dict,
    )
)
