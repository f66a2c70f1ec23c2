"""The words of the section "Life of an instance"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tare.report.sentences.numbers import quantity

TITLE = "Life of an instance"
#: The parts of a whole life in their order, by the metric of each.
PARTS: Mapping[str, str] = {
    "create": "create",
    "start": "start",
    "execute": "first command",
    "stop": "stop",
    "remove": "remove",
}
EXEC = "exec"
PLATFORM = "platform"
#: The columns of the table: workload, metric, and the head.
COLUMNS: Sequence[tuple[str, str, str]] = (
    ("whole-life", "whole", "whole"),
    ("whole-life", "cpu", "whole CPU"),
    *(("whole-life", metric, name) for metric, name in PARTS.items()),
    *(("whole-life", f"{metric}-cpu", f"{name} CPU") for metric, name in PARTS.items()),
    ("exec", "return", EXEC),
    ("exec", "p50", "exec p50"),
    ("exec", "p95", "exec p95"),
    ("exec", "p99", "exec p99"),
    ("exec", "cpu", "exec CPU"),
    ("pause", "pause", "pause"),
    ("pause", "resume", "resume"),
    ("kill", "gone", "kill"),
    *(
        (f"snapshot-{mib}", metric, f"{head} ({mib} MiB)")
        for mib in (64, 512)
        for metric, head in (
            ("snapshot", "snapshot"),
            ("silent", "silent"),
            ("size", "size, MiB"),
            ("first-command", "restored"),
            ("first-command-dropped", "from disk"),
        )
    ),
    ("engine-restart", "answers", "engine back"),
    ("engine-restart", "restart", "and first command"),
    ("engine-restart", "survivors", "survivors, %"),
)
PICTURE = "One bar a platform: its parts from nothing to nothing, to scale."
#: Below the picture of the page, and of the terminal.
INTERVALS = "Means over blocks; a line at the end of a part is its 95 % interval, and the cross line that of the whole."
BENEATH = "The thin bar is exec: one more command in a running instance."
TABLE = "ms, means over blocks and half of their 95 % intervals."
LACKING = "A p95 needs 20 commands in a trial, a p99 needs 100: --profile full has longer trials."
#: Bursts: their workloads, with the heading of each.
BURSTS: Mapping[str, str] = {"burst": "Starts at one instant", "burst-staggered": "Starts at a stated rate"}
MEDIAN = "p50 in ms of"
KNEE = "knee"
#: What is drawn over the number of starts, by the beginning of the metric's name.
CURVES: Mapping[str, str] = {"p50": "a start, median, ms", "p95": "a start, 95 of 100 are faster, ms"}
BURST_AXIS = "starts together"
#: Copies of one instance, by workload.
COPIES: Mapping[str, str] = {"fork": "Copies of one running instance, restored at one instant"}
COPY_HEADS: Mapping[str, str] = {
    "each": "ms, of",
    "memory": "MiB each, of",
    "shared": "less than alone %, of",
    "ok": "ok %, of",
}
COPY_CURVES: Mapping[str, str] = {"each": "a copy's first command, median, ms", "memory": "host memory for each, MiB"}
COPY_AXIS = "copies together"
COPY_NOTE = (
    "From the instant of the issue until a copy's first command has returned; memory once each copy has read its own"
    " again, with shared pages split between the copies."
)
BURST_NOTE = (
    "From the instant of the issue until a first command has returned. Knee: the number from which a start takes twice"
    " as long as alone. Beyond 20 s: smaller bursts had taken longer than that; --profile full tries more."
)
#: Names of the operations that may fail, by workload, singular and plural.
TRIED: Mapping[str, tuple[str, str]] = {
    "burst": ("start", "starts"),
    "burst-staggered": ("start", "starts"),
    "fork": ("copy", "copies"),
    "pause": ("pause", "pauses"),
}
#: At most so many reasons are shown of one platform.
MOST_REASONS = 3
CUT = "\N{BLACK RIGHT-POINTING SMALL TRIANGLE}"


def label(platforms: Sequence[str]) -> str:
    """Return what the picture shows, for who does not see it."""
    return f"{PICTURE} {', '.join(platforms)}; the table below has the figures"


def about(value: float, half: float, unit: str) -> str:
    """A mean with half of its interval, in its unit: "472.1 ± 12.0 ms"."""
    return quantity(value, unit) if not half else f"{figure(value, half)} {unit}"


def figure(value: float, half: float) -> str:
    """A mean with half of its interval: "472 ±12"."""
    digits = min(_digits(value / 10), _digits(half) if half else 2)
    return f"{value:,.{digits}f}" + (f" ±{half:,.{digits}f}" if half else "")


def _digits(value: float) -> int:
    """Digits after the point that a figure of this size is worth."""
    return 0 if value >= 10 else 1 if value >= 1 else 2


def failed(platform: str, workload: str, reasons: Mapping[str, int]) -> str:
    """Say how many starts, copies or pauses failed, and why; ``reasons``: how many by reason, the commonest first."""
    total, one_reason = sum(reasons.values()), len(reasons) == 1
    what = TRIED[workload][total > 1]
    shown = [why if one_reason else f"{why} ({count})" for why, count in list(reasons.items())[:MOST_REASONS]]
    return f"{platform}, {workload}: {total:,} {what} failed: {'; '.join(shown)}."


def of_most(name: str, count: int) -> str:
    """The head of a column of the largest burst."""
    return f"{name} of {count}"
