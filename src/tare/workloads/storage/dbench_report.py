"""The output of dbench 4.0: a line a second, a table of latencies, and the throughput of the last of these lines."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tare.errors import ParseError
from tare.workloads.base import Completed
from tare.workloads.output import agree, positive, shown, text_of

#: Rounding of figures that are printed with two or three digits after the point.
_ROUNDED = 0.006
_NUMBER = r"\d+(?:\.\d+)?"
_THROUGHPUT = r"(?:\d+(?:\.\d+)?(?:e[+-]\d+)?)"
_PATTERNS = {
    "version": r"dbench version 4\.00 - Copyright Andrew Tridgell 1999-2004",
    "running": r"Running for (?P<seconds>\d+) seconds with load '(?P<load>[^']+)' and minimum warmup \d+ secs",
    # Printed for a semaphore with the number 0, the first one since the boot, which is valid.
    "semaphore": r"failed to create barrier semaphore",
    "prepared": r"\d+ of \d+ processes prepared for launch +\d+ sec",
    "released": r"releasing clients",
    "warmup": rf"\d+ +\d+ +{_NUMBER} MB/sec +warmup +\d+ sec +latency (?P<latency>{_NUMBER}) ms",
    "execute": (
        rf"(?P<clients>\d+) +\d+ +(?P<rate>{_NUMBER}) MB/sec +execute +\d+ sec +latency (?P<latency>{_NUMBER}) ms"
    ),
    "cleanup": r"\d+ +cleanup +\d+ sec",
    "head": r"Operation +Count +AvgLat +MaxLat",
    "rule": r"-+",
    "operation": rf"[A-Z]\w+ +\d+ +{_NUMBER} +{_NUMBER}",
    "throughput": (
        rf"Throughput (?P<rate>{_THROUGHPUT}) MB/sec(?P<sync> \(sync open\))?  (?P<clients>\d+) clients  "
        rf"(?P<procs>\d+) procs  max_latency=(?P<latency>{_NUMBER}) ms"
    ),
}
_LINES = {kind: re.compile(pattern, re.ASCII) for kind, pattern in _PATTERNS.items()}
#: Each of these once, in this order among the others; the last is the very last line.
_ONCE = ("version", "running", "released", "head", "rule", "throughput")


@dataclass(frozen=True, slots=True)
class DbenchReport:
    """One run: MB (10^6 bytes) a second, and the longest that one operation took, in ms."""

    load: str
    seconds: int
    clients: int
    sync: bool
    rate: float
    latency_ms: float


def read(done: Completed) -> DbenchReport:
    """Read one run. Raises `ParseError` on one that failed, a strange line, or figures that contradict each other."""
    lines = _classified(text_of(done))
    once = [kind for kind, _ in lines if kind in _ONCE]
    if once != list(_ONCE) or lines[-1][0] != "throughput":
        raise ParseError(f"dbench printed half a report: {shown(text_of(done))}")
    by_kind: dict[str, list[re.Match[str]]] = {}
    for kind, match in lines:
        by_kind.setdefault(kind, []).append(match)
    [running], [total] = by_kind["running"], by_kind["throughput"]
    ticks = by_kind.get("execute", [])
    if not ticks:
        raise ParseError("dbench measured no whole second: all clients were still warming up")
    clients = int(total["clients"])
    if {int(tick["clients"]) for tick in ticks} != {clients} or int(total["procs"]) != clients:
        raise ParseError(f"dbench had other clients than {clients} in between")
    rate = positive("dbench", "MB a second", total["rate"])
    agree("dbench", "MB a second", rate, float(ticks[-1]["rate"]), slack=_ROUNDED)
    worst = positive("dbench", "a latency", total["latency"])
    longest = max(float(tick["latency"]) for tick in ticks)
    # Where clients were slow to start, the warm-up has no end, and what was slow in it counts too.
    if worst > longest:
        longest = max([longest, *(float(tick["latency"]) for tick in by_kind.get("warmup", []))])
    agree("dbench", "the longest latency", worst, longest, slack=_ROUNDED)
    return DbenchReport(running["load"], int(running["seconds"]), clients, total["sync"] is not None, rate, worst)


def _classified(text: str) -> list[tuple[str, re.Match[str]]]:
    """Every line that is not empty, by its kind. Raises `ParseError` on a line of no known kind."""
    classified: list[tuple[str, re.Match[str]]] = []
    for line in (line.strip() for line in text.splitlines() if line.strip()):
        matches = ((kind, pattern.fullmatch(line)) for kind, pattern in _LINES.items())
        kind_and_match = next(((kind, match) for kind, match in matches if match is not None), None)
        if kind_and_match is None:
            raise ParseError(f"dbench printed a strange line: {line[:200]!r}")
        classified.append(kind_and_match)
    if not classified:
        raise ParseError("dbench printed nothing")
    return classified
