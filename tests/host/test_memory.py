"""Proportional set sizes, from what the kernel says of this process and of none."""

import mmap
import os

import pytest

from tare.errors import HostError
from tare.host.facts import memory

#: As the kernel (6.18) gave it for a `cat`.
ROLLUP = """\
560373231000-7ffc4c8e7000 ---p 00000000 00:00 0                          [rollup]
Rss:                1756 kB
Pss:                 206 kB
Pss_Dirty:           112 kB
Pss_Anon:            112 kB
Pss_File:             94 kB
Pss_Shmem:             0 kB
Shared_Clean:       1608 kB
"""


def test_proportional_set_sizes_are_read_in_bytes_with_what_is_no_files():
    assert memory.parse_rollup(ROLLUP) == memory.Resident(206 * 1024, 112 * 1024, 0, 1756 * 1024)
    assert memory.parse_rollup("") == memory.Resident(0, 0, 0)


def test_a_kernel_that_tells_no_parts_is_told_to_be_too_old():
    with pytest.raises(HostError, match="this kernel does not separate") as error:
        memory.parse_rollup("Rss: 8 kB\nPss: 4 kB\n")
    assert error.value.fix == "boot Linux 5.4 or newer"


def test_this_process_has_some_and_one_that_is_gone_has_none():
    before = memory.resident([os.getpid()])
    assert before.pss > before.anonymous > 1 << 20
    with mmap.mmap(-1, 32 << 20) as held:  # of the kernel: the heap may have it already, from what was freed
        held[::4096] = b"x" * len(held[::4096])
        after = memory.resident([os.getpid(), 2**22 + 1])
        assert after.pss - before.pss > 24 << 20
        assert after.shared_memory - before.shared_memory > 24 << 20


#: Of QEMU's smaps (7.2 with ``-m 512M``, Linux 6.18): a guest's memory between two other mappings; some lines left out.
SMAPS = """\
7ff4e4021000-7ff4e8000000 ---p 00000000 00:00 0
Size:              65404 kB
Rss:                   0 kB
Pss:                   0 kB
VmFlags: mr mw me nr sd
7ff4e9e00000-7ff509e00000 rw-p 00000000 00:00 0
Size:             524288 kB
KernelPageSize:        4 kB
Rss:              163840 kB
Pss:              163840 kB
Pss_Dirty:        163840 kB
VmFlags: rd wr mr mw me dc ac hg mg
7ff50a000000-7ff50ffff000 rwxp 00000000 00:00 0
Size:              98300 kB
Rss:                2048 kB
Pss:                2048 kB
VmFlags: rd wr ex mr mw me dc ac
"""


def test_a_guests_memory_is_the_mapping_that_is_as_large():
    assert memory.parse_mappings(SMAPS, 512 << 20) == [160 << 20]
    assert memory.parse_mappings(SMAPS, 256 << 20) == []


def test_a_process_without_such_a_mapping_has_no_guest():
    assert memory.mapping_bytes([os.getpid(), 2**22 + 1], 3 << 50) is None
