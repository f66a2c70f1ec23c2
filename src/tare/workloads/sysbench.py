"""What sysbench's tests share: the frame of its output, and that a run is whole."""

from __future__ import annotations

from collections.abc import Sequence

from tare.errors import ParseError
from tare.workloads.base import Completed
from tare.workloads.output import number, only, text_of

#: Beyond the run time that sysbench is told, for its start and its end.
GRACE_S = 30.0
_VERSION = r"^sysbench 1\.0\.\d+ \(using .+\)$"


def whole_run(results: Sequence[Completed]) -> str:
    """The output of one finished run. Raises `ParseError` when it is cut off or reports an error."""
    if len(results) != 1:
        raise ParseError(f"one run of sysbench was planned, there are {len(results)}")
    text = text_of(results[0])
    only(_VERSION, text, "sysbench")
    if "FATAL:" in text:
        raise ParseError(f"sysbench failed: {next(line for line in text.splitlines() if 'FATAL:' in line)}")
    only(r"^    execution time \(avg/stddev\): +[\d.]+/[\d.]+$", text, "sysbench")  # its last line
    return text


def events(text: str) -> float:
    """Total number of events."""
    return number(only(r"^    total number of events: +(\d+)$", text, "sysbench")[1], "sysbench's number of events")


def seconds(text: str) -> float:
    """Total time of the run."""
    return number(only(r"^    total time: +([\d.]+)s$", text, "sysbench")[1], "sysbench's total time")


def agree(shown: float, derived: float, what: str, tolerance: float = 0.05) -> float:
    """``shown``, when it agrees with what follows from the run's other figures; else the output was not understood."""
    if abs(shown - derived) > tolerance * derived:
        raise ParseError(f"sysbench shows {shown:g} {what}, its other figures make {derived:g}")
    return shown
