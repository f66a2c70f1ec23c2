"""What a machine executed, from footprints of the level ``instructions``: medians over repeats with their range.

Each repeat is a machine of its own, whose kernel had other random numbers. With the same numbers counts are the same to
the last instruction, so the range over repeats is all the uncertainty that there is.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tare.footprint.model import PARTS, UNITS, Footprint

#: Of code, all that has no name of its own.
REST = "[other]"
#: tare's own commands in the machine: they wait for the platform, and would not be there without tare.
OWN_COMMAND = "python3"
_OWN = f"host;{OWN_COMMAND}"


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of instructions: the median over repeats, the least and the most."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Amount:
        """Of one value a repeat; at least one."""
        known = sorted(values)
        return cls(statistics.median(known), known[0], known[-1])


@dataclass(frozen=True, slots=True)
class Share:
    """The work of the tasks of one name."""

    command: str
    instance: bool  # whether they are in the instance's control groups
    amount: Amount


def part(footprints: Sequence[Footprint], name: str) -> Amount | None:
    """A part of the hits; None where no repeat has it."""
    values = [footprint.hits.get(name, 0) for footprint in footprints]
    return Amount.of(values) if any(values) else None


def beside_tare(footprints: Sequence[Footprint], name: str) -> Amount | None:
    """A part of the whole machine's without what tare's own commands did meanwhile."""
    values = [_beside(footprint, name) for footprint in footprints]
    return Amount.of(values) if any(values) else None


def _beside(footprint: Footprint, name: str) -> int:
    return footprint.hits.get(name, 0) - footprint.hits.get(f"of;{_OWN};{name}", 0)


def work(footprints: Sequence[Footprint]) -> Amount | None:
    """Instructions of programs and of the kernel together, without those of tare's own commands."""
    values = [sum(_beside(footprint, name) for name in ("user", "kernel")) for footprint in footprints]
    return Amount.of(values) if any(values) else None


def unit(footprints: Sequence[Footprint]) -> Amount | None:
    """Instructions of programs and of the kernel together for one unit; None where the work has none."""
    values = [
        statistics.median((piece.get("user", 0) + piece.get("kernel", 0)) / piece[UNITS] for piece in known)
        for footprint in footprints
        if (known := pieces(footprint.hits))
    ]
    return Amount.of(values) if values else None


def until_ready(footprints: Sequence[Footprint]) -> Amount | None:
    """Instructions of user and kernel until the agent was there, tare's own included; None where it never was."""
    values = [footprint.hits.get("ready;user", 0) + footprint.hits.get("ready;kernel", 0) for footprint in footprints]
    return Amount.of(values) if all(values) else None


def shares(footprints: Sequence[Footprint]) -> list[Share]:
    """User and kernel instructions by command, the most first; all commands of the machine."""
    repeats = [by_command(footprint.hits) for footprint in footprints]
    keys = {key for repeat in repeats for key in repeat}
    known = [
        Share(command, whose == "instance", Amount.of([repeat.get((whose, command), 0) for repeat in repeats]))
        for whose, command in keys
    ]
    return sorted(known, key=lambda share: (-share.amount.median, share.command, share.instance))


@dataclass(frozen=True, slots=True)
class Code:
    """The work of one piece of code, whoever ran it: a file of programs, or a function of the kernel."""

    side: str  # user or kernel
    place: str
    amount: Amount


def code(footprints: Sequence[Footprint]) -> list[Code]:
    """Instructions by code without those of tare's own commands, the most first; what has no name is in brackets.

    Of each task the largest places have their names, so what is small in all of them is in `REST`.
    """
    repeats = [by_code(footprint.hits) for footprint in footprints]
    keys = {key for repeat in repeats for key in repeat}
    known = [Code(side, place, Amount.of([repeat.get((side, place), 0) for repeat in repeats])) for side, place in keys]
    return sorted(known, key=lambda each: (-each.amount.median, each.side, each.place))


def by_code(hits: Mapping[str, int]) -> dict[tuple[str, str], int]:
    """Instructions by side and place, those of tare's own commands left out."""
    sums: dict[tuple[str, str], int] = {}
    for name, count in hits.items():
        words = name.split(";")
        if words[0] == "code" and f"{words[1]};{words[2]}" != _OWN:
            key = (words[3], words[4])
            sums[key] = sums.get(key, 0) + count
    return sums


def by_command(hits: Mapping[str, int]) -> dict[tuple[str, str], int]:
    """User and kernel instructions together by whose they are and the command."""
    sums: dict[tuple[str, str], int] = {}
    for name, count in hits.items():
        words = name.split(";")
        if words[0] == "of" and words[3] in {"user", "kernel"}:
            key = (words[1], words[2])
            sums[key] = sums.get(key, 0) + count
    return sums


def per_unit(footprints: Sequence[Footprint], name: str) -> Amount | None:
    """A part of a probe's work for one unit: of each repeat the median over its pieces. None: no pieces were counted.

    The median, as now and then the kernel's clock interrupts a piece, which adds what no unit causes.
    """
    values = [
        statistics.median(piece.get(name, 0) / piece[UNITS] for piece in known)
        for footprint in footprints
        if (known := pieces(footprint.hits))
    ]
    return Amount.of(values) if values else None


def pieces(hits: Mapping[str, int]) -> list[dict[str, int]]:
    """The pieces of a probe's work with their counts and units, in their order; those of no unit are left out."""
    by_number: dict[int, dict[str, int]] = {}
    for name, count in hits.items():
        words = name.split(";")
        if words[0] == "piece" and words[2] in {*PARTS, UNITS}:
            by_number.setdefault(int(words[1]), {})[words[2]] = count
    return [by_number[number] for number in sorted(by_number) if by_number[number].get(UNITS)]
