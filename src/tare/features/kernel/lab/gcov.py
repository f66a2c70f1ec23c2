"""Lines of source and their hits, from gcc's notes and counters, by gcov's JSON.

A compiler that counts writes two files for each object. The notes (.gcno), written during compilation, map branches to
lines. The counters (.gcda) record how often each branch was taken; a kernel has them in /sys/kernel/debug/gcov. gcov,
in the compiler's own version, combines both into lines. Formats: gcc 12's gcc/gcov-io.h, and gcov(1) on JSON.
"""

from __future__ import annotations

import gzip
import io
import json
import posixpath
import struct
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tare.errors import ParseError
from tare.host import processes
from tare.host.filesystems import archives
from tare.host.kernel import pinning

#: Format version of gcov's JSON.
FORMAT = "1"
NOTES, COUNTERS = ".gcno", ".gcda"
LIMIT_S = 300.0
#: Objects for each process of gcov, whose start costs as much as a few objects.
BATCH = 24
#: Limit in bytes for the output of one process of gcov about a batch.
_SAID_CAP = 256 << 20
#: Limit in bytes for one unpacked reading. A kernel's counters take about 30 MiB.
MAX_COUNTERS = 256 << 20
_MAGIC = 0x67636461  # "gcda"
_FUNCTION = 0x01000000
#: Tags of the eight kinds of counters. A kernel that counts lines uses the first.
_COUNTERS = range(0x01A10000, 0x01A10000 + 8 * 0x20000, 0x20000)
_HEADER = struct.Struct("<IIII")  # magic, version, stamp, checksum
_RECORD = struct.Struct("<II")  # tag, length in bytes
_UNTAKEN = "cannot open data file, assuming not executed"


@dataclass(slots=True)
class Coverage:
    """Hits of each line with code, and calls of each function, by path relative to the tree. 0: it did not run.

    Lines and functions of a header occur in every object that includes it; their hits are added up.
    """

    lines: dict[str, dict[int, int]] = field(default_factory=dict)
    functions: dict[str, dict[str, int]] = field(default_factory=dict)
    #: Lines with negative hits, which are set to zero. gcov computes branches without a counter by subtraction, and a
    #: task that was inside a function when counting started leaves it without having entered.
    negative: int = 0

    def add(self, document: bytes, top: str) -> None:
        """Add gcov's JSON of one object. ``top``: the tree that it was compiled in. Raises `ParseError`."""
        try:
            report = json.loads(document)
            if report["format_version"] != FORMAT:
                raise ParseError(f"gcov's JSON has format {report['format_version']!r}, tare knows {FORMAT}")
            for source in report["files"]:
                self._add_source(source, top)
        except (ValueError, KeyError, TypeError) as error:
            shown = document[:200].decode(errors="replace")
            raise ParseError(f"gcov's JSON is not as tare knows it ({error!r}): {shown}") from error

    def _add_source(self, source: Mapping[str, Any], top: str) -> None:
        path = relative(source["file"], top)
        lines = self.lines.setdefault(path, {})
        for line in source["lines"]:
            number, count = line["line_number"], line["count"]
            if type(number) is not int or type(count) is not int:
                raise TypeError("a line's number or hits are no whole numbers")
            if count < 0:
                self.negative += 1
                count = 0
            lines[number] = lines.get(number, 0) + count
        functions = self.functions.setdefault(path, {})
        for function in source["functions"]:
            name = function["name"]
            functions[name] = functions.get(name, 0) + max(0, function["execution_count"])

    def hits(self) -> dict[str, int]:
        """Return the lines that ran, as "mm/mmap.c:1405", sorted by path and number."""
        return {
            f"{path}:{number}": count
            for path, lines in sorted(self.lines.items())
            for number, count in sorted(lines.items())
            if count
        }

    @property
    def known(self) -> int:
        """Return the number of lines with code."""
        return sum(len(lines) for lines in self.lines.values())


