from pathlib import Path

import pytest

from tare.errors import ImageError
from tare.image import guest

SHOWN = (Path(__file__).parent / "data" / "apt-cache-show-kernel.txt").read_text()


def test_the_kernels_package_is_what_the_metapackage_depends_on():
    package = guest.depends(SHOWN)
    assert package.startswith("linux-image-6.1.0-")
    assert package.endswith("-cloud-amd64")


def test_an_archive_without_it_is_said_with_the_fix():
    with pytest.raises(ImageError) as caught:
        guest.depends("")
    assert caught.value.fix
