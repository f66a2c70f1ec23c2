"""One kernel setting: a value in a file below ``/proc`` or ``/sys``, read, written and restored."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from tare.errors import HostError
from tare.host.kernel import host_text
from tare.host.kernel.owner import boot_id


def read(file: Path) -> str | None:
    """Return the value; for a choice such as ``always [madvise] never`` the chosen word. None if unreadable."""
    try:
        return choice(host_text.read(file))
    except OSError:
        return None


def choice(shown: str) -> str:
    """Return the value in a setting's file; for a choice such as ``always [madvise] never`` the chosen word."""
    chosen = [word[1:-1] for word in shown.split() if word.startswith("[") and word.endswith("]")]
    return chosen[0] if chosen else shown.strip()


def write(file: Path, value: str) -> None:
    """Set it. Raises `OSError` if the kernel refuses, or accepts it but keeps another value."""
    # Without O_CREAT, so that a mere folder in the place of the kernel's gets no file.
    descriptor = os.open(file, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(descriptor, value.encode())
    finally:
        os.close(descriptor)
    if read(file) != value:
        raise OSError(errno.EINVAL, f"the kernel says {read(file)} after {value} was written")


def give_back(file: Path, former: str, written: str, when: str) -> None:
    """Restore the value from before tare's write in the boot ``when``, unless somebody else has changed it since.

    Raises `HostError` if the kernel refuses.
    """
    # After a reboot all settings are the boot's own, even a value that equals tare's.
    if when != boot_id() or read(file) != written or written == former:
        return
    try:
        write(file, former)
    except OSError as error:
        raise HostError(
            f"{file} cannot be set to {former} again: {error.strerror}", fix=f"echo {former} > {file}"
        ) from error
