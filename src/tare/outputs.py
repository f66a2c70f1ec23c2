"""Outputs for users: checked before any work, written beside their place, and whole.

An output that is an input is refused. Whatever ends the writing, at the place is what was there before or all of what
was to be written, never a part; the one thing that a kill can leave is a hidden file or folder beside it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tare.errors import StoreError, UsageError
from tare.fsync import fsync_folder
from tare.store import exists, file_of, places

CAMPAIGN = ".tare"
PAGE = ".html"
#: How every page of tare's begins, and by which it is known that nothing but such a page is replaced.
DOCTYPE = "<!doctype html>"
_OTHER_NAME = "give another name"
#: How a file of SQLite's begins.
_SQLITE = b"SQLite format 3\0"


def page_of(campaign: Path) -> Path:
    """Return where a campaign's page is: ``night.html`` of ``night.tare``, else the whole name and ``.html``.

    Of a campaign that is in no file it is in the current folder.
    """
    page = campaign.name.removesuffix(CAMPAIGN) + PAGE
    return Path(page) if file_of(campaign) is None else campaign.with_name(page)


def require_campaign(campaign: Path) -> None:
    """Raise `TareError` unless there is such a campaign (of a file: `tare.store.places.require_file`)."""
    if (file := file_of(campaign)) is not None:
        places.require_file(file)
    elif not exists(campaign):
        raise StoreError(f"{campaign} does not exist", fix="name a campaign that `tare run -o` made")


def check_new_campaign(campaign: Path) -> None:
    """Raise `TareError` unless a new campaign can be made there."""
    file = file_of(campaign)
    if file is None:
        if exists(campaign):
            raise _there(campaign)
        return
    with _translated(file, "made"):
        if os.path.lexists(file):
            raise _there(file)
        for other in places.sqlite_files(file):
            if other.exists():
                raise StoreError(
                    f"{other} is there: the log of a database that was called {file.name}", fix=_OTHER_NAME
                )
        if file.suffix.lower() in {PAGE, ".htm"}:
            raise UsageError(
                f"{file} is the name of a page, and a campaign is kept in a file of its own",
                fix=f"give {file.with_suffix(CAMPAIGN)}; its page is written beside it",
            )
    _check_place(file)


def _there(campaign: Path) -> StoreError:
    return StoreError(f"{campaign} exists and is never overwritten", fix="give another name, or --resume it")


def check_output(place: Path, inputs: Sequence[Path] = (), *, force: bool) -> None:
    """Raise `UsageError` unless a file can be written there. ``force``: it may replace one, but none that is read.

    A campaign is never replaced: it holds what was measured.
    """
    with _translated(place, "written"):
        for file in inputs:
            if _same(place, file):
                raise UsageError(f"{place} is what is read, and is never overwritten", fix=_OTHER_NAME)
    if not force or not os.path.lexists(place):
        check_new(place, force=True)
        return
    with _translated(place, "written"):
        if place.is_dir():
            raise UsageError(f"{place} is a folder", fix=_OTHER_NAME)
        if place.is_file() and _is_database(place):
            raise UsageError(f"{place} is a campaign, or another database, and is never overwritten", fix=_OTHER_NAME)
        target = places.real(place)
        _refuse_planted(target)
    if not _is_stream(place):
        _check_place(target)


def check_new(place: Path, what: str = "", *, force: bool = False) -> None:
    """Raise `UsageError` unless a new file or folder can be made there. ``what``: what it will be, for the message.

    ``force``: the command has ``--force``.
    """
    with _translated(place, "written"):
        if os.path.lexists(place):
            called = f"{place}, which will be {what}," if what else place
            if force:
                raise UsageError(f"{called} exists", fix="--force to replace it, or another name")
            raise UsageError(f"{called} exists and is never overwritten", fix=_OTHER_NAME)
    _check_place(place)


def check_page(page: Path, inputs: Sequence[Path] = ()) -> None:
    """Raise `UsageError` unless a page can be written there: nothing but another page is ever replaced."""
    with _translated(page, "written"):
        for file in inputs:
            if _same(page, file):
                raise UsageError(f"the page would replace {file}, which it is made of", fix=_OTHER_NAME)
        if page.is_dir():
            raise UsageError(f"{page} is a folder", fix=f"give a file in it, such as {page / 'report.html'}")
        if page.is_file() and not _is_page(page):
            raise UsageError(f"{page} is no page of tare's and is not replaced by one", fix=_OTHER_NAME)
        target = places.real(page)
        _refuse_planted(target)
    if not _is_stream(page):
        _check_place(target)


def check_empty_folder(folder: Path) -> None:
    """Raise `UsageError` unless files can be put into this folder, which is empty or will be made, without harm."""
    with _translated(folder, "written"):
        if folder.is_dir():
            _refuse_planted(places.real(folder))
            if next(folder.iterdir(), None) is not None:
                raise UsageError(
                    f"{folder} has files in it, and none is ever overwritten", fix="give a new folder, or an empty one"
                )
            _try_folder(folder)
            return
        nearest = next(parent for parent in folder.absolute().parents if os.path.lexists(parent))
        if os.path.lexists(folder) or not nearest.is_dir():
            raise UsageError(f"{folder} cannot be a folder: there is a file", fix=_OTHER_NAME)
        _try_folder(nearest)


@contextlib.contextmanager
def written(place: Path, mode: str = "w", *, new: bool = False) -> Iterator[Any]:
    """Provide a file to write to, which takes its place when all went well. ``new``: nothing there is replaced.

    ``mode``: ``w`` (UTF-8; what that cannot have is escaped) or ``wb``. A link stays, and what it names is replaced; a
    pipe or a device is written to. A file that is replaced hands on its owner and mode. Raises `UsageError` where it
    cannot be written.
    """
    encoding, errors = (None, None) if "b" in mode else ("utf-8", "backslashreplace")
    with _translated(place, "written"):
        # A link that came to a new file's place since that was checked is not followed.
        target = places.real(place.parent) / place.name if new else places.real(place)
        if not new:
            _refuse_planted(target)
        if _is_stream(place):
            with place.open(mode, encoding=encoding, errors=errors) as file:
                yield file
            return
        part = _part(target)
        descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)
        try:
            with os.fdopen(descriptor, mode, encoding=encoding, errors=errors) as file:
                _like(target, file.fileno())
                yield file
                file.flush()
                os.fsync(file.fileno())
            (_take if new else Path.replace)(part, target)
            fsync_folder(target.parent)
        finally:
            part.unlink(missing_ok=True)


def _take(part: Path, target: Path) -> None:
    """Rename where nothing is; unlike `Path.rename` this does not replace what came there meanwhile."""
    try:
        target.hardlink_to(part)
    except FileExistsError:
        raise
    except OSError:  # a filesystem without hard links
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        part.replace(target)


def _part(target: Path) -> Path:
    return target.with_name(f".tare-{os.urandom(6).hex()}")


def _like(target: Path, descriptor: int) -> None:
    """Give a new file the owner and mode of what it replaces, as far as one may."""
    with contextlib.suppress(OSError):
        former = target.stat()
        os.fchown(descriptor, former.st_uid, former.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(former.st_mode))


def _check_place(place: Path) -> None:
    if (database := places.database_of(place)) is not None:
        raise UsageError(f"{place} is where SQLite keeps what belongs to {database}", fix=_OTHER_NAME)
    with _translated(place, "written"):
        if not place.parent.is_dir():
            raise UsageError(f"{place} cannot be written: there is no folder {place.parent}", fix="make it first")
        _try_folder(place.parent)


def _try_folder(folder: Path) -> None:
    """By really making a file, which a filesystem that is full or cannot be written does not let one do."""
    trial = _part(folder / "trial")
    try:
        trial.touch(exist_ok=False)
    finally:
        trial.unlink(missing_ok=True)


def _same(output: Path, given: Path) -> bool:
    """Return True if an output is a file that is read, by whatever name, or one that SQLite keeps beside it."""
    if output.exists() and given.exists() and output.samefile(given):
        return True
    database = places.real(given)
    return places.real(output) in {database, *places.sqlite_files(database)}


def _refuse_planted(target: Path) -> None:
    if os.path.lexists(target):
        places.refuse_planted(target)


def _is_stream(place: Path) -> bool:
    return place.exists() and not place.is_file() and not place.is_dir()


def _is_database(file: Path) -> bool:
    with file.open("rb") as there:
        return there.read(len(_SQLITE)) == _SQLITE


def _is_page(file: Path) -> bool:
    with file.open("rb") as there:
        start = there.read(len(DOCTYPE))
    return start.lower() in {b"", DOCTYPE.encode()}


@contextlib.contextmanager
def _translated(place: Path, action: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise UsageError(
            f"{place} cannot be {action}: {error.strerror or error}", fix="see to that, or choose another place"
        ) from error
