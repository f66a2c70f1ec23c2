"""System calls by name, number and architecture, and the subset that this kernel has.

The numbers come from the package system-calls, which is generated from the kernel's own headers with each release.
libseccomp has a table too, but Debian 12's ends at Linux 5.17, so 20 newer calls would be missed. A kernel older than
the tables lacks the newest calls; its symbols show which calls it has.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from system_calls import syscalls

from tare.errors import HostError
from tare.host.kernel import host_text

#: Since Linux 5.1, all architectures share the numbers of new calls, and a call's number and entry point share a name.
#: All calls with lower numbers exist in every kernel that tare runs on. 32-bit ABIs then got twins of some calls (with
#: 64-bit times), up to the second number.
LAST_OF_OLD, LAST_TWIN = 334, 423
#: Part of probes that the host sets. Outside a probe's own code they end in SIGILL. The kernel lets them through any
#: filter (`seccomp_uprobe_exception` in kernel/seccomp.c), so no filter can forbid them, and they do not count.
OF_PROBES = frozenset({"uprobe", "uretprobe"})
#: Bit in the number of an x32 call; x32 shares the architecture of x86-64 (asm/unistd.h).
X32_BIT = 0x40000000
_KALLSYMS = Path("/proc/kallsyms")
#: AUDIT_ARCH_*: the machine's number in ELF, with the bits for 64 bits and little endian (linux/audit.h, elf-em.h).
_LITTLE, _WIDE = 0x40000000, 0x80000000
_I386, _ARM, _X86_64, _ARM64 = 3, 40, 62, 183


@dataclass(frozen=True, slots=True)
class CallTable:
    """The calls of one ABI. ``entry``: pattern of a symbol that a kernel with this ABI has."""

    abi: str
    architecture: int
    numbers: Mapping[str, int]
    entry: str


def native(machine: str | None = None) -> CallTable:
    """Return the calls that count: those of the machine's 64-bit ABI that this kernel has. Raises `HostError`."""
    machine = machine or os.uname().machine
    if machine not in _NATIVE:
        raise HostError(f"system calls of {machine} are not known to tare", fix="use x86-64 or arm64")
    return _NATIVE[machine]()


def kernel() -> str:
    """Return the release and the native ABI of the running kernel. Raises `HostError`."""
    return f"Linux {os.uname().release}, {native().abi}"


def others(machine: str | None = None) -> list[CallTable]:
    """Return the tables of the other ABIs through which the same kernel can be entered."""
    return [make() for make in _OTHERS.get(machine or os.uname().machine, ())]


@functools.cache
def by_number(abi: str) -> Mapping[int, str]:
    """Return the names of all calls of an ABI ("x86_64", "i386"), including calls that this kernel lacks."""
    return MappingProxyType({number: name for name, number in _table(abi).items()})


def in_kernel(numbers: Mapping[str, int], shown: str, old: int = LAST_OF_OLD) -> dict[str, int]:
    """Return the calls of a kernel with the symbols ``shown``, sorted by number; all calls if there are no symbols.

    ``old``: the last number that every kernel has.
    """
    entry_points = set(re.findall(r" __[a-z0-9]+_sys_(\w+)$", shown, re.MULTILINE))
    available = {
        name: number for name, number in numbers.items() if not entry_points or number <= old or name in entry_points
    }
    return dict(sorted(available.items(), key=lambda item: item[1]))


def has_abi(table: CallTable, shown: str) -> bool | None:
    """Return True if a kernel with the symbols ``shown`` has the ABI; None if there are no symbols."""
    return bool(re.search(table.entry, shown)) if " __" in shown else None


@functools.cache
def symbols() -> str:
    """Return the kernel's symbols, possibly with hidden addresses; empty if they cannot be read."""
    try:
        lines = host_text.read(_KALLSYMS).splitlines()
    except OSError:
        return ""
    return "\n".join(line for line in lines if "_sys_" in line)


def version() -> str:
    """Return the version of Linux that the tables are from."""
    return str(syscalls().linux_version)


def _x86_64() -> CallTable:
    return CallTable("x86_64", _X86_64 | _WIDE | _LITTLE, _numbers("x86_64"), r" __x64_sys_")


def _arm64() -> CallTable:
    return CallTable("arm64", _ARM64 | _WIDE | _LITTLE, _numbers("arm64"), r" __arm64_sys_")


def _x32() -> CallTable:
    # The package lists the numbers without the bit.
    numbers = {name: number | X32_BIT for name, number in _numbers("x32").items()}
    return CallTable("x32", _X86_64 | _WIDE | _LITTLE, numbers, r" __x(64|32)_compat_sys_")


def _i386() -> CallTable:
    return CallTable("i386", _I386 | _LITTLE, _numbers("i386", LAST_TWIN), r" __ia32_(compat_)?sys_")


def _arm() -> CallTable:
    return CallTable("arm", _ARM | _LITTLE, _numbers("arm", LAST_TWIN), r" __arm64_compat_sys_")


def _numbers(abi: str, old: int = LAST_OF_OLD) -> dict[str, int]:
    return in_kernel({name: number for name, number in _table(abi).items() if name not in OF_PROBES}, symbols(), old)


def _table(abi: str) -> dict[str, int]:
    table: dict[str, int] = syscalls().load_arch_table(abi)
    return table


_NATIVE = {"x86_64": _x86_64, "aarch64": _arm64}
_OTHERS = {"x86_64": (_x32, _i386), "aarch64": (_arm,)}
