"""What an instance has taken of the disk, and what it may take."""

import os

import pytest

from tare.errors import HostError
from tare.host.filesystems import volumes
from tare.host.filesystems.volumes import Room

MIB = 1 << 20


def test_what_lies_in_a_folder_is_counted_and_holes_are_not(tmp_path):
    (tmp_path / "written").write_bytes(bytes(3 * MIB))
    (tmp_path / "hole").touch()
    os.truncate(tmp_path / "hole", 1 << 40)
    for number in range(10):
        (tmp_path / f"empty{number}").touch()
    taken = volumes.taken([tmp_path])
    assert 3 * MIB <= taken.bytes < 4 * MIB
    assert taken.files == 13  # the folder is one


def test_a_folder_that_is_gone_has_taken_nothing(tmp_path):
    assert volumes.taken([tmp_path / "gone"]) == Room(0, 0)


def test_a_file_that_lost_its_name_counts_while_it_is_open(tmp_path):
    with (tmp_path / "file").open("wb") as file:
        file.write(bytes(5 * MIB))
        file.flush()
        (tmp_path / "file").unlink()
        assert volumes.taken([tmp_path], [os.getpid()]).bytes >= 5 * MIB
    assert volumes.taken([tmp_path], []).bytes < MIB


def test_what_takes_too_long_to_count_is_not_known(tmp_path, monkeypatch):
    monkeypatch.setattr(volumes, "COUNT_LIMIT_S", 0.0)
    monkeypatch.setenv("TARE_PATIENCE", "1")
    assert volumes.taken([tmp_path]) is None


@pytest.mark.parametrize(
    ("taken", "beyond"), [(Room(9, 9), False), (Room(10, 10), False), (Room(11, 0), True), (Room(0, 11), True)]
)
def test_a_limit_holds_for_bytes_and_for_files(taken, beyond):
    assert taken.beyond(Room(10, 10)) is beyond


def test_an_instance_may_take_a_share_of_what_is_free(tmp_path):
    free, may = volumes.free(tmp_path), volumes.allowance(tmp_path)
    assert 0 < may.bytes <= volumes.MAX_BYTES
    assert may.bytes < free.bytes
    assert may.files < free.files


@pytest.mark.parametrize(("size", "message"), [(MIB, "too small"), (1 << 60, "does not fit")])
def test_a_size_that_cannot_be_is_refused_with_the_fix(tmp_path, size, message):
    with pytest.raises(HostError, match=message) as refused:
        volumes.check_size(size, tmp_path)
    assert refused.value.fix


def test_no_size_is_no_volume(tmp_path):
    volumes.check_size(None, tmp_path)
    assert "a folder on the host's" in volumes.described(tmp_path, None)
    assert "ext4 of 8.0 GiB on a loop device" in volumes.described(tmp_path, 8 << 30)


def test_the_top_of_a_filesystem_outlives_what_is_below_it(tmp_path):
    top = volumes.top(tmp_path)
    assert tmp_path.is_relative_to(top)
    assert top.stat().st_dev == tmp_path.stat().st_dev
    assert top == top.parent or top.parent.stat().st_dev != top.stat().st_dev
