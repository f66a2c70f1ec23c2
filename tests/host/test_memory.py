"""Proportional set sizes, from what the kernel says of this process and of none."""

import os

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


def test_the_proportional_set_size_is_read_in_bytes():
    assert memory.parse_rollup(ROLLUP) == 206 * 1024
    assert memory.parse_rollup("") == 0


def test_this_process_has_some_and_one_that_is_gone_has_none():
    own = memory.pss_bytes([os.getpid()])
    assert own > 1 << 20
    held = bytearray(32 << 20)
    held[::4096] = b"x" * len(held[::4096])
    assert memory.pss_bytes([os.getpid(), 2**22 + 1]) - own > 24 << 20
