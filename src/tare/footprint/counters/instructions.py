"""Counts what a whole machine executes, by a plug-in of its emulator (`tare.lab.exact`), to the instruction.

In that machine a counter can only mark where a window begins and ends, by an instruction that does nothing and that the
plug-in knows. What `InstructionCounter.read` answers names the window, and outside `completed` puts the
plug-in's counts in its place, as for lines (`tare.footprint.counters.lines`). Hits of a footprint then are counts by
part:

- ``user``, ``kernel``: instructions of programs and of the kernel; ``repeated``: iterations of string instructions,
  which are not among them; ``loads``, ``stores``: instructions that read and wrote memory; ``calls``, ``switches``:
  system calls, and switches of tasks; ``faults``, ``interrupts``: page faults, and interrupts of devices and timers.
- ``fetched``, ``moved``: lines of memory that a model of caches was asked for, of code and of data, where it was asked
  for; ``l1i``, ``l1d``, ``l2``, ``l3``: those that this cache had not (lab/icount/caches.h).
- ``units``: of a run, how many units its work was.
- ``ready;PART``: the same until the agent was there, in a start.
- ``of;WHOSE;COMMAND;PART``: the same of the tasks of a name; WHOSE is ``instance`` or ``host``. Their sum is the whole.
- ``code;WHOSE;COMMAND;SIDE;PLACE``: instructions of those tasks by the code that they are of: SIDE ``user``, PLACE the
  file that it was mapped from; SIDE ``kernel``, PLACE the function. The largest, and the others as one place.
- ``piece;NUMBER;PART`` and ``piece;NUMBER;units``: of one piece of a probe's work, that was so many units.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tare.errors import HostError, ParseError
from tare.footprint_model import PARTS, SIDES, UNITS, Counts, Footprint, Scope
from tare.model import Level

#: In the environment of a machine that is counted.
COUNTED = "TARE_COUNTED"
#: Kinds of marks (icount/plugin.c); the agent has the others.
OPEN, CLOSE = 1, 2
_MAGIC = 0x7A4E0000
_RETURN = b"\xc3"
_WINDOW = "window:"
#: The most that is read of a log.
MAX_LOG_CHARS = 256 << 20

PartCounts = Mapping[str, int]


class InstructionCounter:
    """Marks windows for the plug-in of the emulator that this machine runs in."""

    level = Level.INSTRUCTIONS
    reads_itself = False  # it is a few instructions

    def __init__(self) -> None:
        self._group = ""
        self._number = 0

    def start(self, group: str) -> None:
        """Begin a window. Raises `HostError` on a machine that is not counted."""
        check()
        self._group = group
        self.reset()

    def read(self) -> Counts:
        """End the window; its number and its group are the one hit, of which `completed` makes counts."""
        _mark(CLOSE, self._number)
        named = {f"{_WINDOW}{self._number}:{self._group}": 1}
        return Counts(hits={Scope.HOST: named, Scope.INSTANCE: named})

    def reset(self) -> None:
        """Begin another window, which counts from zero."""
        self._number += 1
        _mark(OPEN, self._number)

    def stop(self) -> None:
        """Nothing is switched on that could be switched off."""


def check() -> None:
    """Raise `HostError` on a machine whose instructions nobody counts."""
    if COUNTED not in os.environ:
        raise HostError(
            "a machine's instructions are counted from outside of it, by its emulator",
            fix="tare footprint --level instructions, without --here: it boots a machine that is counted",
        )


def _mark(kind: int, number: int) -> None:
    """Execute a mark, with a number that goes with it (in RDI, as a function's first argument is)."""
    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as page:
        page.write(b"\x0f\x1f\x84\x00" + (_MAGIC | kind).to_bytes(4, "little") + _RETURN)
        anchor = ctypes.c_char.from_buffer(page)
        try:
            ctypes.CFUNCTYPE(None, ctypes.c_uint64)(ctypes.addressof(anchor))(number)
        finally:
            del anchor


@dataclass(slots=True)
class Window:
    """The counts of one window, as QEMU's plug-in wrote them."""

    whole: PartCounts = field(default_factory=dict)
    ready: PartCounts | None = None
    pieces: list[PartCounts] = field(default_factory=list)  # with `UNITS`
    shares: list[tuple[str, str, PartCounts]] = field(default_factory=list)  # command, control group, counts
    code: list[tuple[str, str, str, str, int]] = field(default_factory=list)  # the same two, side, place, instructions


def parse(log: str) -> dict[int, Window]:
    """The windows of a plug-in's log by number, those that were closed. Raises `ParseError`."""
    windows: dict[int, Window] = {}
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
        window = windows.setdefault(numbers[0], Window())
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


def _add_code(windows: dict[int, Window], words: list[str], line: str) -> None:
    if len(words) != 6 or not (words[0].isdecimal() and words[1].isdecimal()) or words[2] not in SIDES:
        raise _unknown(line)
    number, count, side, command, group, place = words
    windows.setdefault(int(number), Window()).code.append((command, group, side, place, int(count)))


def _unknown(line: str) -> ParseError:
    return ParseError(f"the log of the emulator's plug-in has the line {line[:80]!r}")


def completed(footprints: Iterable[Footprint], log: Path) -> Iterator[Footprint]:
    """The footprints with the plug-in's counts in place of the windows that they name. Raises `ParseError`."""
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


def hits_of(window: Window, group: str, scope: Scope) -> dict[str, int]:
    """Counts of a window by part; of the instance's scope, those of the tasks in its control group and below alone."""
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
    """A name as a part of a hit's, which has semicolons between them."""
    return name.replace(";", "_")
