"""What a careful reader must know beside a verdict, as a code with its numbers; the words are made here alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tare.analysis.words import percent, quantity


class FindingKind(StrEnum):
    """What was found, and the numbers that come with it; shares, speeds and losses are fractions.

    ``stalls``: rounds beyond the baseline's cut: ``share``, their ``speed`` as a share of the usual one, how much work
    is ``lost`` to them; ``baseline_share`` and ``baseline_lost``.
    ``unseen``: what so few ``draws`` (rounds of slices, else runs) in ``blocks`` starts cannot exclude: a mode in
    ``share`` of them, which at half speed costs ``cost``; in ``blocks_share`` of the starts.
    ``failures``: ``failed`` of ``trials``, ``baseline_failed`` of ``baseline_trials``.
    ``resolution``: the metric's ``step`` in its unit, and the ``half_width`` of the interval that this alone makes.
    ``no-spread``: ``blocks`` without any difference, and how many are ``needed``.
    """

    STALLS = "stalls"
    UNSEEN = "unseen"
    FAILURES = "failures"
    RESOLUTION = "resolution"
    NO_SPREAD = "no-spread"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of a platform in a metric."""

    kind: FindingKind
    numbers: Mapping[str, float]


def sentence(finding: Finding, unit: str) -> str:
    """The finding in words; ``unit`` is the metric's."""
    return _SENTENCES[finding.kind](finding.numbers, unit)


def _stalls(at: Mapping[str, float], _unit: str) -> str:
    return (
        f"stalls: {percent(at['share'])} of its rounds run at {percent(at['speed'])} of their usual speed and lose"
        f" {percent(at['lost'])} of the work (the baseline's: {percent(at['baseline_share'])} of the rounds,"
        f" {percent(at['baseline_lost'])})"
    )


def _unseen(at: Mapping[str, float], _unit: str) -> str:
    draws, blocks = round(at["draws"]), round(at["blocks"])
    cost = f"at half speed that would cost {percent(at['cost'])}"
    if draws == blocks:
        return f"{draws} runs do not exclude a slow mode in up to {percent(at['share'])} of them; {cost}"
    return (
        f"{draws} rounds do not exclude a slow mode in up to {percent(at['share'])} of them; {cost}"
        f" (of whole starts, {blocks}: {percent(at['blocks_share'])})"
    )


def _failures(at: Mapping[str, float], _unit: str) -> str:
    told = f"{round(at['failed'])} of {round(at['trials'])} trials failed"
    if not at["baseline_failed"]:
        return told
    return f"{told}, and {round(at['baseline_failed'])} of {round(at['baseline_trials'])} of the baseline's"


def _resolution(at: Mapping[str, float], unit: str) -> str:
    return (
        f"figures move in steps of {quantity(at['step'], unit)}: the interval is at least ±{percent(at['half_width'])}"
    )


def _no_spread(at: Mapping[str, float], _unit: str) -> str:
    blocks, needed = round(at["blocks"]), round(at["needed"])
    return f"all {blocks} blocks show the same figures: {needed} are needed to conclude from that"


_SENTENCES = {
    FindingKind.STALLS: _stalls,
    FindingKind.UNSEEN: _unseen,
    FindingKind.FAILURES: _failures,
    FindingKind.RESOLUTION: _resolution,
    FindingKind.NO_SPREAD: _no_spread,
}
