"""What a sandbox left in its data folder must not hang or end the campaign."""

import errno
import os
import threading
import time
from pathlib import Path

import pytest

from tare.errors import HostError
from tare.host import mounts, roots


def test_links_and_pipes_of_a_sandbox_are_passed_over(tmp_path):
    (tmp_path / "file").write_bytes(b"x" * 4096)
    (tmp_path / "link").symlink_to("/nowhere")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    roots.drop_page_cache(tmp_path)
    assert (tmp_path / "file").read_bytes() == b"x" * 4096


def test_what_a_sandbox_changes_while_its_files_are_dropped_is_passed_over(tmp_path):
    """A tenant that makes, removes and exchanges its files all the time."""
    end = threading.Event()

    def churn():
        while not end.is_set():
            for number in range(20):
                folder = tmp_path / f"folder{number}"
                folder.mkdir(exist_ok=True)
                (folder / "file").write_bytes(b"x")
                (tmp_path / f"file{number}").write_bytes(b"x")
            for number in range(20):
                (tmp_path / f"file{number}").unlink()
                (tmp_path / f"file{number}").symlink_to("/dev/zero" if number % 2 else tmp_path)
                (tmp_path / f"folder{number}" / "file").unlink()
                (tmp_path / f"folder{number}").rmdir()
                (tmp_path / f"folder{number}").symlink_to("/etc")
            for number in range(20):
                (tmp_path / f"file{number}").unlink()
                (tmp_path / f"folder{number}").unlink()

    tenant = threading.Thread(target=churn)
    tenant.start()
    try:
        until = time.monotonic() + 3
        while time.monotonic() < until:
            roots.drop_page_cache(tmp_path)
    finally:
        end.set()
        tenant.join()


def test_what_is_not_there_has_nothing_to_be_dropped(tmp_path):
    roots.drop_page_cache(tmp_path / "none")


def test_what_is_cached_of_a_file_is_seen_until_it_is_dropped(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"x" * 10_000)
    assert roots.cached_share(tmp_path, "file") == 1
    roots.drop_page_cache(tmp_path)
    assert roots.cached_share(tmp_path, "file") == 0
    with file.open("rb", buffering=0) as half:
        os.posix_fadvise(half.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # no pages but those that are read
        half.read(4096)
    assert roots.cached_share(tmp_path, "file") == pytest.approx(1 / 3)


def test_nothing_is_cached_of_what_is_no_file(tmp_path):
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    assert [roots.cached_share(tmp_path, name) for name in ("none", "empty", "link", "pipe", ".")] == [None] * 5


@pytest.mark.parametrize(
    ("number", "what", "fix"),
    [
        (errno.ENOSPC, "No space left on device", "free disk space below /work"),
        (errno.EDQUOT, "Disk quota exceeded", "raise the quota of /work"),
        (errno.EROFS, "Read-only file system", "mount the filesystem of /work writable"),
        (errno.EIO, "Input/output error", "see what `tare doctor` and dmesg say"),
    ],
)
def test_what_the_system_refuses_is_one_line_with_the_fix(number, what, fix):
    with pytest.raises(HostError) as said, roots.told("an instance of native", Path("/work")):
        raise OSError(number, os.strerror(number), "/work/x/data")
    assert said.value.what == f"an instance of native cannot be made: {what} (/work/x/data)"
    assert said.value.fix.startswith(fix)


def test_a_disk_with_space_is_not_full_and_one_that_is_not_there_neither(tmp_path):
    assert roots.full(tmp_path) is None
    assert roots.full(tmp_path / "none") is None


def test_what_cannot_be_mounted_is_one_line_with_the_fix(tmp_path):
    with pytest.raises(HostError, match=r"nonesuch cannot be mounted on .*: ") as caught:
        mounts.mount("nonesuch", tmp_path, fix="do this")
    assert caught.value.fix == "do this"
