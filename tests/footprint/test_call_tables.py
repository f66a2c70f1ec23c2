"""The tables of system calls, held to this machine's own headers and to libseccomp, and what a kernel has of them."""

import ctypes
import os
import re
from pathlib import Path

import pyseccomp
import pytest

from tare.errors import HostError
from tare.features.kernel.reading import call_tables

HEADER = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
TABLES = {table.abi: table for table in (call_tables.native("x86_64"), call_tables.native("aarch64"),
                                         *call_tables.others("x86_64"),
                                         *call_tables.others("aarch64"))}  # fmt: skip


@pytest.mark.skipif(not HEADER.exists(), reason="no headers of x86-64 here")
def test_numbers_are_the_headers():
    header = dict(re.findall(r"#define __NR_(\w+) (\d+)", HEADER.read_text()))
    table = call_tables._numbers("x86_64")
    shared = header.keys() & table.keys()
    assert len(shared) > 340  # the header has some besides that no kernel has any more
    assert {name: int(header[name]) for name in shared} == {name: table[name] for name in shared}


@pytest.mark.parametrize(
    ("abi", "arch"), [("x86_64", "X86_64"), ("i386", "X86"), ("x32", "X32"), ("arm64", "AARCH64"), ("arm", "ARM")]
)
def test_numbers_and_architectures_are_libseccomps(abi, arch):
    table, token = TABLES[abi], int(getattr(pyseccomp.Arch, arch))
    if abi != "x32":  # to the kernel it is x86-64 with a bit in the number, to libseccomp an architecture
        assert table.architecture == token & 0xFFFFFFFF
    numbers = {}
    for name, number in table.numbers.items():
        theirs = pyseccomp.resolve_syscall(token, name)
        if theirs >= 0:  # else it is newer than the library, or another call in its stead
            numbers[name] = (theirs, number)
    assert len(numbers) > 250
    assert {name: theirs for name, (theirs, _) in numbers.items()} == {
        name: number for name, (_, number) in numbers.items()
    }


SYMBOLS = """\
ffffffff81000000 T __x64_sys_read
ffffffff81000010 T __ia32_sys_read
ffffffff81000020 W __x64_sys_listmount
ffffffff81000030 T __x64_sys_mseal
"""


def test_a_kernel_has_old_calls_and_of_new_ones_those_that_its_symbols_name():
    numbers = {"mseal": 462, "read": 0, "uselib": 134, "listmount": 458, "listns": 470}
    assert call_tables.in_kernel(numbers, SYMBOLS) == {"read": 0, "uselib": 134, "listmount": 458, "mseal": 462}
    assert call_tables.in_kernel(numbers, "") == dict(sorted(numbers.items(), key=lambda entry: entry[1]))


def test_whether_a_kernel_has_another_abi():
    assert call_tables.has_abi(TABLES["i386"], SYMBOLS) is True
    assert call_tables.has_abi(TABLES["x32"], SYMBOLS) is False
    assert call_tables.has_abi(TABLES["x32"], "") is None


def test_calls_of_the_kernels_own_probes_do_not_count():
    assert not call_tables.OF_PROBES & TABLES["x86_64"].numbers.keys()


def test_an_architecture_without_a_table():
    with pytest.raises(HostError, match="s390x"):
        call_tables.native("s390x")


def test_a_number_of_this_machines_own_table_is_that_call():
    libc = ctypes.CDLL(None)
    assert libc.syscall(call_tables.native().numbers["getpid"]) == os.getpid()
