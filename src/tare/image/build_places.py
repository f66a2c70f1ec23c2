"""Safe placement of builds: built beside the final place, renamed when complete, by one builder at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from tare.errors import ImageError
from tare.model import Progress


@contextlib.contextmanager
def atomic_directory(place: Path, what: str = "the image") -> Iterator[Path]:
    """Yield a folder to build in. Rename it to its place on success, remove it on failure.

    Raises `ImageError` if it cannot be written.
    """
    folder = place.with_name(f"new-{place.name}")
    if folder.exists():  # Left by a killed build: as the lock is held, nothing else builds it.
        shutil.rmtree(folder)
    folder.mkdir()
    try:
        yield folder
        folder.rename(place)
    except OSError as error:
        raise ImageError(
            f"{what} cannot be written: {error.strerror}", fix=f"free some space below {place.parent}"
        ) from error
    finally:
        if folder.exists():
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def locked(folder: Path, progress: Progress, what: str = "the image") -> Iterator[None]:
    """Hold the lock of a folder's builds. Wait while another process builds there."""
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another build of {what}")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
