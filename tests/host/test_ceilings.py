"""What a host may run out of: parts of its memory from a captured /proc/meminfo, and what comes in pieces."""

import os
import threading
from pathlib import Path

import pytest

from tare.host import cgroup
from tare.host.facts import ceilings
from tare.host.facts.ceilings import Ceiling, HostMemory
from tare.host.kernel import process_table

#: Of a Debian 12 host with two CPUs, shortened.
MEMINFO = """MemTotal:       24689376 kB
MemFree:        19919028 kB
MemAvailable:   23262868 kB
AnonPages:        911240 kB
Shmem:              3868 kB
KReclaimable:     412000 kB
SReclaimable:     412000 kB
SUnreclaim:        58340 kB
KernelStack:        5488 kB
PageTables:        16320 kB
SecPageTables:         4 kB
Percpu:             3264 kB
"""


def test_the_parts_of_a_hosts_memory():
    assert ceilings.parse_host_memory(MEMINFO) == HostMemory(
        total=24689376 << 10,
        available=23262868 << 10,
        anonymous=(911240 + 3868) << 10,
        slab=58340 << 10,
        slab_free=0,
        page_tables=16324 << 10,
        stacks=5488 << 10,
        per_cpu=3264 << 10,
    )


#: Of the same host after a day of tests, shortened.
SLABINFO = """slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables ...
inode_cache         6367  14248    624   13    2 : tunables    0    0    0 : slabdata   1096   1096      0
dentry            1365804 1382409    192   21    1 : tunables    0    0    0 : slabdata  65829  65829      0
vm_area_struct      2571   5859    192   21    1 : tunables    0    0    0 : slabdata    279    279      0
kmalloc-1k         96583 106000   1024   16    4 : tunables    0    0    0 : slabdata   6625   6625      0
"""


def test_room_in_slabs_is_that_of_objects_that_nobody_uses():
    room = ceilings.parse_slab_free(SLABINFO, {"dentry", "inode_cache"})
    pages = (5859 - 2571) / 21 + (106_000 - 96_583) / 16 * 4
    assert room == round(pages * os.sysconf("SC_PAGE_SIZE"))
    blank = SLABINFO.replace("vm_area_struct", "a module's own")
    assert ceilings.parse_slab_free(blank, {"dentry", "inode_cache"}) == room
    assert ceilings.parse_slab_free("", set()) == 0  # to read it takes root


def test_what_goes_with_cached_inodes_is_room_too():
    room = ceilings.parse_slab_free(SLABINFO, {"dentry", "inode_cache"})
    line = (
        "lsm_inode_cache   848096 1073664     32  128    1 : tunables    0    0    0 : slabdata   8388   8388      0\n"
    )
    assert ceilings.parse_slab_free(SLABINFO + line, {"dentry", "inode_cache"}) == room + 8388 * os.sysconf(
        "SC_PAGE_SIZE"
    )


def test_a_mount_takes_its_object_and_what_belongs_to_it():
    line = (
        "mnt_cache             345    462    384   21    2 : tunables    0    0    0 : slabdata     22     22      0\n"
    )
    assert 384 < ceilings.parse_mount_bytes("") < 600
    assert ceilings.parse_mount_bytes(SLABINFO + line) == pytest.approx(ceilings.parse_mount_bytes(""), rel=0.02)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may read /proc/slabinfo")
def test_room_in_this_hosts_slabs_is_a_part_of_them():
    memory = ceilings.host_memory()
    assert 0 < memory.slab_free < memory.slab


def test_a_part_that_a_kernel_does_not_list_is_nothing():
    assert ceilings.parse_host_memory("MemTotal: 1 kB\n") == HostMemory(1024, 0, 0, 0, 0, 0, 0, 0)


def test_the_mean_of_two_readings_is_by_part():
    first, second = HostMemory(10, 2, 4, 6, 2, 8, 0, 2, 6), HostMemory(10, 4, 8, 6, 0, 0, 0, 4, 8)
    assert ceilings.mean_memory([first, second]) == HostMemory(10, 3, 6, 6, 1, 4, 0, 3, 7)


