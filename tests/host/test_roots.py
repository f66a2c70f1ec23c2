"""What a sandbox left in its data folder must not hang or end the campaign."""

import errno
import os
import resource
import shutil
import stat
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

from hostile import Exchanging, nest
from tare.errors import HostError
from tare.host.filesystems import roots
from tare.host.kernel import beneath, mounts, removal
from tare.host.resources.journal import CleanupStack, Journal


def test_links_and_pipes_of_a_sandbox_are_passed_over(tmp_path):
    (tmp_path / "file").write_bytes(b"x" * 4096)
    (tmp_path / "link").symlink_to("/nowhere")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    roots.drop_page_cache(tmp_path)
    assert (tmp_path / "file").read_bytes() == b"x" * 4096


@pytest.mark.thorough
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


def test_what_is_cached_of_a_file_is_seen_until_it_is_dropped(disk_path):
    file = disk_path / "file"
    file.write_bytes(b"x" * 10_000)
    assert roots.cached_share(disk_path, "file") == 1
    roots.drop_page_cache(disk_path)
    assert roots.cached_share(disk_path, "file") == 0
    with file.open("rb", buffering=0) as half:
        os.posix_fadvise(half.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # no pages but those that are read
        half.read(4096)
    assert roots.cached_share(disk_path, "file") == pytest.approx(1 / 3)


def test_nothing_is_cached_of_what_is_no_file(tmp_path):
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    assert [roots.cached_share(tmp_path, name) for name in ("none", "empty", "link", "pipe", ".")] == [None] * 5


@pytest.mark.thorough
def test_a_folder_exchanged_with_a_link_shows_nothing_of_the_host_s(tmp_path, monkeypatch):
    """A tenant exchanges a folder with a link, without a pause; every descriptor that is opened is looked at."""
    space, precious = tmp_path / "space", tmp_path / "precious"
    for folder in (space / "folder" / "below", precious / "below"):
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(b"x" * 4096)
    (space / "link").symlink_to(precious)
    within, opened, shares = str(space), [], []
    fsync = os.fsync

    def watched(descriptor):
        opened.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    with (precious / "below" / "file").open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    (precious / "below" / "file").unlink()
    (precious / "below" / "secret").write_bytes(b"x" * 4096)
    with Exchanging(space / "folder", space / "link") as tenant:
        end = time.monotonic() + 3
        while time.monotonic() < end:
            roots.drop_page_cache(space)
            shares.append(roots.cached_share(space, "folder/below/secret"))
    assert tenant.turns > 1000
    assert len(opened) > 20
    assert [path for path in opened if not path.startswith(within)] == []
    assert set(shares) == {None}


@pytest.mark.thorough
def test_no_device_is_opened_in_the_place_of_a_file(tmp_path, monkeypatch):
    """A tenant exchanges a file with a pipe: what is opened to be read is known to be a file before."""
    (tmp_path / "file").write_bytes(b"x")
    os.mkfifo(tmp_path / "pipe")
    kinds, reopened = [], beneath.reopened

    def watched(descriptor):
        file = reopened(descriptor)
        if file is not None:
            kinds.append(stat.S_ISREG(os.fstat(file).st_mode))
        return file

    monkeypatch.setattr(beneath, "reopened", watched)
    with Exchanging(tmp_path / "file", tmp_path / "pipe") as tenant:
        end = time.monotonic() + 2
        while time.monotonic() < end:
            roots.drop_page_cache(tmp_path)
            roots.cached_share(tmp_path, "file")
    assert tenant.turns > 1000
    assert len(kinds) > 20
    assert all(kinds)


@pytest.mark.thorough
def test_folders_nested_deeper_than_a_path_is_long_are_dropped_to_the_last(tmp_path, monkeypatch):
    here = nest(tmp_path, 1_500, "nested")
    file = os.open("file", os.O_CREAT | os.O_RDWR, dir_fd=here)
    os.write(file, b"x" * 4096)
    dropped = []
    monkeypatch.setattr(os, "posix_fadvise", lambda descriptor, *_: dropped.append(os.fstat(descriptor).st_ino))
    roots.drop_page_cache(tmp_path)
    assert dropped == [os.fstat(file).st_ino]
    os.close(file)
    os.close(here)
    removal.remove(tmp_path / "nested")


def test_a_file_with_a_path_above_4096_characters_is_looked_at(tmp_path):
    here = nest(tmp_path, 40, "n" * 200)
    file = os.open("file", os.O_CREAT | os.O_RDWR, dir_fd=here)
    os.write(file, b"x" * 4096)
    os.close(file)
    os.close(here)
    assert roots.cached_share(tmp_path, "/".join(["n" * 200] * 40 + ["file"])) == 1


@pytest.mark.parametrize(("place", "size"), [("disk", 1 << 40), ("memory", 1 << 62)])
def test_a_sparse_file_takes_no_time_and_no_memory(tmp_path, awake, place, size):
    """A TiB, and on a filesystem in memory the most that is to be had, with a page of data at each end."""
    folder = tmp_path if place == "disk" else Path(tempfile.mkdtemp(dir="/dev/shm"))
    try:
        with (folder / "file").open("wb") as file:
            file.truncate(size)
            for offset in (0, size - 4096):
                file.seek(offset)
                file.write(b"x" * 4096)
        before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, awake.seconds
        share = roots.cached_share(folder, "file")
        assert awake.seconds - began < 1
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20 << 10  # KiB
        assert share == pytest.approx(2 * 4096 / (2 * roots.WINDOW_BYTES))
        with (folder / "file").open("wb") as file:
            file.truncate(size)
        assert roots.cached_share(folder, "file") is None
    finally:
        shutil.rmtree(folder)


def test_what_a_file_s_windows_hold_adds_up(disk_path, monkeypatch):
    monkeypatch.setattr(roots, "WINDOW_BYTES", 1 << 16)
    with (disk_path / "file").open("wb") as file:
        file.write(b"x" * (5 << 16) + b"y" * 100)
    assert roots.cached_share(disk_path, "file") == 1
    roots.drop_page_cache(disk_path)
    assert roots.cached_share(disk_path, "file") == 0


@pytest.mark.thorough
def test_a_file_scattered_over_ten_thousand_windows_does_not_hold_the_harness_up(tmp_path, monkeypatch):
    """A page of data in each: the harness waits for no guest, and has other instances to measure."""
    with (tmp_path / "file").open("wb") as file:
        for number in range(10_000):
            os.pwrite(file.fileno(), b"x", number * roots.WINDOW_BYTES)
    monkeypatch.setattr(roots, "LOOK_LIMIT_S", 0.5)
    began = time.monotonic()
    assert roots.cached_share(tmp_path, "file") is None
    assert time.monotonic() - began < 3


def test_files_without_end_are_not_dropped_for_ever(tmp_path, monkeypatch):
    for number in range(20):
        (tmp_path / f"folder-{number % 3}").mkdir(exist_ok=True)
        (tmp_path / f"folder-{number % 3}" / f"{number}").write_text("x")
    dropped = []
    fsync = os.fsync

    def slow(descriptor):
        dropped.append(descriptor)
        time.sleep(0.05)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", slow)
    monkeypatch.setattr(roots, "DROP_LIMIT_S", 0.2)
    with pytest.raises(HostError, match="has more files than can be written back and dropped"):
        roots.drop_page_cache(tmp_path)
    assert 0 < len(dropped) < 15


def test_what_cannot_be_written_back_is_one_line_with_the_fix(tmp_path, monkeypatch):
    (tmp_path / "file").touch()

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(HostError, match="cannot be written back and dropped: No space left") as caught:
        roots.drop_page_cache(tmp_path)
    assert caught.value.fix.startswith(f"free disk space below {tmp_path}")


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root's rights: to mount")
def test_a_guest_s_tree_has_no_privilege_on_the_host_and_goes_whole(tmp_path):
    """Set-user-ID files and devices of a guest's in its data, in the overlay's layer and in the mounted root."""
    image = tmp_path / "image"
    (image / "bin").mkdir(parents=True)
    journal = Journal(tmp_path / "journal")
    with CleanupStack(journal) as cleanup:
        space = roots.new_workspace(cleanup, tmp_path / "work" / "space")
        root = roots.overlay_root(cleanup, space, image)
        for folder in (space.data, root):
            shutil.copy(shutil.which("id"), folder / "id")
            (folder / "id").chmod(0o4755)
            os.mknod(folder / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        assert space.folder.stat().st_mode & 0o777 == 0o700
        space.folder.chmod(0o755)  # as if a process of another user's had got in all the same
        for place in (space.data, space.folder / "upper", root):
            as_nobody = ["setpriv", "--reuid=65534", "--clear-groups", place / "id", "-u"]
            assert subprocess.run(as_nobody, capture_output=True, check=True, cwd="/").stdout == b"65534\n", place
            with pytest.raises(PermissionError):
                (place / "null").read_bytes()
        within = [*roots.privileged_within(root), *as_nobody]
        assert subprocess.run(within, capture_output=True, check=True).stdout == b"0\n"
    assert not space.folder.exists()
    assert journal.entries() == []


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
    with pytest.raises(HostError) as refused, roots.translated("an instance of native", Path("/work")):
        raise OSError(number, os.strerror(number), "/work/x/data")
    assert refused.value.what == f"an instance of native cannot be made: {what} (/work/x/data)"
    assert refused.value.fix.startswith(fix)


def test_a_disk_with_space_is_not_full_and_one_that_is_not_there_neither(tmp_path):
    assert roots.full(tmp_path) is None
    assert roots.full(tmp_path / "none") is None


def test_what_cannot_be_mounted_is_one_line_with_the_fix(tmp_path):
    with pytest.raises(HostError, match=r"nonesuch cannot be mounted on .*: ") as caught:
        mounts.mount("nonesuch", tmp_path, fix="do this")
    assert caught.value.fix == "do this"


def test_a_line_is_appended_to_a_roots_own_file_and_through_no_link(tmp_path):
    outside, root = tmp_path / "outside", tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    outside.write_text("the host's\n")
    (root / "etc" / "passwd").write_text("root:x:0:0::/root:/bin/sh")
    (root / "etc" / "group").symlink_to(outside)
    top = os.open(root, beneath.FOLDER)
    for name in ("passwd", "group", "missing"):
        roots._append(top, f"etc/{name}", "\nadded\n")
    os.close(top)
    assert (root / "etc" / "passwd").read_text() == "root:x:0:0::/root:/bin/sh\nadded\n"
    assert outside.read_text() == "the host's\n"
    assert not (root / "etc" / "missing").exists()
