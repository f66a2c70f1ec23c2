import os
from pathlib import Path

import pytest

from tare.errors import HostError
from tare.host import state

MOUNTS = (Path(__file__).parent / "data" / "mountinfo").read_text()


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    monkeypatch.setenv("TARE_HOME", str(folder))
    return folder


def test_home_is_made_for_its_owner_alone(home):
    assert state.home() == home
    assert home.stat().st_mode & 0o777 == 0o700


def test_folders_below_are_made_when_they_are_asked_for(home):
    assert [state.images(), state.work(), state.journal()] == [home / "images", home / "work", home / "journal"]
    assert state.images().is_dir()


def test_without_a_setting_it_is_the_system_s(monkeypatch, tmp_path):
    monkeypatch.delenv("TARE_HOME", raising=False)
    monkeypatch.setattr(state, "DEFAULT_HOME", tmp_path / "var")
    assert state.home() == tmp_path / "var"


def test_a_home_that_cannot_be_made_is_one_line_with_a_fix(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(HostError, match="cannot be written: Not a directory") as caught:
        state.home()
    assert "TARE_HOME" in caught.value.fix


def test_a_home_that_may_not_be_written(home, monkeypatch):
    home.mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere, the tests may run as root
    with pytest.raises(HostError, match="permission denied"):
        state.home()


@pytest.mark.parametrize(
    ("folder", "filesystem"),
    [
        ("/", "ext4 on /dev/vda"),
        ("/var/lib/tare", "ext4 on /dev/vda"),
        ("/dev/shm", "tmpfs on tmpfs"),
        ("/dev/shmoo", "devtmpfs on devtmpfs"),
        ("/sys/fs/cgroup/memory/tare", "cgroup on cgroup"),
    ],
)
def test_the_filesystem_is_that_of_the_longest_mount_point(folder, filesystem):
    assert state.parse_filesystem(MOUNTS, Path(folder)) == filesystem


def test_of_two_mounts_at_one_point_the_later_hides_the_first():
    text = "1 0 8:1 / /data rw - ext4 /dev/sda1 rw\n2 0 8:2 / /data rw - xfs /dev/sdb1 rw\n"
    assert state.parse_filesystem(text, Path("/data/x")) == "xfs on /dev/sdb1"


def test_mount_points_with_spaces_and_optional_fields():
    text = "1 0 8:1 / /my\\040disk rw shared:2 master:1 - ext4 /dev/sda1 rw\n"
    assert state.parse_filesystem(text, Path("/my disk/tare")) == "ext4 on /dev/sda1"
