"""``python -m tare.image``: build the image, or say that it is there."""

import sys

from tare.errors import TareError
from tare.image import build


def main() -> int:
    """Build with progress on standard output."""
    try:
        image = build.ensure(build.agent_path(), progress=lambda what: print(f"image: {what}", flush=True))  # noqa: T201
    except TareError as error:
        print(f"error: {error.what}\nfix: {error.fix or 'tare doctor'}", file=sys.stderr)  # noqa: T201
        return 2
    print(f"image: {image.hash[:16]} with {len(image.manifest.packages)} packages in {image.root}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
