"""How what is built takes its place: it is made beside it and renamed when whole, by one builder at a time."""

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
    """A folder to make something in; it is renamed to its place when all went well, and is removed when not.

    Raises `ImageError` where it cannot be written.
    """
    folder = place.with_name(f"new-{place.name}")
    if folder.exists():  # a killed build's: with the lock held, nobody else builds it
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
    """Hold the lock of a folder's builds; waits while another process builds there."""
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
