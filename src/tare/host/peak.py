"""Peak memory of a control group within a context."""

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
    """Yield a function that returns the peak memory, in bytes, of a group and all below in this context so far.

    The memory is the group's charge: pages in use, page cache, and the kernel's own for them. The function raises
    `HostError` if the figure is unknown, and so does this function if it cannot be known.
    """
    if group.unified:
        with _since_opened(group.file("memory", "memory.peak")) as peak:
            yield peak
    else:
        highest = group.file("memory", "memory.max_usage_in_bytes")
        highest.write_text("0")  # Any write resets it to the present usage.
        yield lambda: int(highest.read_bytes())


@contextlib.contextmanager
def _since_opened(file: Path) -> Iterator[Callable[[], int]]:
    """Implement `watched` by a v2 group's file: a recent kernel resets the peak for this descriptor alone."""
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise HostError(NO_PEAK) from error
    try:
        earlier = -1
        try:
            os.write(descriptor, b"1")
        except OSError:  # The kernel does not support this write.
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
