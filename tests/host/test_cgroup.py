import errno
import os
import time
from pathlib import Path

import pytest

from tare.errors import HostError
from tare.host import cgroup, cgroup_files, cgroup_tree, processes
from tare.host.kernel import mounts
from tare.model import Resources

HYBRID = (Path(__file__).parent / "data" / "mountinfo").read_bytes()


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP, errno.EMFILE, errno.ENOMEM])
def test_only_a_group_that_is_gone_or_has_but_threads_lists_no_process(tmp_path, monkeypatch, number):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "cgroup.procs").write_text("7\n")
    (tmp_path / "cgroup.procs").write_text("5\n")
    opened = os.open

    def open_(path, *arguments, **places):
        if path == "cgroup.procs" and os.fstat(places["dir_fd"]).st_ino == tmp_path.stat().st_ino:
            raise OSError(number, os.strerror(number))
        return opened(path, *arguments, **places)

    monkeypatch.setattr(cgroup_tree.os, "open", open_)
    if number in {errno.EMFILE, errno.ENOMEM}:
        with pytest.raises(OSError, match=os.strerror(number)):
            cgroup_tree.pids([tmp_path])
    else:
        assert cgroup_tree.pids([tmp_path]) == {7}


def test_a_hybrid_host_is_limited_by_v1():
    layout = cgroup.hierarchies_among(mounts.parse(HYBRID))
    assert not layout.unified
    assert layout.v1["cpuacct"] == Path("/sys/fs/cgroup/cpuacct")
    assert layout.v2 == Path("/sys/fs/cgroup/unified")
    assert Path("/sys/fs/cgroup/systemd") in layout.mounted


def test_controllers_that_are_mounted_together_share_a_folder():
    line = b"33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n"
    layout = cgroup.hierarchies_among(mounts.parse(line))
    assert layout.v1["cpu"] == layout.v1["cpuacct"] == Path("/sys/fs/cgroup/cpu,cpuacct")


def test_a_hierarchy_that_is_mounted_twice_is_one():
    line = b"33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    again = line.replace(b"/sys/fs/cgroup/cpu", b"/var/lib/lxcfs/cgroup/cpu")
    layout = cgroup.hierarchies_among(mounts.parse(line + again))
    assert (layout.v1["cpu"], layout.mounted) == (Path("/sys/fs/cgroup/cpu"), (Path("/sys/fs/cgroup/cpu"),))


def test_a_unified_host():
    line = b"31 23 0:28 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime - cgroup2 cgroup2 rw,nsdelegate\n"
    layout = cgroup.hierarchies_among(mounts.parse(line))
    assert layout.unified
    assert layout.v2 == Path("/sys/fs/cgroup")


def test_cpu_time_of_v2_is_in_nanoseconds():
    text = b"usage_usec 123456\nuser_usec 100000\nsystem_usec 23456\nnr_periods 0\n"
    assert cgroup_files.parse_cpu_stat(text) == 123_456_000
    with pytest.raises(HostError):
        cgroup_files.parse_cpu_stat(b"nothing 1\n")


def test_memory_in_use_is_what_the_kernel_counts_by_kind():
    v1 = (Path(__file__).parent / "data" / "memory-stat").read_bytes()
    assert cgroup_files.parse_memory_stat(v1, unified=False) == 227_139_584
    v2 = b"anon 1000\nfile 200\nkernel 30\nkernel_stack 16\npercpu 8\nsock 4\nshmem 50\n"  # as in cgroup-v2.rst
    assert cgroup_files.parse_memory_stat(v2, unified=True) == 1234
    assert cgroup_files.parse_memory_stat(v2.replace(b"kernel 30\n", b""), unified=True) is None


def test_what_is_no_files_and_the_kernels_own_are_told_apart():
    v1 = (Path(__file__).parent / "data" / "memory-stat").read_bytes()
    assert cgroup_files.parse_shared_memory(v1, unified=False) == 103_063_552
    v2 = (Path(__file__).parent / "data" / "memory-stat-v2").read_bytes()  # system.slice of a stock Debian 13 host
    assert cgroup_files.parse_memory_stat(v2, unified=True) == 66_424_832 + 240_730_112 + 17_887_232
    assert cgroup_files.parse_shared_memory(v2, unified=True) == 491_520
    assert cgroup_files.parse_kernel_bytes(v2) == 17_887_232
    assert cgroup_files.parse_kernel_bytes(v2.replace(b"\nsock 0\n", b"\nsock 4096\n")) == 17_887_232 + 4096


