"""Counter of source lines, for a kernel that counts its own lines (the lab's flavour `lines`).

Mapping counters to lines needs the compiler's notes and gcov, which would take minutes on an emulated host. So in the
lab a reading is a tar file of all counters beside the results, and `LineCounter.read` returns its name; outside the
lab, `completed` replaces the name with lines.

Such a kernel has only one set of counters, so the host's scope is the only scope, and the idle host is the reference. A
reading also counts itself: files read late include the reads of earlier files. Footprints keep counts as read. The hits
of an empty reading are counted separately (`tare.footprint_model.EMPTY`) and subtracted when footprints are turned into
sets (`tare.features.kernel.analysis.footprint_sets`).
"""

from __future__ import annotations

import contextlib
import io
import os
import tarfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tare.errors import HostError, ParseError
from tare.features.kernel.lab import gcov
from tare.features.kernel.lab.kernel import TOP, Counting
from tare.footprint_model import Footprint, HitCounts, Scope
from tare.host import state
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.model import Level

#: Counters of a kernel that counts its lines.
COUNTERS = Path("/sys/kernel/debug/gcov")
#: Folder for readings in a lab, which comes back with the results.
READINGS = Path("/lab/out/readings")
#: Prefix of the name of a reading's file, which a footprint holds until it is completed.
READING = "reading:"
#: Compression level. Higher levels gain little, and are slow on an emulated processor.
_LEVEL = 1


class LineCounter:
    """Counter that sets the kernel's own counters to zero and reads them. Only one process, this one, may do so."""

    level = Level.LINES
    reads_itself = True

    def __init__(self, counters: Path = COUNTERS, readings: Path = READINGS) -> None:
        self._counters, self._readings = counters, readings
        self._files: list[Path] = []

    def start(self, group: str) -> None:  # noqa: ARG002 (these counters know no groups)
        """Count from zero. Raises `HostError` on a kernel that does not count its lines."""
        check(self._counters)
        if not self._files:
            # List the files once. Modules do not come or go, and a walk over the folders would show up in each reading.
            self._files = sorted((self._counters / TOP.lstrip("/")).rglob(f"*{gcov.COUNTERS}"))
        if not self._files:
            raise HostError(f"the kernel's counters are not below {TOP}", fix="tare lab build --flavour lines")
        self.reset()

    def read(self) -> HitCounts:
        """Write all counters to a file. The one hit is its name; `completed` turns it into lines."""
        assert self._files, "it was not started"
        taken = [(file, _contents(file)) for file in self._files]
        self._readings.mkdir(parents=True, exist_ok=True)
        name = f"{sum(1 for _ in self._readings.iterdir()):05}.tar.gz"
        (self._readings / name).write_bytes(_packed(taken, self._counters / TOP.lstrip("/")))
        return HitCounts(hits={Scope.HOST: {f"{READING}{name}": 1}})

    def reset(self) -> None:
        """Restart the count from zero."""
        (self._counters / "reset").write_text("1\n")

    def stop(self) -> None:
        """Do nothing, because this kernel always counts."""


def check(counters: Path = COUNTERS) -> None:
    """Raise `HostError` on a kernel that does not count its lines."""
    if not os.access(counters / "reset", os.W_OK):  # Only root may read debugfs on some hosts.
        raise HostError(
            f"the kernel {os.uname().release} does not count its lines",
            fix="tare footprint --level lines, without --here: it boots a lab whose kernel does",
        )


def _contents(file: Path) -> bytes:
    with file.open("rb", buffering=0) as raw:
        return raw.read()


def _packed(taken: Iterable[tuple[Path, bytes]], top: Path) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=_LEVEL) as tar:
        for file, contents in taken:
            info = tarfile.TarInfo(str(file.relative_to(top)))
            info.size = len(contents)
            tar.addfile(info, io.BytesIO(contents))
    return packed.getvalue()


def completed(footprints: Iterable[Footprint], readings: Path, kernel: Counting) -> Iterator[Footprint]:
    """Yield the footprints with lines in place of the readings that they name; drop those in the instance's scope.

    ``readings``: the folder that came back from the lab. Raises `ParseError` for a reading that is missing, incomplete,
    or of another kernel.
    """
    all_lines = sum(map(len, kernel.lines().values()))
    with summing(kernel) as sums:
        for footprint in footprints:
            if footprint.level is not Level.LINES:
                yield footprint
            elif footprint.scope is Scope.HOST:
                coverage = sums(_reading(footprint, readings))
                yield footprint.model_copy(update={"hits": coverage.hits(), "known": all_lines})


def _reading(footprint: Footprint, readings: Path) -> bytes:
    names = [name.removeprefix(READING) for name in footprint.hits if name.startswith(READING)]
    if len(names) != 1 or Path(names[0]).name != names[0]:
        raise ParseError("a footprint of lines names no reading: it is completed already, or not of a lab")
    try:
        with (readings / names[0]).open("rb") as file:
            return file.read(gcov.MAX_COUNTERS)
    except OSError as error:
        raise ParseError(f"the reading {names[0]} is not in {readings}: {error.strerror}") from error


@contextlib.contextmanager
def summing(kernel: Counting) -> Iterator[Callable[[bytes], gcov.Coverage]]:
    """Yield a function that turns a reading into lines. At the end, remove its folder with the compiler's notes."""
    with CleanupStack() as resources:
        space = state.work() / f"lines-{os.getpid()}"
        resources.own(removers.folder(space))
        space.mkdir()
        objects = kernel.unpack_notes(space)
        program = kernel.gcov()
        yield lambda packed: _sum(packed, space, objects, program)


def _sum(packed: bytes, space: Path, objects: list[str], program: list[str]) -> gcov.Coverage:
    counters = gcov.counters_in(packed)
    if set(counters) != set(objects):
        raise ParseError(
            f"a reading has counters of {len(counters)} objects, this kernel has {len(objects)}",
            fix="the kernel was rebuilt in the meantime: run tare footprint again",
        )
    # Skip objects that did not run: most did not, and gcov's time grows with its input.
    running = [name for name in objects if gcov.ran(counters[name])]
    for name in running:
        notes = space / f"{name}{gcov.NOTES}"
        if gcov.stamp(notes.read_bytes()) != gcov.stamp(counters[name]):
            raise ParseError(f"the counters of {name} are another kernel's", fix="tare footprint again")
        notes.with_suffix(gcov.COUNTERS).write_bytes(counters[name])
    try:
        return gcov.cover(program, space, running, TOP)
    finally:
        for name in running:
            (space / f"{name}{gcov.COUNTERS}").unlink()
