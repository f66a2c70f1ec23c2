"""Captions of a campaign's tables and drawings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tare.analysis.quality.contamination import Disturbance
from tare.report.model import Report
from tare.report.sentences.numbers import number_of, span

#: What is drawn of each over the time of a campaign.
LANES: Mapping[Disturbance, str] = {
    Disturbance.STEAL: "time that the hypervisor below took, % of the measured CPUs",
    Disturbance.FOREIGN_CPU: "other programs, % of the measured CPUs",
    Disturbance.SIBLING: "other programs on the other threads of their cores, %",
    Disturbance.MEMORY_PRESSURE: "time in which somebody waited for memory, %",
    Disturbance.SWAP: "pages swapped a second",
}

#: Said below several reports: in a terminal, and on a page.
SIDE_BY_SIDE = "Several campaigns are shown side by side: nothing is pooled over them."
ON_ONE_PAGE = "Several campaigns are shown on this page; nothing is pooled over them."
#: Headings of what was left out, and of changed settings of the host.
LEFT_OUT = "Platforms that did not take part"
TUNED = "The host was tuned for the campaign"
DAEMONS = "Shared daemons (not in the figures)"
#: Text for a choice that leaves no platform.
NONE_FITS = "no platform of this campaign has all of that"


def costs_label(baseline: str, names: Sequence[str]) -> str:
    """Return what the picture of costs shows, for who does not see it."""
    return f"Costs of {', '.join(names)} against {baseline} by dimension; the table below has the figures"


def costs_axis(baseline: str) -> str:
    """Return what its axis is."""
    return f"times worse than {baseline}; bands: what is too little to matter"


def missed(platform: str, reason: str, fix: str | None) -> str:
    """The first line of a report without a platform that was asked for."""
    return f"Asked for and not measured: {platform} ({reason})" + (f"; to have it: {fix}" if fix else "")


def blocks_text(report: Report) -> str:
    """Return how many blocks there are, and the time at work, without pauses between segments."""
    # More blocks than planned were added by --more.
    planned = f" of {report.blocks_planned}" if (report.blocks_planned or 0) >= report.blocks_done else ""
    pauses = ", pauses left out" if len(report.segments) > 1 else ""
    worked = f" in {span(report.active_s)}{pauses}" if report.active_s else ""
    return f"{report.blocks_done}{planned} blocks{worked}"


def daemon_text(share: float | None, mib: float | None) -> str:
    """Return the cost of a platform's shared daemons: CPU time, a ``share`` of a core, and memory; "": unknown."""
    parts = [] if share is None else [f"{100 * share:.1f} % of a core during its trials"]
    parts += [] if mib is None else [f"{mib:.0f} MiB of memory, once a host"]
    return ", ".join(parts)


def overheads_note(baseline: str, blocks: int) -> str:
    """Return what a paper's table of overheads shows."""
    return (
        f"Overhead against {baseline} in %, positive is worse, with its 95 % interval; {number_of(blocks, 'block')}. "
        "× is how many times worse; with another unit, what is added. Where there is no verdict: what is known, "
        "each end at 95 %. * is worse or better by more than the margin. An interval that holds zero does not show "
        "that there is no difference."
    )


def figure_legend(baseline: str) -> str:
    """Return what the signs of a paper's figure mean."""
    return (
        f"against {baseline}, lines: 95 % intervals; square: worse, diamond: better, circle: equivalent, hollow: open;"
        " band: margin"
    )


#: The axis of system calls in a drawing of cost against exposure.
CALLS_AXIS = "system calls that the tenant may make"
#: What the drawing of telemetry shows, for who does not see it.
HOST_MEANWHILE = "what the host did while trials ran"


def intervals_axis(baseline: str) -> str:
    """Return how to read a drawing of intervals."""
    return f"overhead against {baseline}, %; right is worse; band: margin"


def intervals_label(baseline: str, metric: str) -> str:
    """Return what a drawing of intervals shows, for who does not see it."""
    return f"overhead against {baseline} with 95 % intervals: {metric}"


def samples_axis(better: str) -> str:
    """Return how to read a drawing of every sample. ``better``: the metric's direction."""
    return f"every sample; bar: median; {better} is better"


def samples_label(metric: str) -> str:
    """Return what a drawing of every sample shows, for who does not see it."""
    return f"every sample: {metric}"


def course_label(metric: str, unit: str) -> str:
    """Return what a drawing of every sample in order shows, for who does not see it."""
    return f"every sample by start and round: {metric}, {unit}"


def block_medians(arm: str) -> str:
    """Return what the lines in a drawing of every sample in order are."""
    return f"{arm}: the median of each block"


def floor_label(baseline: str) -> str:
    """Return what the drawing of the noise floor shows, for who does not see it."""
    return f"{baseline} against itself, with the margin of each metric"


def floor_title(metric: str, percents: float, *, silent: bool) -> str:
    """Return what a row of the drawing of the noise floor shows; ``silent``: its interval holds zero."""
    return f"{metric}: {percents:.2f} %, {'holds zero' if silent else 'does not hold zero'}"


def parts_label(unit: str) -> str:
    """Return what a drawing of the parts of starts shows, for who does not see it."""
    return f"start-up in parts, {unit}"


def starts_label(metric: str) -> str:
    """Return what a drawing of distributions of starts shows, for who does not see it."""
    return f"share of the starts that were done: {metric}"


def plane_label(dimension: str, exposure: str, points: Sequence[str]) -> str:
    """Return what a drawing of cost against exposure shows, for who does not see it."""
    return f"{dimension} against {exposure}: {', '.join(points)}"


def samples_note(shown: int, total: int) -> str:
    """Return a note on whether a plot shows all samples."""
    if shown < total:
        return f"{shown:,} of {total:,} samples shown, evenly chosen; all of them are in the raw data."
    return f"All {total:,} samples shown."


def samples_by_block(unit: str, least: float, most: float) -> str:
    """Return how to read a drawing of every sample in the order of the campaign."""
    return (
        f"{unit}, in each row from {least:,.4g} to {most:,.4g}; blocks from left to right, each with fresh instances;"
        " rounds within"
    )


def newer_note(version: str, unknown: Sequence[str]) -> str:
    """Say that a file has more than this tare reads; ``unknown``: names of fields."""
    return f"tare {version} wrote more than this tare knows, and shows: {', '.join(unknown)}"
