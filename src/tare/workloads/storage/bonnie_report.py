"""The output of bonnie++ 2.00 for one run without file creation: each figure twice, in a table and in a CSV line.

The table has three digits and units of its own (bon_time.cpp, DoReportIO); the two are checked against each other. A
phase that took less than half a second has plus signs in place of its figure: it would be too inaccurate.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tare.errors import ParseError
from tare.workloads.base import Completed
from tare.workloads.output import agree, positive, shown, text_of

#: The phases in the order of the columns; all but the last are in KiB/s.
PHASES = ("char-write", "block-write", "rewrite", "char-read", "block-read", "seeks")
#: bonnie++ shows no figure of a phase that was shorter.
TOO_SHORT = "+++++"

_LATENCY = r"\d+(?:us|ms|s)"
_HEAD = (
    r"(?P<format>[\d.]+),(?P<version>[\w.]+),(?P<name>\w+),(?P<concurrency>\d+),(?P<seed>\d+),(?P<size>\d+[MG]),,"
    r"(?P<seeks>\d+),(?P<seekers>\d+)"
)
_FIGURES = r"(?P<figures>(?:,(?:\d+(?:\.\d)?,\d+|\+{5},\+{3})){6})"
#: Seventeen columns of the creation of files and six of its latencies are empty.
_LINE = re.compile(_HEAD + _FIGURES + rf",{{17}}(?:,{_LATENCY}){{6}},{{6}}", re.ASCII)
_CELL = r"\s+(?P<c{0}>\+{{5}}|\d+(?:\.\d)?[kmg]?)\s+(?:\+{{3}}|\d+)"
_ROW = re.compile(r"(?P<name>\w+)\s+(?P<size>\d+[MG])" + "".join(_CELL.format(at) for at in range(6)), re.ASCII)
#: All that is printed, line by line.
_REPORT = (
    re.compile(r"Version +(?P<version>[\w.]+) +-+Sequential Output-+ -+Sequential Input- -+Random-"),
    re.compile(r"-Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--"),
    re.compile(r"Name:Size etc(?: +/sec %CP){6}"),
    _ROW,
    re.compile(rf"Latency(?: +{_LATENCY}){{6}}"),
    _LINE,
)
_UNITS: Mapping[str, float] = {"": 1, "k": 1, "m": 2**10, "g": 2**20}
#: Rounding of the table, in its own unit, in addition to `ROUNDING`.
_ROUNDED = 0.051


@dataclass(frozen=True, slots=True)
class BonnieReport:
    """One run. ``figures``: KiB/s by phase, seeks a second; those that took long enough to have one."""

    size_mib: int
    seed: int
    seeks: int
    seekers: int
    figures: dict[str, float]


def read(done: Completed) -> BonnieReport:
    """Read one run. Raises `ParseError` on one that failed, a strange line, or figures that contradict each other."""
    text = text_of(done)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    matches = [match for pattern, line in zip(_REPORT, lines, strict=False) if (match := pattern.fullmatch(line))]
    if not len(matches) == len(lines) == len(_REPORT):
        raise ParseError(f"bonnie++ printed something else than its table and line of figures: {shown(text)}")
    row, line = matches[_REPORT.index(_ROW)], matches[_REPORT.index(_LINE)]
    cells = line["figures"].split(",")[1::2]
    if line["concurrency"] != "1" or (line["name"], line["size"]) != (row["name"], row["size"]):
        raise ParseError(f"bonnie++ has one run in its table, another in its line: {shown(text)}")
    figures: dict[str, float] = {}
    for at, (phase, cell) in enumerate(zip(PHASES, cells, strict=True)):
        table_cell = row[f"c{at}"]
        if TOO_SHORT in {cell, table_cell}:
            if cell != table_cell:
                raise ParseError(f"bonnie++ contradicts itself on {phase}: {cell} and {table_cell}")
            continue
        figures[phase] = positive("bonnie++", phase, cell)
        unit = _UNITS[table_cell.lstrip("0123456789.")]
        agree("bonnie++", phase, figures[phase], float(table_cell.rstrip("kmg")) * unit, slack=_ROUNDED * unit)
    size = int(line["size"][:-1]) * (1024 if line["size"].endswith("G") else 1)
    return BonnieReport(size, int(line["seed"]), int(line["seeks"]), int(line["seekers"]), figures)