def test_kernel_memory_before_linux_5_18_is_the_sum_of_its_parts():
    v2 = (Path(__file__).parent / "data" / "memory-stat-v2").read_bytes()
    parts = cgroup_files.parse_kernel_bytes(v2.replace(b"\nkernel 17887232\n", b"\n"))
    assert parts == 1_097_728 + 4_231_168 + 347_024 + 11_120_280


def test_v2_tells_a_limit_of_the_group_from_a_host_that_has_no_memory_left():
    events = b"low 0\nhigh 0\nmax 37\noom 2\noom_kill 3\noom_group_kill 0\n"  # as in cgroup-v2.rst; with all below
    assert cgroup_files.parse_memory_events(events, b"536870912\n") == cgroup_files.MemoryKills(3, True, 512 << 20)
    hosts = events.replace(b"oom 2", b"oom 0")
    assert cgroup_files.parse_memory_events(hosts, b"max\n") == cgroup_files.MemoryKills(3, False, 0)
    assert cgroup_files.parse_memory_events(events.replace(b"kill 3", b"kill 0"), b"max\n") is None


def test_processes_killed_for_want_of_memory_are_counted_with_those_of_groups_below(tmp_path, monkeypatch):
    tree = cgroup.Hierarchies({"cpu": tmp_path, "memory": tmp_path}, None, (tmp_path,))
    monkeypatch.setattr(cgroup, "hierarchies", lambda: tree)
    below = "tare/x3" + 300 * "/deeper"
    full = 1 << 30
    groups = (("tare/x0", 1, 0), ("tare/x0/docker/abc", 2, full - 4096), ("tare/x1", 0, full), (below, 1, full >> 1))
    for folder, kills, most in groups:
        (tmp_path / folder).mkdir(parents=True)
        # As Linux 6.1 has it; before 4.13 the last line is not there.
        (tmp_path / folder / "memory.oom_control").write_text(f"oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n")
        (tmp_path / folder / "memory.max_usage_in_bytes").write_text(f"{most}\n")
        for place in (folder, "/".join(folder.split("/")[:2])):
            (tmp_path / place / "memory.limit_in_bytes").write_text(f"{full}\n")
    assert cgroup.Group("tare/x0").memory_kills() == cgroup_files.MemoryKills(3, True, full)
    assert cgroup.Group("tare/x1").memory_kills() is None
    assert cgroup.Group("tare/x3").memory_kills() == cgroup_files.MemoryKills(1, False, full)
    with pytest.raises(OSError, match=r"memory\.limit_in_bytes"):
        cgroup.Group("tare/x2").memory_kills()
    assert cgroup_files.oom_kills(b"oom_kill_disable 0\nunder_oom 0\n") == 0


@pytest.mark.parametrize(
    ("path", "inner"),
    [("tare/x1", "tare/x1"), ("tare.slice/tare-x1.slice", "tare.slice/tare-x1.slice/tare-x1.scope")],
)
def test_a_child_is_where_its_leaf_is_made(tmp_path, monkeypatch, path, inner):
    tree = cgroup.Hierarchies({}, tmp_path, (tmp_path,))
    monkeypatch.setattr(cgroup, "hierarchies", lambda: tree)
    group = cgroup.Group(path)
    [procs] = group.leaf("tool")
    assert group.child("tool").path == f"{inner}/tool"
    assert procs == tmp_path / inner / "tool" / "cgroup.procs"
    assert procs.parent.is_dir()


