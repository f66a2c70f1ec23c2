"""A reading of the kernel's line counters as lcov makes lines of it, beside tare's: totals, hits line by line, time.

    .venv/bin/python bench/lcov_beside.py OUT/readings/00000.tar.gz

lcov (apt-get install lcov) is needed for this alone. Readings of a lab come out of it, for instance, with
`tare lab run --flavour lines --out OUT -- python3 tests/lab/lines.py`. Goal: no line differs.
"""

from __future__ import annotations

import shlex
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from tare.errors import UsageError
from tare.features.kernel.counters.source_lines import summing
from tare.features.kernel.lab import gcov, kernel
from tare.features.kernel.lab.kernel import Counting
from tare.host import processes

LIMIT_S = 3600.0
#: Lines that are shown of those that differ.
SHOWN = 10

Lines = dict[tuple[str, int], int]


def main() -> None:
    """Print both and what differs; exit code 1 where anything does."""
    if len(sys.argv) != 2:
        raise UsageError("one reading is needed", fix="bench/lcov_beside.py OUT/readings/00000.tar.gz")
    packed = Path(sys.argv[1]).read_bytes()
    counting = kernel.ensure("lines", lambda message: print(message, file=sys.stderr))
    assert counting is not None, "that flavour has a kernel of its own"
    ours, our_s = _ours(packed, counting)
    with tempfile.TemporaryDirectory() as folder:
        theirs, their_s = _theirs(packed, counting, Path(folder))
    for name, lines, seconds in (("tare", ours, our_s), ("lcov", theirs, their_s)):
        hit = sum(1 for hits in lines.values() if hits)
        print(f"{name}: {len(lines):,} lines, {hit:,} of them ran ({100 * hit / len(lines):.2f} %), {seconds:.0f} s")
    differ = sorted(line for line in ours.keys() | theirs.keys() if ours.get(line) != theirs.get(line))
    print(f"lines that differ: {len(differ):,}")
    for path, number in differ[:SHOWN]:
        print(f"  {path}:{number}: tare {ours.get((path, number))}, lcov {theirs.get((path, number))}")
    sys.exit(1 if differ else 0)


def _ours(packed: bytes, counting: Counting) -> tuple[Lines, float]:
    began = time.monotonic()
    with summing(counting) as lines_of:
        ran = lines_of(packed).lines
    seconds = time.monotonic() - began
    coverable = {(path, line): 0 for path, lines in counting.lines().items() for line in lines}
    return coverable | {(path, line): hits for path, lines in ran.items() for line, hits in lines.items()}, seconds


def _theirs(packed: bytes, counting: Counting, folder: Path) -> tuple[Lines, float]:
    tree, tool, info = folder / "linux", folder / "gcov", folder / "kernel.info"
    tree.mkdir()
    counting.unpack_sources(tree)
    counting.unpack_notes(tree)
    for name, counters in gcov.counters_in(packed).items():
        (tree / f"{name}{gcov.COUNTERS}").write_bytes(counters)
    tool.write_text(f'#!/bin/sh\nexec {shlex.join(counting.gcov())} "$@"\n')
    tool.chmod(0o755)
    argv = ["lcov", "--capture", "--directory", tree, "--base-directory", tree, "--gcov-tool", tool, "-o", info]
    began = time.monotonic()
    done = processes.run([str(word) for word in argv], time_limit_s=LIMIT_S)
    sys.stderr.write(done.stderr.decode(errors="replace")[-2000:])
    done.require(fix="apt-get install lcov")
    return merged(info.read_text().splitlines(), str(tree)), time.monotonic() - began


def merged(info: Iterable[str], tree: str) -> Lines:
    """Hits by line of a tracefile of lcov's, in which a source has a record for each object that has it."""
    lines: defaultdict[tuple[str, int], int] = defaultdict(int)
    for path, line, hits in _records(info):
        lines[gcov.relative(path, tree), line] += hits
    return dict(lines)


def _records(info: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    path = ""
    for entry in info:
        kind, _, value = entry.partition(":")
        if kind == "SF":
            path = value
        elif kind == "DA":
            line, hits, *_ = value.split(",")
            yield path, int(line), int(hits)


if __name__ == "__main__":
    main()
