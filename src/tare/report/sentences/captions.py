"""What tables and drawings of a campaign show, said below or in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tare.analysis.trust.contamination import Disturbance
from tare.report.sentences.numbers import number_of

#: What is drawn of each over the time of a campaign.
LANES: Mapping[Disturbance, str] = {
    Disturbance.STEAL: "time that the hypervisor below took, % of the measured CPUs",
    Disturbance.FOREIGN_CPU: "other programs, % of the measured CPUs",
    Disturbance.SIBLING: "other programs on the other threads of their cores, %",
    Disturbance.MEMORY_PRESSURE: "time in which somebody waited for memory, %",
    Disturbance.SWAP: "pages swapped a second",
}

#: Said below several reports.
SIDE_BY_SIDE = "Several campaigns are shown side by side: nothing is pooled over them."


def overheads_note(baseline: str, blocks: int) -> str:
    """What a paper's table of overheads shows."""
    return (
        f"Overhead against {baseline} in %, positive is worse, with its 95 % interval; {number_of(blocks, 'block')}. "
        "An interval that holds zero shows no difference. With a unit: what is added."
    )


def samples_note(shown: int, total: int) -> str:
    """Whether a plot shows all samples."""
    if shown < total:
        return f"{shown:,} of {total:,} samples shown, evenly chosen; all of them are in the raw data."
    return f"All {total:,} samples shown."


def samples_by_block(unit: str, least: float, most: float) -> str:
    """How to read a drawing of every sample in the order of the campaign."""
    return (
        f"{unit}, in each row from {least:,.4g} to {most:,.4g}; blocks from left to right, each with fresh instances;"
        " rounds within"
    )


def newer_note(version: str, unknown: Sequence[str]) -> str:
    """That a file has more than this tare reads; ``unknown``: names of fields."""
    return f"tare {version} wrote more than this tare knows, and shows: {', '.join(unknown)}"
