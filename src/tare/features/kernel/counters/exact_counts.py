"""Exact counts of the instructions that a whole machine executes, by its emulator's plug-in (`lab.exact`).

Inside that machine, a counter can only mark where a window opens and closes, with a no-op instruction that the plug-in
recognizes. `InstructionCounter.read` returns the window's number. Outside the machine, `completed` replaces it with
the plug-in's counts, as for lines (`tare.features.kernel.counters.source_lines`). The hits of a footprint are then
counts by
part:
- ``user``, ``kernel``: instructions of programs and of the kernel; ``repeated``: iterations of string instructions,
  which those two exclude; ``loads``, ``stores``: instructions that read and wrote memory; ``calls``, ``switches``:
  system calls, and switches of tasks; ``faults``, ``interrupts``: page faults, and interrupts of devices and timers.
- ``fetched``, ``moved``: cache lines of code and of data that were looked up in the model of caches, if it was
  requested; ``l1i``, ``l1d``, ``l2``, ``l3``: lines that missed in that cache (lab/icount/caches.h).
- ``units``: units of work in a run.
- ``ready;PART``: in a start, the count of PART until the agent was ready.
- ``of;WHOSE;COMMAND;PART``: PART of the tasks with the name COMMAND; WHOSE is ``instance`` or ``host``. They add up to
  the total.
- ``code;WHOSE;COMMAND;SIDE;PLACE``: instructions of those tasks by code: for SIDE ``user``, PLACE is the mapped file;
  for SIDE ``kernel``, the function. The largest places are listed, and the others are summed into one place.
- ``piece;NUMBER;PART`` and ``piece;NUMBER;units``: counts and units of one piece of a probe's work.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tare.errors import HostError, ParseError
from tare.footprint_model import PARTS, SIDES, UNITS, Footprint, HitCounts, Scope
from tare.model import Level

#: Environment variable that is set in a machine whose instructions are counted.
COUNTED = "TARE_COUNTED"
#: Kinds of marks (icount/plugin.c); the agent uses the others.
OPEN, CLOSE = 1, 2
_MAGIC = 0x7A4E0000
_RETURN = b"\xc3"
_WINDOW = "window:"
#: Read limit for a log.
MAX_LOG_CHARS = 256 << 20

PartCounts = Mapping[str, int]


class InstructionCounter:
    """Counter that marks windows for the plug-in of the emulator that runs this machine."""

    level = Level.INSTRUCTIONS
    reads_itself = False  # A read executes only a few instructions.

    def __init__(self) -> None:
        self._group = ""
        self._number = 0

    def start(self, group: str) -> None:
        """Open a window. Raises `HostError` on a machine whose instructions are not counted."""
        check()
        self._group = group
        self.reset()

    def read(self) -> HitCounts:
        """Close the window. The one hit holds its number and group; `completed` turns it into counts."""
        _mark(CLOSE, self._number)
        named = {f"{_WINDOW}{self._number}:{self._group}": 1}
        return HitCounts(hits={Scope.HOST: named, Scope.INSTANCE: named})

    def reset(self) -> None:
        """Open another window, which counts from zero."""
        self._number += 1
        _mark(OPEN, self._number)

    def stop(self) -> None:
        """Do nothing, because there is nothing to switch off."""


def check() -> None:
    """Raise `HostError` on a machine whose instructions are not counted."""
    if COUNTED not in os.environ:
        raise HostError(
            "a machine's instructions are counted from outside of it, by its emulator",
            fix="tare footprint --level instructions, without --here: it boots a machine that is counted",
        )


def _mark(kind: int, number: int) -> None:
    """Execute a mark. ``number`` is passed in RDI, like a function's first argument."""
    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as page:
        page.write(b"\x0f\x1f\x84\x00" + (_MAGIC | kind).to_bytes(4, "little") + _RETURN)
        anchor = ctypes.c_char.from_buffer(page)
        try:
            ctypes.CFUNCTYPE(None, ctypes.c_uint64)(ctypes.addressof(anchor))(number)
        finally:
            del anchor


@dataclass(slots=True)
class CountWindow:
    """Counts of one window, as QEMU's plug-in wrote them."""

    whole: PartCounts = field(default_factory=dict)
    ready: PartCounts | None = None
    pieces: list[PartCounts] = field(default_factory=list)  # with `UNITS`
    shares: list[tuple[str, str, PartCounts]] = field(default_factory=list)  # command, control group, counts
    # command, control group, side, place, instructions
    code: list[tuple[str, str, str, str, int]] = field(default_factory=list)


