"""The most memory that a control group has while something runs in it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from tare.errors import HostError
from tare.host.cgroup import Group

NO_PEAK = "this kernel keeps no peak of a control group's memory (Linux from 5.19 on does)"
EARLIER = "more memory was in use before the run, and this kernel cannot forget that (Linux from 6.12 on can)"


@contextlib.contextmanager
def watched(group: Group) -> Iterator[Callable[[], int]]:
    """Yield a function that returns the most memory, in bytes, that a group and all below had in this context so far.

    The memory is what is charged to the group: pages in use, page cache, and the kernel's own for them. The function
    raises `HostError` where that is not known, and so does this where it cannot be.
    """
    if group.unified:
        with _since_opened(group.file("memory", "memory.peak")) as peak:
            yield peak
    else:
        highest = group.file("memory", "memory.max_usage_in_bytes")
        highest.write_text("0")  # any write makes it the present usage
        yield lambda: int(highest.read_bytes())


@contextlib.contextmanager
def _since_opened(file: Path) -> Iterator[Callable[[], int]]:
    """As `watched`, of a v2 group's file: a kernel that can forgets for this descriptor what was before."""
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise HostError(NO_PEAK) from error
    try:
        earlier = -1
        try:
            os.write(descriptor, b"1")
        except OSError:  # it has no such write
            earlier = _number(descriptor)

        def peak() -> int:
            highest = _number(descriptor)
            if highest <= earlier:
                raise HostError(EARLIER)
            return highest

        yield peak
    finally:
        os.close(descriptor)


def _number(descriptor: int) -> int:
    return int(os.pread(descriptor, 64, 0))
