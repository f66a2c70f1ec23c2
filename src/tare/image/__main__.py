"""``python -m tare.image``: build the image if it is missing, and print its path; ``guest``: the guests' kernel."""

import sys
from collections.abc import Sequence

from tare.errors import TareError
from tare.image import guest, image_build
from tare.safe_text import say


def main(words: Sequence[str]) -> int:
    """Build, with progress on standard output."""
    try:
        if words == ["guest"]:
            boot_files = guest.ensure()
            say(f"guest: Linux {boot_files.release} in {boot_files.kernel}")
            return 0
        image = image_build.ensure(image_build.agent_path(), progress=lambda step: say(f"image: {step}"))
    except TareError as error:
        say(f"error: {error.what}\nfix: {error.fix or 'tare doctor'}", error=True)
        return 2
    say(f"image: {image.hash[:16]} with {len(image.manifest.packages)} packages in {image.root}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
