"""What a host may run out of: parts of its memory from a captured /proc/meminfo, and what comes in pieces."""

import os
import threading
from pathlib import Path

import pytest

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
        page_tables=16324 << 10,
        stacks=5488 << 10,
        per_cpu=3264 << 10,
    )


def test_a_part_that_a_kernel_does_not_list_is_nothing():
    assert ceilings.parse_host_memory("MemTotal: 1 kB\n") == HostMemory(1024, 0, 0, 0, 0, 0, 0)


def test_the_mean_of_two_readings_is_by_part():
    first, second = HostMemory(10, 2, 4, 6, 8, 0, 2), HostMemory(10, 4, 8, 6, 0, 0, 4)
    assert ceilings.mean_memory([first, second]) == HostMemory(10, 3, 6, 6, 4, 0, 3)


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
