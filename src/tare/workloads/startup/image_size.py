"""The image's size on the host's disk in the form that a platform runs, and unpacked.

Plauth 2017, 5.1: the actual use of the disk, as du(1) reports it, since disk images are sparse. ``disk`` is that of the
form (folder, ext4 file, layers in a daemon's store) and, where a guest boots, of its kernel and initramfs: what the
platform needs beside its own programs. ``unpacked`` is the length of all files in the image, which is the same for all
platforms that run the image. No instance is started, and every block has the same figures: two blocks are enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tare.errors import ParseError
from tare.model import Direction, Family, Metric
from tare.workloads.apart import ImageSizes, ImageWorkload
from tare.workloads.base import Params

MIB = 2**20


class ImageSize(ImageWorkload):
    """No parameters."""

    name = "image-size"
    title = "what the image takes on the disk, in the platform's form"
    family = Family.STARTUP
    metrics = (
        Metric("disk", "MiB", Direction.LOWER, "disk space that the platform's form of the image really takes"),
        Metric("unpacked", "MiB", Direction.LOWER, "length of all files in the image"),
    )
    work_unit = "image"
    profiles: ClassVar[Mapping[str, Params]] = {"quick": {}, "full": {}}

    def read(self, sizes: ImageSizes) -> dict[str, float]:
        figures = {"disk": sizes.disk} | ({} if sizes.unpacked is None else {"unpacked": sizes.unpacked})
        for name, value in figures.items():
            if value <= 0:
                raise ParseError(f"{name} of the image is {value} bytes")
        return {name: value / MIB for name, value in figures.items()}


WORKLOAD = ImageSize()
