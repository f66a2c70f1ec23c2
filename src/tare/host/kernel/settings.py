"""One setting of the kernel's: a value in a file below ``/proc`` or ``/sys``, read, written and given back."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from tare.errors import HostError
from tare.host.kernel import text
from tare.host.kernel.owner import boot_id


def read(file: Path) -> str | None:
    """The value; of a choice such as ``always [madvise] never`` the chosen word. None where there is none to read."""
    try:
        return choice(text.read(file))
    except OSError:
        return None


def choice(shown: str) -> str:
    """The value in a setting's file; of a choice such as ``always [madvise] never`` the chosen word."""
    chosen = [word[1:-1] for word in shown.split() if word.startswith("[") and word.endswith("]")]
    return chosen[0] if chosen else shown.strip()


def write(file: Path, value: str) -> None:
    """Set it. Raises `OSError` when the kernel refuses, or accepts it and then has another value."""
    # Without O_CREAT: a folder that only looks like the kernel's would keep a file that nobody reads.
    descriptor = os.open(file, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)
    if read(file) != value:
        raise OSError(errno.EINVAL, f"the kernel says {read(file)} after {value} was written")


def give_back(file: Path, former: str, written: str, when: str) -> None:
    """Set it to what it was before tare wrote, in the boot ``when``; what somebody else has set since stays.

    Raises `HostError` when the kernel refuses.
    """
    # After a reboot all settings are the boot's own, even one that happens to be what tare once wrote.
    if when != boot_id() or read(file) != written or written == former:
        return
    try:
        write(file, former)
    except OSError as error:
        raise HostError(
            f"{file} cannot be set to {former} again: {error.strerror}", fix=f"echo {former} > {file}"
        ) from error