def test_v2_groups_are_written_as_the_kernel_wants_them(tmp_path, monkeypatch):
    """A v2 host is not to be had here: this fixes which files get which words, no more."""
    tree = unified(tmp_path, monkeypatch)
    limits = tmp_path / "tare/a1x1"
    limits.mkdir(parents=True)
    for name in ("memory.swap.max", "pids.max"):  # where the kernel accounts swap, and the controller is on
        (limits / name).touch()
    group = cgroup.Group("tare/a1x1")
    group.create(Resources((2, 3), 1 << 30))
    assert (tree.v2 / "cgroup.subtree_control").read_text() == "+cpu +cpuset +memory +pids"
    names = ("cpuset.cpus", "memory.max", "memory.swap.max", "pids.max")
    assert [(limits / name).read_text() for name in names] == ["2-3", str(1 << 30), "0", "4096"]
    assert group.limits() == {"pids": 4096, "swap": 0}
    assert group.leaf("tool") == [tmp_path / "tare/a1x1/tool/cgroup.procs"]
    group.create(Resources((2, 3), 1 << 30, pids=None))
    assert (limits / "pids.max").read_text() == "max"
    assert group.limits()["pids"] is None


def unified(folder, monkeypatch):
    """A v2 hierarchy in a folder."""
    (folder / "cgroup.controllers").write_text("cpuset cpu io memory hugetlb pids rdma misc\n")
    tree = cgroup.Hierarchies({}, folder, (folder,))
    monkeypatch.setattr(cgroup, "hierarchies", lambda: tree)
    return tree


def test_a_kernel_without_swap_accounting_or_pids_has_no_such_limits(tmp_path, monkeypatch):
    unified(tmp_path, monkeypatch)
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu memory\n")
    group = cgroup.Group("tare/a1x1")
    group.create(Resources((2, 3), 1 << 30))
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu +cpuset +memory"
    assert group.limits() == {"pids": None, "swap": None}


@pytest.mark.parametrize(("both", "swap"), [(1 << 30, 0), (3 << 29, 1 << 29), (2**63 - 4096, None)])
def test_v1_limits_memory_and_swap_together(tmp_path, monkeypatch, both, swap):
    tree = cgroup.Hierarchies({"cpu": tmp_path, "memory": tmp_path, "pids": tmp_path}, None, (tmp_path,))
    monkeypatch.setattr(cgroup, "hierarchies", lambda: tree)
    files = {"memory.memsw.limit_in_bytes": both, "memory.limit_in_bytes": 1 << 30, "pids.max": "max"}
    for name, value in files.items():
        (tmp_path / name).write_text(f"{value}\n")
    assert cgroup.Group("").limits() == {"pids": None, "swap": swap}


def test_refused_processes_are_counted_with_those_of_groups_below(tmp_path, monkeypatch):
    tree = cgroup.Hierarchies({"cpu": tmp_path, "pids": tmp_path}, None, (tmp_path,))
    monkeypatch.setattr(cgroup, "hierarchies", lambda: tree)
    for folder, count in (("tare/x0", 0), ("tare/x0/tool", 3), ("tare/x0/docker/abc", 2), ("tare/x1", 9)):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "pids.events").write_text(f"max {count}\n")
    assert cgroup.Group("tare/x0").refused_processes() == 5
    assert cgroup.Group("tare/x2").refused_processes() == 0
    (tmp_path / "tare/x3").mkdir()
    for most, refused in ((4095, 0), (4096, 1)):  # of a group below that has been removed
        (tmp_path / "tare/x3/pids.max").write_text("4096\n")
        (tmp_path / "tare/x3/pids.peak").write_text(f"{most}\n")
        assert cgroup.Group("tare/x3").refused_processes() == refused
        assert cgroup.Group("tare/x3").refused_processes(4095) == refused