def parse(log: str) -> dict[int, CountWindow]:
    """Return the closed windows in a plug-in's log, by number. Raises `ParseError`."""
    windows: dict[int, CountWindow] = {}
    closed: set[int] = set()
    for line in log.splitlines():
        kind, _, rest = line.partition(" ")
        words = rest.split(" ")
        if kind == "code":
            _add_code(windows, words, line)
            continue
        numbers = [int(word) for word in words[: 1 + len(PARTS)] if word.isdecimal()]
        if kind not in {"window", "ready", "piece", "share"} or len(numbers) != 1 + len(PARTS):
            raise _unknown(line)
        window = windows.setdefault(numbers[0], CountWindow())
        counts = dict(zip(PARTS, numbers[1:], strict=True))
        trailing = words[1 + len(PARTS) :]
        if kind == "window":
            window.whole = counts
            closed.add(numbers[0])
        elif kind == "ready":
            window.ready = counts
        elif kind == "piece" and len(trailing) == 1 and trailing[0].isdecimal():
            window.pieces.append({**counts, UNITS: int(trailing[0])})
        elif kind == "share" and len(trailing) == 2:
            window.shares.append((trailing[0], trailing[1], counts))
        else:
            raise _unknown(line)
    return {number: window for number, window in windows.items() if number in closed}


def _add_code(windows: dict[int, CountWindow], words: list[str], line: str) -> None:
    if len(words) != 6 or not (words[0].isdecimal() and words[1].isdecimal()) or words[2] not in SIDES:
        raise _unknown(line)
    number, count, side, command, group, place = words
    windows.setdefault(int(number), CountWindow()).code.append((command, group, side, place, int(count)))


def _unknown(line: str) -> ParseError:
    return ParseError(f"the log of the emulator's plug-in has the line {line[:80]!r}")


def completed(footprints: Iterable[Footprint], log: Path) -> Iterator[Footprint]:
    """Yield the footprints with the plug-in's counts in place of window numbers. Raises `ParseError`."""
    with log.open(encoding="ascii", errors="replace") as file:
        windows = parse(file.read(MAX_LOG_CHARS))
    for footprint in footprints:
        if footprint.level is not Level.INSTRUCTIONS:
            yield footprint
            continue
        number, group = _named(footprint)
        if number not in windows:
            raise ParseError(f"the emulator's plug-in wrote nothing of window {number}")
        hits = hits_of(windows[number], group, footprint.scope) | {UNITS: footprint.hits.get(UNITS, 0)}
        yield footprint.model_copy(update={"hits": {name: count for name, count in hits.items() if count > 0}})


def _named(footprint: Footprint) -> tuple[int, str]:
    names = [name.removeprefix(_WINDOW) for name in footprint.hits if name.startswith(_WINDOW)]
    number, _, group = names[0].partition(":") if len(names) == 1 else ("", "", "")
    if not number.isdecimal():
        raise ParseError("a footprint of instructions names no window: it is completed already, or of no such machine")
    return int(number), group


def hits_of(window: CountWindow, group: str, scope: Scope) -> dict[str, int]:
    """Return a window's counts by part. In the instance's scope, count only tasks in ``group`` and below."""
    hits: dict[str, int] = {}
    top = f"/{group.strip('/')}"

    def whose(path: str) -> Scope:
        return Scope.INSTANCE if path == top or path.startswith(f"{top}/") else Scope.HOST

    for command, path, counts in window.shares:
        if scope in {whose(path), Scope.HOST}:
            _add(hits, f"of;{whose(path)};{_plain(command)};", counts)
            if scope is Scope.INSTANCE:
                _add(hits, "", counts)
    if scope is Scope.HOST:
        _add(hits, "", window.whole)
        if window.ready is not None:
            _add(hits, "ready;", window.ready)
        for number, piece in enumerate(window.pieces):
            _add(hits, f"piece;{number};", piece)
        for command, path, side, place, count in window.code:
            _add(hits, f"code;{whose(path)};{_plain(command)};{side};", {_plain(place): count})
    return hits


def _add(hits: dict[str, int], prefix: str, counts: PartCounts) -> None:
    for part, count in counts.items():
        hits[f"{prefix}{part}"] = hits.get(f"{prefix}{part}", 0) + count


def _plain(name: str) -> str:
    """Return a name without semicolons, which separate the parts of a hit's name."""
    return name.replace(";", "_")