@pytest.mark.parametrize(
    "read", [ceilings.tasks, ceilings.files, ceilings.own_files, ceilings.mounts, ceilings.terminals]
)
def test_what_is_used_is_within_what_there_may_be(read):
    found = read()
    assert found is None or 0 <= found.used <= found.most


def test_files_of_this_process_are_counted():
    before = ceilings.own_files().used
    with Path("/proc/self/status").open():
        assert ceilings.own_files().used == before + 1


def test_a_disk_is_what_its_users_may_have_of_it(tmp_path):
    found = ceilings.disk(tmp_path)
    stat = os.statvfs(tmp_path)
    assert found.most - found.used == stat.f_bavail * stat.f_frsize
    assert isinstance(found, Ceiling)


def test_threads_and_page_tables_of_a_process():
    assert process_table.page_tables(os.getpid()) > 4096
    before, done = process_table.tasks(os.getpid()), threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert process_table.tasks(os.getpid()) == before + 1
    finally:
        done.set()
        thread.join()
    assert (process_table.page_tables(2**22 + 1), process_table.tasks(2**22 + 1)) == (0, 0)


ZONEINFO = """Node 0, zone   Normal
  pages free     3000000
  pagesets
    cpu: 0
              count:    899
              high:     1444
  vm stats threshold: 24
    cpu: 1
              count:    101
              high:     1444
"""


def test_free_pages_in_the_lists_of_cpus():
    assert ceilings.parse_cpu_lists(ZONEINFO) == 1000 * os.sysconf("SC_PAGE_SIZE")
    assert ceilings.parse_cpu_lists("") == 0
    assert ceilings.host_memory().cpu_lists >= 0


@pytest.fixture
def hierarchy(tmp_path, monkeypatch):
    """A hierarchy of memory in a folder, with tare's group."""
    (tmp_path / "tare").mkdir()
    tree = cgroup.Hierarchies({"cpu": tmp_path, "memory": tmp_path}, None, (tmp_path,))
    monkeypatch.setattr(cgroup, "hierarchies", lambda: tree)
    monkeypatch.setattr(cgroup, "kept_by_systemd", lambda: False)
    monkeypatch.setattr(ceilings, "_kernel", lambda: (6, 7))
    return tmp_path / "tare"


def test_what_tables_a_group_has_is_measured_with_empty_ones(hierarchy, monkeypatch):
    monkeypatch.setattr(ceilings, "objects_of_1k", lambda: 156_446 + 45 * len(list(hierarchy.iterdir())) + 3)
    assert ceilings.tables_a_group("tare", 2) == 45
    assert list(hierarchy.iterdir()) == [], "they are removed again"


def test_tables_are_at_least_those_of_the_filesystems_that_there_are(hierarchy, monkeypatch):
    monkeypatch.setattr(ceilings, "objects_of_1k", lambda: 0)  # to read it takes root
    assert ceilings.tables_a_group("tare", 2) == 2
    monkeypatch.setattr(ceilings, "_kernel", lambda: (6, 6))
    assert ceilings.tables_a_group("tare", 2) == 0, "an older kernel has other tables"


def test_objects_of_a_kilobyte_are_those_of_all_caches_of_that_size(monkeypatch):
    more = "".join(
        f"{name}  {used} 16 1024 16 4 : tunables 0 0 0 : slabdata 1 1 0\n"
        for name, used in (("kmalloc-rnd-01-1k", 7), ("kmalloc-cg-1k", 11), ("dma-kmalloc-1k", 13))
    )
    monkeypatch.setattr(ceilings.host_text, "said", lambda path: SLABINFO + more if path == "/proc/slabinfo" else "")
    assert ceilings.objects_of_1k() == 96583 + 7


def test_filesystems_are_counted_once_each():
    ours = ceilings.filesystems([os.getpid(), os.getpid()])
    devices = {line.split()[2] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
    assert ours == devices
    assert ceilings.filesystems([2**22 + 1]) == set(), "one that has ended"
