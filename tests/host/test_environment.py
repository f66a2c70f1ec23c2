"""What surrounds a program, from texts that instances showed."""

import pytest

from tare.host.facts import environment, posture

PODMAN = """\
430 360 0:78 / / rw,relatime - overlay overlay rw,lowerdir=/l/DE7Q,upperdir=/f2/diff,workdir=/f2/work,fsync=volatile
431 430 254:0 /work/026acx2/data /data rw,nosuid,nodev,relatime - ext4 /dev/vda rw,discard
432 430 0:81 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
"""
GVISOR = """\
18 17 0:20 / / rw - overlay none rw
23 18 0:24 / /data rw,nosuid - 9p none rw,trans=fd,rfdno=4,wfdno=4,cache=remote_revalidating,directfs
26 18 0:27 / /tmp rw - tmpfs none rw,mode=01777
"""
GUEST = """\
25 1 254:0 / / rw,relatime - ext4 /dev/vda rw
26 25 254:16 / /data rw,relatime - ext4 /dev/vdb rw
29 25 0:24 / /tmp rw,nosuid,nodev,relatime - tmpfs tmpfs rw,inode64
30 29 0:25 / /tmp ro - squashfs none ro
"""


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (PODMAN, ("overlay", "none", "nosuid, nodev", "ignored")),
        (PODMAN.replace("fsync=volatile", "volatile"), ("overlay", "none", "nosuid, nodev", "ignored")),
        (PODMAN.replace(",fsync=volatile", ""), ("overlay", "none", "nosuid, nodev", "kept")),
        (GVISOR, ("tmpfs", "none", "nosuid", "kept")),
        (GUEST, ("squashfs", "none", "none", "kept")),
        ("", ("unknown", "unknown", "unknown", "unknown")),
    ],
)
def test_mounts_tell_of_tmp_of_restrictions_and_whether_the_root_is_synced(text, facts):
    names = ("filesystem of /tmp", "restrictions of /", "restrictions of /data", "fsync on /")
    assert environment.of_mounts(text) == dict(zip(names, facts, strict=True))


def test_the_device_of_data_is_a_number_or_nothing():
    assert environment.data_device(GUEST) == "254:16"
    assert environment.data_device("") is None
    assert environment.data_device(GUEST.replace("254:16", "../../etc")) is None


@pytest.mark.parametrize(
    ("release", "ext", "name"),
    [
        ("6.18.44-fc", "", "EEVDF"),
        ("6.6.0", "", "EEVDF"),
        ("6.1.0-56-cloud-amd64", "", "CFS"),
        ("7.0", "", "EEVDF"),
        ("6.12.0", "scx_lavd\n", "sched_ext (scx_lavd)"),
        ("starnix", "", "unknown"),
    ],
)
def test_the_scheduler_is_known_by_the_release_and_by_what_is_loaded(release, ext, name):
    assert environment.scheduler(release, ext) == name


def test_socket_limits_are_in_one_line_each_and_unknown_where_none_is_shown():
    files = {environment.SOCKETS["tcp_rmem"]: "4096\t131072\t6291456", environment.SOCKETS["somaxconn"]: "4096"}
    shown = environment.sockets(files)
    assert (shown["tcp_rmem"], shown["somaxconn"], shown["rmem_max"]) == ("4096 131072 6291456", "4096", "unknown")
    assert len(environment.sockets({environment.SOCKETS["wmem_max"]: "9" * 5_000})["wmem_max"]) == 60


def test_a_file_without_a_line_end_and_one_that_is_not_there_show_as_they_are():
    printed = "\n== /proc/a\n212992\n== /proc/b\n\n== /proc/c\n1024\n"
    assert posture.parse_shown(printed) == {"/proc/a": "212992", "/proc/b": "", "/proc/c": "1024"}
