import hashlib
import os
import tarfile
from pathlib import Path

import pytest

from tare.errors import ImageError
from tare.host import processes
from tare.image import forms, image_build


@pytest.fixture
def image(bench):
    return image_build.ensure(bench.agent, progress=bench.progress.append)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_tar_has_the_root(image):
    with tarfile.open(forms.oci_tar(image)) as archive:
        names = archive.getnames()
        agent = archive.getmember(f"./{image_build.AGENT_INSIDE}")
    assert "./etc/tare-image" in names
    assert (agent.mode, agent.uname) == (0o755, "")


def test_the_tar_is_the_same_whenever_it_is_made(image):
    tar = forms.oci_tar(image)
    first = digest(tar)
    tar.unlink()
    for folder, _, files in os.walk(image.root):
        for name in files:
            os.utime(Path(folder, name), (2e9, 2e9), follow_symlinks=False)
    assert digest(forms.oci_tar(image)) == first


def test_forms_are_made_once(image):
    tar = forms.oci_tar(image)
    modified_ns = tar.stat().st_mtime_ns
    assert forms.oci_tar(image).stat().st_mtime_ns == modified_ns


def test_ext4_is_sparse_and_has_the_root(image):
    disk = forms.ext4(image, 64 << 20)
    assert disk.stat().st_size == 64 << 20
    assert forms.disk_bytes(disk) < 32 << 20
    shown = processes.run(["debugfs", "-R", "cat /etc/tare-image", str(disk)]).require().text
    assert shown == f"{image.hash}\n"
    assert processes.run(["e2fsck", "-fn", str(disk)]).code == 0


def test_ext4_that_is_too_small_is_said_before(image):
    with pytest.raises(ImageError, match="0 MiB do not hold the image"):
        forms.ext4(image, 4096)
    assert not list(image.root.parent.glob("*.ext4"))


def test_a_form_that_fails_leaves_no_half(image, monkeypatch):
    real = processes.run

    def broken(argv, **options):
        done = real(argv, **options)
        return processes.Finished(done.argv, 2, b"", b"tar: write error: No space left\n", 1)

    monkeypatch.setattr(processes, "run", broken)
    with pytest.raises(ImageError, match="No space left"):
        forms.oci_tar(image)
    assert not list(image.root.parent.glob("root.tar*")) + list(image.root.parent.glob("*.part"))


def test_disk_bytes_counts_a_file_with_two_names_once(tmp_path):
    (tmp_path / "a").write_bytes(os.urandom(1 << 20))
    before = forms.disk_bytes(tmp_path)
    os.link(tmp_path / "a", tmp_path / "b")
    assert before >= 1 << 20
    assert forms.disk_bytes(tmp_path) == before
