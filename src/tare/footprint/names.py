"""Names of system calls by number: libseccomp's table, with what has been added to the kernel since."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType

from tare.errors import HostError


class Abi(IntEnum):
    """How a program calls the kernel; the value is the audit architecture (linux/audit.h)."""

    X86_64 = 0xC000003E
    I386 = 0x40000003
    AARCH64 = 0xC00000B7


#: From this number on calls have the same number on all architectures; of the kernel's scripts/syscall.tbl up to 6.18.
#: libseccomp's table may be older than the kernel is.
_COMMON: Mapping[int, str] = MappingProxyType({
    424: "pidfd_send_signal", 425: "io_uring_setup", 426: "io_uring_enter", 427: "io_uring_register", 428: "open_tree",
    429: "move_mount", 430: "fsopen", 431: "fsconfig", 432: "fsmount", 433: "fspick", 434: "pidfd_open", 435: "clone3",
    436: "close_range", 437: "openat2", 438: "pidfd_getfd", 439: "faccessat2", 440: "process_madvise",
    441: "epoll_pwait2", 442: "mount_setattr", 443: "quotactl_fd", 444: "landlock_create_ruleset",
    445: "landlock_add_rule", 446: "landlock_restrict_self", 447: "memfd_secret", 448: "process_mrelease",
    449: "futex_waitv", 450: "set_mempolicy_home_node", 451: "cachestat", 452: "fchmodat2", 453: "map_shadow_stack",
    454: "futex_wake", 455: "futex_wait", 456: "futex_requeue", 457: "statmount", 458: "listmount",
    459: "lsm_get_self_attr", 460: "lsm_set_self_attr", 461: "lsm_list_modules", 462: "mseal", 463: "setxattrat",
    464: "getxattrat", 465: "listxattrat", 466: "removexattrat", 467: "open_tree_attr", 468: "file_getattr",
    469: "file_setattr",
})  # fmt: skip
#: Numbers are below this one; the kernel's tables are contiguous up to `_COMMON`.
_END = 512


@functools.cache
def syscall_names(abi: Abi = Abi.X86_64) -> Mapping[int, str]:
    """Every system call's name by number, as a program calls it: ``fstat``, not the kernel's ``newfstat``.

    Raises `HostError` where libseccomp is not installed.
    """
    library = _library()
    names: dict[int, str] = {}
    for number in range(_END):
        found = library.seccomp_syscall_resolve_num_arch(abi.value, number)
        if found:
            names[number] = ctypes.string_at(found).decode("ascii")
            library.free(found)
    missing = _COMMON.keys() - names.keys()
    return MappingProxyType(dict(sorted((names | {number: _COMMON[number] for number in missing}).items())))


class _Library:
    """What is used of libseccomp, and the allocator that its answers come from."""

    def __init__(self) -> None:
        try:
            resolver = ctypes.CDLL("libseccomp.so.2")
        except OSError:
            raise HostError("libseccomp is not installed", fix="apt-get install libseccomp2") from None
        self.seccomp_syscall_resolve_num_arch = resolver.seccomp_syscall_resolve_num_arch
        self.seccomp_syscall_resolve_num_arch.restype = ctypes.c_void_p
        self.seccomp_syscall_resolve_num_arch.argtypes = [ctypes.c_uint32, ctypes.c_int]
        self.free = ctypes.CDLL(None).free
        self.free.restype = None
        self.free.argtypes = [ctypes.c_void_p]


@functools.cache
def _library() -> _Library:
    return _Library()