def test_a_guest_leaves_its_helpers_what_is_beyond_its_own_limit(tmp_path, monkeypatch):
    tree = cgroup.Hierarchies({"cpu": tmp_path, "memory": tmp_path, "pids": tmp_path}, None, (tmp_path,))
    monkeypatch.setattr(cgroup, "hierarchies", lambda: tree)
    for folder, limit in (
        ("tare/x0", "556"),
        ("tare/x0/helpers", "max"),
        ("tare/x0/box", "max"),
        ("tare/x0/own", "200"),
    ):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "pids.max").write_text(f"{limit}\n")
    (tmp_path / "tare/x0/memory.limit_in_bytes").write_text(f"{1 << 30}\n")
    group = cgroup.Group("tare/x0")
    group.bound(300)
    shown = {name: (tmp_path / "tare/x0" / name / "pids.max").read_text().strip() for name in ("helpers", "box", "own")}
    assert shown == {"helpers": "300", "box": "300", "own": "200"}
    assert (tmp_path / "tare/x0/pids.max").read_text() == "556\n"
    assert group.limits()["pids"] == 200
    (tmp_path / "tare/x0/pids.peak").write_text("301\n")  # of the guest's group and those beside it, which are gone
    assert (group.refused_processes(300), group.refused_processes(301), group.refused_processes()) == (1, 0, 0)


@pytest.mark.parametrize(
    ("name", "free", "held", "released"),
    [
        ("freezer.state", "THAWED", "FROZEN", "THAWED"),
        ("cgroup.freeze", "0", "1", "0"),
        ("cpu.cfs_quota_us", "-1", "1000", "-1"),
        ("cpu.max", "max 100000", "1000 100000", "max"),
        ("blkio.throttle.read_iops_device", "", "254:0 1", "254:0 0"),
        ("io.max", "", "254:0 rbps=max wbps=1 riops=max wiops=max", "254:0 rbps=max wbps=max riops=max wiops=max"),
    ],
)
def test_what_holds_processes_back_is_seen_and_taken_off(tmp_path, name, free, held, released):
    below = tmp_path / "box" / "deeper"
    below.mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "box", below):
        (folder / name).write_text(f"{free}\n")
    assert not cgroup_tree.held_back(tmp_path)
    (below / name).write_text(f"{held}\n")
    assert cgroup_tree.held_back(tmp_path)
    cgroup_tree.walk(tmp_path, cgroup_tree.release, lambda *_: None)
    # A plain file keeps what is behind the words written over it.
    assert (below / name).read_text().startswith(released)


def test_a_quota_of_tares_own_holds_nothing_back(tmp_path):
    (tmp_path / "box").mkdir()
    for folder in (tmp_path, tmp_path / "box"):
        (folder / "cpu.max").write_text("150000 100000\n")
    assert not cgroup_tree.held_back(tmp_path)


def test_a_quota_is_a_time_in_each_period(tmp_path, monkeypatch):
    unified(tmp_path, monkeypatch)
    cgroup.Group("tare/a1x1").create(Resources((2, 3), 1 << 30, cpu_quota=1.5))
    assert (tmp_path / "tare/a1x1/cpu.max").read_text() == "150000 100000"


@pytest.mark.host
def test_what_works_in_a_group_with_a_quota_gets_no_more_time():
    """Two loops on whichever CPUs there are, and together a twentieth of a CPU."""
    group = cgroup.named("tare-quota")
    try:
        group.create(Resources(tuple(sorted(os.sched_getaffinity(0))), 256 << 20, cpu_quota=0.05))
        loop = ["timeout", "1.5", "sh", "-c", "while :; do :; done"]
        busy = [processes.start(loop, cgroup_procs=group.leaf("tool")) for _ in range(2)]
        began, before = time.monotonic(), group.cpu_ns()
        for process in busy:
            process.wait()
        share = (group.cpu_ns() - before) / 1e9 / (time.monotonic() - began)
        periods, _ = group.throttled()
    finally:
        group.close()
        cgroup.destroy(group.path)
    assert share < 0.05 * 1.5
    assert periods > 0


@pytest.mark.parametrize("unified", [True, False])
def test_groups_below_the_root_are_listed(tmp_path, monkeypatch, unified):
    for name in ("tare/x1", "docker", "user.slice"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "cgroup.procs").touch()
    tree = cgroup.Hierarchies({} if unified else {"cpu": tmp_path, "memory": tmp_path}, tmp_path, (tmp_path,))
    monkeypatch.setattr(cgroup, "hierarchies", lambda: tree)
    assert [group.path for group in cgroup.tops()] == ["docker", "tare", "user.slice"]
