"""Copies of files and folders."""

import os

import pytest

from tare.errors import HostError
from tare.host.filesystems.disk_copies import copy


@pytest.mark.parametrize("target", ["copy", "into"])
def test_a_copy_is_as_what_it_is_of_and_not_a_link_to_it(tmp_path, target):
    folder = tmp_path / "on another disk"
    folder.mkdir()
    (folder / "file").write_text("text")
    (folder / "file").chmod(0o600)
    os.utime(folder / "file", (1, 1))
    (folder / "link").symlink_to("file")
    (tmp_path / "image").symlink_to(folder)
    (tmp_path / "into").mkdir()
    copy(tmp_path / "image", tmp_path / target)
    made = tmp_path / target / "image" if target == "into" else tmp_path / target
    assert not made.is_symlink()
    assert (made / "file").read_text() == "text"
    assert (made / "link").is_symlink(), "what is in it stays as it is"
    status = (made / "file").stat()
    assert (status.st_mode & 0o777, status.st_mtime, status.st_nlink) == (0o600, 1, 1)


def test_holes_take_no_space_in_a_copy(tmp_path):
    (tmp_path / "disk").touch()
    os.truncate(tmp_path / "disk", 1 << 30)
    (tmp_path / "into").mkdir()
    copy(tmp_path / "disk", tmp_path / "into")
    assert (tmp_path / "into" / "disk").stat().st_blocks < 2048


def test_what_cannot_be_copied_is_told_with_the_fix(tmp_path, monkeypatch):
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    with pytest.raises(HostError, match="cp") as caught:
        copy(tmp_path / "none", tmp_path / "copy")
    assert caught.value.fix == f"free some space below {tmp_path}/home"
