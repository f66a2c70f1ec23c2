"""What is mounted, from /proc/PID/mountinfo as the kernel wrote it."""

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from tare.contract import bait
from tare.host.filesystems import volumes
from tare.host.kernel import mounts

DATA = Path(__file__).parent / "data"
HOST = mounts.parse((DATA / "mountinfo").read_bytes())
#: Mount points with every name that is hard to read, below a tmpfs on /mnt (Linux 6.18).
NAMES = mounts.parse((DATA / "mountinfo-names").read_bytes())


def test_names_are_read_as_they_are():
    assert [mount.point.removeprefix("/mnt/") for mount in NAMES[1:]] == [
        "a blank",
        "a\ttab",
        "a \\ backslash",
        "é",
        "a line\nend",
        "a return\rand a form\ffeed",
        "a separator\u2028of lines",
        os.fsdecode(b"latin-1 \xe9"),
        "no escape \\040",
        "bind",
        "root",
    ]


def test_all_of_a_line_is_read():
    by_point = {mount.point: mount for mount in NAMES}
    assert by_point["/mnt/bind"] == mounts.Mount(
        device="0:54",
        root="/below é",
        point="/mnt/bind",
        options=("ro", "relatime"),
        kind="tmpfs",
        source="a source",
        super_options=("rw",),
    )
    assert by_point["/mnt/a \\ backslash"].source == ""  # mount -t tmpfs '' FOLDER
    assert by_point["/mnt/é"].source == "a#source"


def test_a_mount_is_writable_when_neither_it_nor_its_filesystem_is_read_only():
    assert {mount.point for mount in NAMES if not mount.writable} == {"/mnt/bind", "/mnt/a line\nend"}
    [read_only] = mounts.parse(b"36 35 98:0 / /mnt rw,noatime - squashfs /dev/loop0 ro\n")
    assert not read_only.writable


def test_an_overlay_says_where_what_is_written_goes():
    assert [mount.upper for mount in NAMES if mount.upper is not None] == ["/mnt/upper é 1"]


def test_the_table_of_this_process_is_the_one_of_its_id():
    assert mounts.table() == mounts.table(os.getpid())
    with pytest.raises(OSError, match="mountinfo"):
        mounts.table(1 << 30)


@pytest.mark.skipif(os.geteuid() != 0, reason="takes root's rights to mount")
def test_a_sandbox_may_give_a_mount_point_any_name(tmp_path):
    """Bytes that are no UTF-8, and what Python takes for the end of a line: the watch over the disk reads on."""
    folder = os.fsencode(tmp_path / "ends") + b"\f\xe9"
    os.mkdir(folder)  # noqa: PTH102 (a path of bytes)
    script = 'mount -t tmpfs none "$1" && echo mounted && read -r _'
    argv = ["unshare", "--mount", "sh", "-c", script, "sh", folder]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as sandbox:
        assert sandbox.stdout.readline() == b"mounted\n"
        assert os.fsdecode(folder) in [mount.point for mount in mounts.table(sandbox.pid)]
        assert volumes.upper_folders([sandbox.pid]) == set()


def test_what_an_instance_writes_to_its_root_is_looked_for_in_the_upper_folder(tmp_path, monkeypatch):
    line = f"250 236 0:72 / / rw - overlay overlay rw,lowerdir=/lower,upperdir={tmp_path},workdir=/work\n"
    monkeypatch.setattr(mounts, "table", lambda pid: {1: mounts.parse(line.encode()), 2: HOST}[pid])
    assert volumes.upper_folders([1, 2]) == {tmp_path}


def test_a_file_of_an_instance_is_looked_for_below_every_mount(tmp_path, monkeypatch):
    """Also where its name is not ASCII."""
    monkeypatch.setattr(mounts, "table", lambda: NAMES)
    space = SimpleNamespace(folder=tmp_path, data=tmp_path / "data")
    running = SimpleNamespace(instance=SimpleNamespace(spec=SimpleNamespace(space=space)))
    places = bait.places(running, "file")
    assert {Path("/mnt/é/file"), Path("/mnt/a blank/tmp/file"), Path("/mnt/upper é 1/file")} <= set(places)


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
    assert mounts.filesystem_among(HOST, Path(folder)) == filesystem


def test_of_two_mounts_at_one_point_the_later_hides_the_first():
    text = b"1 0 8:1 / /data rw - ext4 /dev/sda1 rw\n2 0 8:2 / /data rw - xfs /dev/sdb1 rw\n"
    assert mounts.filesystem_among(mounts.parse(text), Path("/data/x")) == "xfs on /dev/sdb1"


def test_mount_points_with_spaces_and_optional_fields():
    text = b"1 0 8:1 / /my\\040disk rw shared:2 master:1 - ext4 /dev/sda1 rw\n"
    assert mounts.filesystem_among(mounts.parse(text), Path("/my disk/tare")) == "ext4 on /dev/sda1"


def test_a_whole_view_of_the_kernel_is_seen_and_a_part_of_one_is_not():
    mountinfo = b"""\
22 27 0:21 / /proc rw,relatime - proc proc rw
50 49 0:21 /sys /proc/sys ro,relatime - proc proc rw
23 27 0:22 / /sys rw,relatime shared:2 - sysfs sysfs rw
24 27 0:21 / /srv/a\\040root/proc rw,relatime - proc none rw
25 27 8:1 / / rw,relatime shared:1 - ext4 /dev/vda rw
"""
    assert mounts.whole_views(mounts.parse(mountinfo)) == ["/proc", "/sys", "/srv/a root/proc"]
