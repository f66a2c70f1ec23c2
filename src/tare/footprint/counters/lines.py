"""Counts lines of the kernel's source, on a kernel that counts its own (the lab's flavour `lines`).

Counters become lines by the compiler's notes and gcov, which would take an emulated host minutes. So in the lab a
reading is a tar of all counters beside the results, and what `LineCounter.read` answers names it; outside, `completed`
puts the lines in its place. Such a kernel has one set of counters: there is only the host's scope, and
the idle host is what it is to be set against. The reading itself is in what it reads, as files that come late in it see
those that came before. A footprint has it too, as it was read; the hits of a reading itself are counted apart
(`tare.footprint_model.EMPTY`), and subtracted where sets are made of footprints (`tare.analysis.exposure.footprints`).
"""

from __future__ import annotations

import contextlib
import io
import os
import tarfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tare.errors import HostError, ParseError
from tare.footprint_model import Counts, Footprint, Scope
from tare.host import state
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.lab import gcov
from tare.lab.kernel import TOP, Counting
from tare.model import Level

#: Where a kernel that counts has its counters.
COUNTERS = Path("/sys/kernel/debug/gcov")
#: Where readings go in a lab: they come back with its results.
READINGS = Path("/lab/out/readings")
#: What a footprint has in place of its lines until it is completed, before the name of the reading's file.
READING = "reading:"
#: Of compression: more gains little, and takes an emulated processor long.
_LEVEL = 1


class LineCounter:
    """Counts by the kernel itself, which always does: counters are set to zero, and read by one process, this one."""

    level = Level.LINES
    reads_itself = True

    def __init__(self, counters: Path = COUNTERS, readings: Path = READINGS) -> None:
        self._counters, self._readings = counters, readings
        self._files: list[Path] = []

    def start(self, group: str) -> None:  # noqa: ARG002 (these counters know no groups)
        """Count from zero. Raises `HostError` on a kernel that does not count its lines."""
        check(self._counters)
        if not self._files:
            # Once, as no module comes or goes: the walk over the folders would be in each reading.
            self._files = sorted((self._counters / TOP.lstrip("/")).rglob(f"*{gcov.COUNTERS}"))
        if not self._files:
            raise HostError(f"the kernel's counters are not below {TOP}", fix="tare lab build --flavour lines")
        self.reset()

    def read(self) -> Counts:
        """Write all counters to a file, whose name is the one hit: `completed` makes lines of it."""
        assert self._files, "it was not started"
        taken = [(file, _contents(file)) for file in self._files]
        self._readings.mkdir(parents=True, exist_ok=True)
        name = f"{sum(1 for _ in self._readings.iterdir()):05}.tar.gz"
        (self._readings / name).write_bytes(_packed(taken, self._counters / TOP.lstrip("/")))
        return Counts(hits={Scope.HOST: {f"{READING}{name}": 1}})

    def reset(self) -> None:
        """Begin to count from zero again."""
        (self._counters / "reset").write_text("1\n")

    def stop(self) -> None:
        """Nothing is switched on that could be switched off: this kernel always counts."""


def check(counters: Path = COUNTERS) -> None:
    """Raise `HostError` on a kernel that does not count its lines."""
    if not os.access(counters / "reset", os.W_OK):  # debugfs may be closed to whoever asks
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
    """The footprints with lines in place of the readings that they name, without those of the instance's scope.

    ``readings``: the folder that came back from the lab. Raises `ParseError` for a reading that is missing, not whole,
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
    """A function that makes lines of a reading; its folder with the compiler's notes is removed at the end."""
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
            fix="the kernel was built anew meanwhile: tare footprint again",
        )
    # Most objects do nothing in most readings, and gcov's time goes by what it is given.
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
