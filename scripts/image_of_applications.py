"""The image with the servers of the host tests of applications, which run where no archive is reached.

Built while other tests run, by `scripts/test`.
"""

from __future__ import annotations

import sys

from tare.campaign.host_session import image_for
from tare.errors import TareError
from tare.safe_text import say
from tare.workloads import workload_registry

#: One for each layer that `tests/workloads/test_host_applications.py` asks for.
WORKLOADS = ("build-pipeline", "mariadb-read-write", "memcached", "nginx", "postgresql", "site")


def main() -> int:
    """Build with progress on standard output."""
    try:
        image = image_for(map(workload_registry.get, WORKLOADS), lambda message: say(f"image: {message}"))
    except TareError as error:
        say(f"error: {error.what}\nfix: {error.fix or 'tare doctor'}", error=True)
        return 2
    say(f"image: {image.hash[:16]} with {len(image.manifest.packages)} packages in {image.root}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
