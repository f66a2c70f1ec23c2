import gzip
import lzma
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


def test_without_apt_the_kernel_is_taken_from_where_one_was_put_or_it_is_said_how_to(tmp_path, monkeypatch):
    monkeypatch.setattr(guest.processes, "find", lambda _: None)
    with pytest.raises(ImageError, match="this host has no apt-get") as caught:
        guest._kernel(tmp_path)
    assert f"linux-image-* to {tmp_path}" in caught.value.fix
    (tmp_path / "linux-image-6.1.0-25-cloud-amd64").mkdir()
    assert guest._kernel(tmp_path).name == "linux-image-6.1.0-25-cloud-amd64"
    (tmp_path / "linux-image-6.1.0-9-cloud-amd64").mkdir()
    assert guest._kernel(tmp_path).name == "linux-image-6.1.0-25-cloud-amd64", "the newest, and not the last by text"
    (tmp_path / "linux-image-6.12.5-1-cloud-amd64").mkdir()
    assert guest._kernel(tmp_path).name == "linux-image-6.12.5-1-cloud-amd64"


@pytest.mark.parametrize("suffix", ["", ".xz"])
def test_a_guest_gets_its_modules_packed_by_the_distribution_or_not(tmp_path, suffix):
    """Debian 13's kernels have them packed (``virtio_blk.ko.xz``), and no insmod of busybox's unpacks them."""
    module = b"\x7fELF" + bytes(range(256))
    drivers = tmp_path / "kernel" / "lib" / "modules" / "6.12" / "kernel" / "drivers"
    drivers.mkdir(parents=True)
    for name in ("virtio_blk", "xen-blkfront"):
        (drivers / f"{name}.ko{suffix}").write_bytes(lzma.compress(module) if suffix else module)
    modules = ["virtio_ring", "virtio_blk", "xen-blkfront"]  # the first is built in
    initramfs = guest._initramfs(tmp_path, tmp_path / "kernel", "6.12", modules, b"#!init")
    packed = gzip.decompress(initramfs.read_bytes())
    assert packed.count(module) == 2
    assert b"modules/virtio_blk.ko\0" in packed
    assert b"virtio_blk\nxen-blkfront\n" in packed
