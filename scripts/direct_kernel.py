"""Builds the kernel of microVMs that boot without an initramfs, once: half an hour of two processors, on a Debian host.

    .venv/bin/python scripts/direct_kernel.py

Prints the folder that it is in (`tare.image.guest.direct_folder`).
"""

from __future__ import annotations

import sys

from tare.errors import TareError
from tare.features.kernel.lab import direct_kernel

if __name__ == "__main__":
    try:
        print(direct_kernel.ensure(lambda text: print(text, file=sys.stderr, flush=True)))
    except TareError as error:
        sys.exit(f"error: {error}")