def relative(file: str, top: str) -> str:
    """Return a source's path in its tree. gcc names it as on its command line: relative, with dots, or in full."""
    return posixpath.relpath(posixpath.join(top, file), top)


def stamp(data: bytes) -> int:
    """Return the stamp that notes and counters of one compilation share. Raises `ParseError`."""
    if len(data) < _HEADER.size:
        raise ParseError("a file of gcc's notes or counters is cut short")
    return int(_HEADER.unpack_from(data)[2])


def ran(counters: bytes) -> bool:
    """Return True if any counter of an object is not zero. Raises `ParseError` if the data are not counters."""
    return any(any(values) for values in _values(counters))


def _values(counters: bytes) -> Iterator[bytes]:
    """Yield the values of each record of counters: 64 bits each, little-endian."""
    if len(counters) < _HEADER.size or _HEADER.unpack_from(counters)[0] != _MAGIC:
        raise ParseError("these are no counters of gcc's")
    place = _HEADER.size
    while place < len(counters):
        if place + _RECORD.size > len(counters):
            raise ParseError("counters of gcc's are cut short")
        tag, length = _RECORD.unpack_from(counters, place)
        place += _RECORD.size
        if place + length > len(counters):
            raise ParseError("counters of gcc's are cut short")
        if tag in _COUNTERS:
            yield counters[place : place + length]
        elif tag != _FUNCTION:
            raise ParseError(f"counters of gcc's have a record of an unknown kind, {tag:#x}")
        place += length


def cover(program: Sequence[str], folder: Path, objects: Sequence[str], top: str, *, fresh: bool = False) -> Coverage:
    """Return what ran of the objects with notes and counters below a folder, by path without suffix.

    ``fresh``: there are no counters yet, so no line ran. Raises `ParseError` if gcov does not accept them.
    """
    batches = [objects[place : place + BATCH] for place in range(0, len(objects), BATCH)]
    coverage = Coverage()
    with ThreadPoolExecutor(max_workers=max(1, len(pinning.usable()))) as pool:
        for batch, output in zip(
            batches, pool.map(lambda batch: _run(program, folder, batch, fresh), batches), strict=True
        ):
            documents = output.splitlines()
            if len(documents) != len(batch):
                raise ParseError(f"gcov said something about {len(documents)} of {len(batch)} objects")
            for document in documents:
                coverage.add(document, top)
    return coverage


def _run(program: Sequence[str], folder: Path, objects: Sequence[str], fresh: bool) -> bytes:
    argv = [*program, "--stdout", "--json-format", *(f"{name}{NOTES}" for name in objects)]
    done = processes.run(argv, cwd=folder, time_limit_s=LIMIT_S, output_cap=_SAID_CAP)
    if done.truncated:
        raise ParseError(f"gcov said more than {_SAID_CAP >> 20} MiB of {len(objects)} objects")
    complaints = [
        line for line in done.stderr.decode(errors="replace").splitlines() if not (fresh and _UNTAKEN in line)
    ]
    if done.code != 0 or done.timed_out or complaints:
        why = complaints[0] if complaints else f"exit code {done.code}"
        raise ParseError(f"gcov does not take the counters: {why}", fix="tare lab build --flavour lines")
    return done.stdout


def counters_in(packed: bytes) -> dict[str, bytes]:
    """Return the counters in a tar that gzip(1) compressed, by path without suffix. Raises `ParseError`."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
            plain = file.read(MAX_COUNTERS + 1)
        if len(plain) > MAX_COUNTERS:
            raise ParseError(f"a reading of counters has more than {MAX_COUNTERS >> 20} MiB")
        return {
            str(name).removesuffix(COUNTERS): contents.read()
            for name, contents in archives.members(io.BytesIO(plain), 2 * MAX_COUNTERS)
            if contents is not None and name.suffix == COUNTERS
        }
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise ParseError(f"a reading of counters cannot be unpacked: {error}") from error
