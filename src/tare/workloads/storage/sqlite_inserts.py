"""SQLite's inserts, a transaction each: a small program whole, whose work is a journal made, synced and removed.

As one of the fixed programs whose instructions are counted (docs/instructions.md). By Python's module, which the image
has: the interpreter's own start is measured apart, and taken off the CPU cost.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.errors import ParseError
from tare.model import Direction, Family, Metric
from tare.workloads.base import Command, Completed, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.output import positive, read_lines, text_of

FOLDER = "/data/tare-sqlite"
LIMIT_S = 600.0
#: For Python; its arguments are the file, and how many inserts.
_SCRIPT = """\
import os, sqlite3, sys, time, zlib
file, many = sys.argv[1], int(sys.argv[2])
if os.path.exists(file):  # of the run before
    os.remove(file)
base = sqlite3.connect(file, isolation_level=None)
base.execute("create table squares (number integer primary key, square text)")
began = time.monotonic()
for number in range(many):
    base.execute("insert into squares values (?, ?)", (number, str(number * number)))
took = time.monotonic() - began
rows, length = base.execute("select count(*), coalesce(sum(length(square)), 0) from squares").fetchone()
line = f"{rows} rows, {length} digits, {took:.6f} s"
print(line, "sum", zlib.crc32(line.encode()))
"""
_PRINTED = r"(?P<line>(?P<rows>\d+) rows, (?P<digits>\d+) digits, (?P<seconds>\d+\.\d{6}) s) sum (?P<sum>\d+)"


class SqliteInsert(RunWorkload):
    """Parameters: how many ``inserts``, each a transaction of its own on the data volume; runs: ``rounds``."""

    name = "sqlite-insert"
    title = "SQLite: inserts of a row, a transaction each"
    family = Family.STORAGE
    metrics = (Metric("rate", "inserts/s", Direction.HIGHER, "rows a second, each on the disk before the next"),)
    work_unit = "insert"
    packages = ("coreutils", "libsqlite3-0", "python3")
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"inserts": 100, "rounds": 2},
        "full": {"inserts": 2_000, "rounds": 4},
    }

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        """Return the commands of a trial; each run makes the database's file anew."""

        def python(inserts: int) -> Command:
            return Command(("python3", "-I", "-c", _SCRIPT, f"{FOLDER}/squares", str(inserts)), time_limit_s=LIMIT_S)

        return RunPlan(
            prepare=(Command(("mkdir", "-p", FOLDER)),),
            starts=(python(0),),
            measures=(python(int(params["inserts"])),),
            cleanup=(Command(("rm", "-rf", FOLDER)),),
        )

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        """Return the rate by the time that Python took for the inserts. Raises `ParseError`."""
        if len(results) != 1:
            raise ParseError(f"one run of SQLite was planned, {len(results)} results came")
        fields = read_lines("SQLite", text_of(results[0]), (_PRINTED,))
        if int(fields["sum"]) != zlib.crc32(fields["line"].encode()):
            raise ParseError("SQLite's figures do not have the sum that came with them")
        inserts = int(params["inserts"])
        digits = sum(len(str(number * number)) for number in range(inserts))
        if (int(fields["rows"]), int(fields["digits"])) != (inserts, digits):
            raise ParseError(
                f"SQLite has {fields['rows']} rows of {fields['digits']} digits, not {inserts} of {digits}"
            )
        seconds = positive("SQLite", "a time", fields["seconds"])
        if seconds > results[0].wall_ns / 1e9:
            raise ParseError(f"SQLite's inserts took {seconds} s of a run of {results[0].wall_ns / 1e9:.6f} s")
        return Outcome({"rate": inserts / seconds}, work=inserts)


WORKLOAD = SqliteInsert()
