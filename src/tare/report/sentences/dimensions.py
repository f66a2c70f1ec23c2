"""Names of dimensions, and the legend of the table of platforms by dimensions."""

from __future__ import annotations

from collections.abc import Mapping

from tare.analysis.answers import AnswerState, Dimension
from tare.report.sentences.numbers import EMPTY

DIMENSIONS: Mapping[Dimension, str] = {
    Dimension.COMPUTE: "compute",
    Dimension.CPU_COST: "CPU cost",
    Dimension.MEMORY: "memory",
    Dimension.DISK: "disk",
    Dimension.NETWORK: "network",
    Dimension.APPLICATIONS: "applications",
    Dimension.SYSTEM_CALLS: "system calls",
    Dimension.START: "start",
    Dimension.FOOTPRINT: "memory footprint",
}
#: What each dimension is, for the legend.
MEANINGS: Mapping[Dimension, str] = {
    Dimension.COMPUTE: "speed of programs that only compute",
    Dimension.CPU_COST: "CPU time of the whole platform for the same work",
    Dimension.MEMORY: "speed of memory",
    Dimension.DISK: "speed of files",
    Dimension.NETWORK: "throughput and latency",
    Dimension.APPLICATIONS: "what servers get done under load",
    Dimension.SYSTEM_CALLS: "speed of single services of the kernel",
    Dimension.START: "time until an instance answers",
    Dimension.FOOTPRINT: "memory that an instance takes",
}
#: The last column: what a tenant may ask the host's kernel for.
EXPOSURE = "exposed kernel"
EXPOSURE_MEANING = "system calls of the host's kernel that the tenant may make"
MARKS: Mapping[AnswerState, str] = {
    AnswerState.WORSE: "▲",
    AnswerState.BETTER: "▼",
    AnswerState.SURELY_WORSE: "△",
    AnswerState.SURELY_BETTER: "▽",
    AnswerState.ALIKE: "=",
    AnswerState.BOUNDED: "",  # its text says at most, at least or from which to which
    AnswerState.OPEN: "?",
    AnswerState.ONCE: "·",
    AnswerState.LIMITED: "c",
    AnswerState.NONE: EMPTY,
}
#: What each mark says, for the legend and for who hears the page.
WORDS: Mapping[AnswerState, str] = {
    AnswerState.WORSE: "worse",
    AnswerState.BETTER: "better",
    AnswerState.SURELY_WORSE: "surely worse, but open whether by more than the margin",
    AnswerState.SURELY_BETTER: "surely better, but open whether by more than the margin",
    AnswerState.ALIKE: "equivalent within the margin",
    AnswerState.BOUNDED: "at most, at least or from which to which: no verdict, and each end holds at 95 % in what was "
    "seen",
    AnswerState.OPEN: "not known within a factor of two, and what an answer would take",
    AnswerState.ONCE: "seen in one block only",
    AnswerState.LIMITED: "the client or the disk was the limit",
    AnswerState.NONE: "no figure",
}


def heat_note(baseline: str) -> str:
    """Return what the table of platforms by dimensions shows."""
    return (
        f"Against {baseline}, of each dimension the worst of its figures: + is worse; 3.3 × is 3.3 times worse;"
        " with a unit: what is added."
    )
