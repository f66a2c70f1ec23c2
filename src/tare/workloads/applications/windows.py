"""A load tool's output while it runs: a line a second, or for some seconds if the processors were busy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from tare.errors import ParseError


@dataclass(frozen=True, slots=True)
class ReportWindow:
    """A line, and the time of which it tells, in seconds since the load began."""

    line: re.Match[str]
    began_s: float
    ended_s: float

    @property
    def rate(self) -> float:
        """Transactions a second."""
        return float(self.line["rate"])


def read(tool: str, lines: Sequence[str], pattern: re.Pattern[str], time_s: int) -> list[ReportWindow]:
    """Return the windows of a load of ``time_s`` seconds, without the last if the tool ended before its line.

    ``pattern``: of a line, with the groups ``at`` (when it was written, in seconds since the load began) and ``rate``
    (since the line before). A line that came late tells of some seconds, and the next of the rest of the last one. A
    line that tells of no time, as ``at`` may be rounded, is left out. Raises `ParseError` for any other line, and where
    time is missing or goes back.
    """
    matches = []
    for line in lines:
        match = pattern.fullmatch(line.strip())
        if match is None:
            raise ParseError(f"{tool} printed a strange line: {line[:200]!r}")
        matches.append(match)
    ends_s = [0.0, *(float(match["at"]) for match in matches)]
    if ends_s != sorted(ends_s):
        raise ParseError(f"{tool} tells of its seconds in a strange order: {', '.join(f'{end:g}' for end in ends_s)}")
    if ends_s[-1] < time_s - 1:
        raise ParseError(f"{tool} reports {ends_s[-1]:g} seconds of {time_s}")
    spans = zip(matches, pairwise(ends_s), strict=True)
    return [ReportWindow(line, began, end) for line, (began, end) in spans if end > began]


def mean_rate(windows: Sequence[ReportWindow]) -> float:
    """Transactions a second in all of their time."""
    return fmean((window.rate for window in windows), (window.ended_s - window.began_s for window in windows))


def ends_s(windows: Sequence[ReportWindow], before_s: float) -> list[float]:
    """Return the begin of the first window and the end of each, in s, for a load ``before_s`` after its command."""
    return [before_s + at for at in (windows[0].began_s, *(window.ended_s for window in windows))]
