"""Files that users write and give beside campaigns: short, regular, UTF-8; all else is refused in one line."""

from __future__ import annotations

import io
import re
import shlex
import stat
import tomllib
from pathlib import Path
from typing import Any

from tare.errors import UsageError

#: Bytes of a file that a user writes: a profile, weights, a table of functions.
MAX_BYTES = 64 << 20
#: Most parts of a key: the time of `tomllib` grows with their square.
MAX_PARTS = 500
_PART = r"\.[ \t]*+(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')[ \t]*+"
_LONG_KEY = re.compile(f"(?:{_PART}){{{MAX_PARTS - 1}}}")


def require_file(file: Path, fix: str = "name a file that there is", *, largest: int = MAX_BYTES) -> None:
    """Raise `UsageError` unless there is such a file, of a size that what users write has."""
    try:
        status = file.stat()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError(f"{file} does not exist", fix=fix) from error
    except OSError as error:
        raise _unreadable(file, error, fix) from error
    if not stat.S_ISREG(status.st_mode):  # a pipe or a device may never end
        raise UsageError(f"{file} is {'a folder' if stat.S_ISDIR(status.st_mode) else 'not a file'}", fix=fix)
    if status.st_size > largest:
        raise _too_large(file, largest, fix)


def read_text(file: Path, fix: str, *, largest: int = MAX_BYTES) -> str:
    """Return the text of a file, without the mark (BOM) that some editors begin it with. Raises `UsageError`."""
    require_file(file, fix, largest=largest)
    try:
        with file.open("rb") as source:
            raw = source.read(largest + 1)
    except OSError as error:
        raise _unreadable(file, error, fix) from error
    if len(raw) > largest:  # it grew, or is one of those of the kernel's that tell no size
        raise _too_large(file, largest, fix)
    try:
        return raw.decode("utf-8-sig")  # Windows' editors begin a file with a byte order mark
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8: {error.reason} at byte {error.start}", fix=fix) from error


def lines(text: str) -> list[str]:
    """Return the lines of a text, with their ends: a line feed ends one, or the end of the text.

    To `str.splitlines` other characters do too (U+0085, U+2028, form feed), which the forms of files have within lines.
    """
    return list(io.StringIO(text, newline="\n"))


def parse_toml(text: str, name: str, fix: str) -> dict[str, Any]:
    """Return the values of a TOML text; ``name`` is for the error. Raises `UsageError`."""
    if (line := line_of_long_key(text)) is not None:
        raise UsageError(f"{name}:{line}: a key of {MAX_PARTS} parts or more is not read", fix=fix)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # tomllib raises more than its own, for long numbers and deep lists
        raise UsageError(f"{name} is not TOML: {error}", fix=fix) from error


def line_of_long_key(text: str) -> int | None:
    """Return the line of a key (``a.b.c``) of `MAX_PARTS` parts or more, slow for `tomllib`; None if there is none."""
    match = _LONG_KEY.search(text)
    return None if match is None else text.count("\n", 0, match.start()) + 1


def read_toml(file: Path, fix: str) -> dict[str, Any]:
    """Return the values of a TOML file. Raises `UsageError`."""
    return parse_toml(read_text(file, fix), str(file), fix)


def refuse_writable(file: Path, what: str) -> None:
    """Raise `UsageError` where others may write to a file that ``what`` says the weight of."""
    if file.stat().st_mode & stat.S_IWOTH:
        raise UsageError(f"{file} {what}, and everybody may write to it", fix=f"chmod o-w {shlex.quote(str(file))}")


def _too_large(file: Path, largest: int, fix: str) -> UsageError:
    limit = f"{largest >> 20} MiB" if largest >> 20 else f"{largest >> 10} KiB"
    return UsageError(f"{file} has more than the {limit} that are read", fix=fix)


def _unreadable(file: Path, error: OSError, fix: str) -> UsageError:
    return UsageError(f"{file} cannot be read: {error.strerror}", fix=fix)
