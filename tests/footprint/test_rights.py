"""What /proc says of a container's process, captured on a host; and which of its mounts are the host's."""

import os
from pathlib import Path

import pytest

from tare.features.kernel.reading import process_rights
from tare.host.kernel import mounts
from tare.host.kernel.process_table import parse_status

CAPTURED = Path(__file__).parent / "captured"


def test_a_status():
    who = process_rights.identity_of(parse_status((CAPTURED / "docker.status").read_text()))
    assert (who.name, who.tracer, who.uid, who.gid) == ("tare-agent", 0, 0, 0)
    assert (who.seccomp, who.filters, who.no_new_privs) == (2, 1, False)
    names = process_rights.capabilities(who.effective)
    assert len(names) == 14
    assert {"cap_chown", "cap_net_raw", "cap_setuid"} <= set(names)
    assert "cap_sys_admin" not in names
    assert who.bounding == who.effective


def test_a_status_of_an_old_kernel_has_no_number_of_filters():
    text = (CAPTURED / "docker.status").read_text()
    lines = [line for line in text.splitlines() if not line.startswith(("Seccomp_filters", "NoNewPrivs"))]
    who = process_rights.identity_of(parse_status("\n".join(lines)))
    assert (who.seccomp, who.filters, who.no_new_privs) == (2, None, False)


def test_the_writable_places_of_a_container():
    theirs = mounts.parse((CAPTURED / "docker.mountinfo").read_bytes())
    ours = mounts.parse((CAPTURED / "host.mountinfo").read_bytes())
    places = {place.path: place for place in process_rights.writable_places(theirs, ours)}
    assert {"/", "/data", "/proc", "/etc/hosts", "/etc/hostname", "/etc/resolv.conf"} <= places.keys()
    assert places["/proc"].host is None
    assert places["/data"].host.endswith("/data")
    assert places["/etc/hosts"].host.endswith("/hosts")
    # Read-only, its own, or hidden by what is mounted above it.
    assert not places.keys() & {"/sys", "/proc/sys", "/dev", "/dev/shm", "/dev/pts", "/proc/kcore"}


def mount(point, *, device="8:1", root="/", kind="ext4", writable=True):
    options = ("rw",) if writable else ("ro",)
    return mounts.Mount(device, root, point, options, kind, "none", ("rw",))


@pytest.mark.parametrize(
    ("theirs", "host"),
    [
        (mount("/"), "/"),
        (mount("/data", root="/srv/a b"), "/srv/a b"),
        (mount("/", root="/home/x"), "/mnt/home/x"),  # the nearest of two mounts of the same
        (mount("/", root="/homely"), "/homely"),
        (mount("/", device="8:9"), None),
        (mount("/", writable=False), None),
        (mount("/dev/null", device="0:6", root="/null", kind="devtmpfs"), None),
        (mount("/dev/kvm", device="0:6", root="/kvm", kind="devtmpfs"), "/dev/kvm"),
    ],
)
def test_where_the_host_has_what_is_mounted(theirs, host):
    ours = [mount("/"), mount("/mnt/home", root="/home"), mount("/dev", device="0:6", kind="devtmpfs")]
    assert [place.host for place in process_rights.writable_places([theirs], ours)] == ([] if host is None else [host])


def test_only_the_last_mount_on_a_point_is_seen():
    ours = [mount("/")]
    assert process_rights.writable_places([mount("/a"), mount("/a", device="0:99", kind="tmpfs")], ours) == []


def test_capabilities_without_a_name_are_numbers():
    assert process_rights.capabilities(1 << 62 | 1 << 40 | 1) == ("cap_chown", "cap_checkpoint_restore", "cap_62")


def test_a_thread_that_has_ended_has_no_identity():
    with pytest.raises(ProcessLookupError):
        process_rights.identity(os.getpid(), 2**22 + 1)


def test_what_this_process_has_open(tmp_path):
    written = (tmp_path / "written").open("w")
    read = (tmp_path / "written").open()
    folder = os.open(tmp_path, os.O_RDONLY)
    device = os.open("/dev/ptmx", os.O_RDWR)
    try:
        devices, held = process_rights.open_descriptors(os.getpid())
    finally:
        written.close()
        read.close()
        os.close(folder)
        os.close(device)
    assert any("ptmx" in name for name in devices)
    assert "/dev/null" not in devices
    assert {str(tmp_path), str(tmp_path / "written")} <= set(held)
    _, afterwards = process_rights.open_descriptors(os.getpid())
    assert str(tmp_path) not in afterwards


def test_a_name_that_is_no_text_is_stored_all_the_same(tmp_path):
    """A sandbox may give a folder any name, and mount there: the surface went into no file of JSON then."""
    name = tmp_path / os.fsdecode(b"\xe9")
    [place] = process_rights.writable_places([mount(str(name), root=str(name))], [mount("/")])
    with name.open("w"):
        _, held = process_rights.open_descriptors(os.getpid())
    for text in (place.path, place.host, *held):
        text.encode()
    assert place.path == f"{tmp_path}/\N{REPLACEMENT CHARACTER}"
    assert place.path in held
