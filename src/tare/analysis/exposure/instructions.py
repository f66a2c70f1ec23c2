"""What a machine executed, from footprints of the level ``instructions``: medians over repeats with their range.

Each repeat is a machine of its own, whose kernel had other random numbers. With the same numbers counts are the same to
the last instruction, so the range over repeats is all the uncertainty that there is.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tare.footprint_model import GUEST, PARTS, SIDES, UNITS, Footprint, Scope

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
        """The median and the range of values, one a repeat; there must be at least one."""
        ordered = sorted(values)
        return cls(statistics.median(ordered), ordered[0], ordered[-1])


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


def outside_guest(footprints: Sequence[Footprint]) -> Amount | None:
    """What is left of `work` without what guests of /dev/kvm executed: the host's part. None where none ran."""
    inside = [
        sum(count for (_, command), count in by_command(footprint.hits).items() if command == GUEST)
        for footprint in footprints
    ]
    if not any(inside):
        return None
    return Amount.of(
        sum(_beside(footprint, side) for side in SIDES) - guest
        for footprint, guest in zip(footprints, inside, strict=True)
    )


def unit(footprints: Sequence[Footprint]) -> Amount | None:
    """Instructions of programs and of the kernel together for one unit; None where the work has none."""
    return _per_unit(footprints, ("user", "kernel"))


def until_ready(footprints: Sequence[Footprint]) -> Amount | None:
    """Instructions of user and kernel until the agent was there, tare's own included; None where it never was."""
    values = [footprint.hits.get("ready;user", 0) + footprint.hits.get("ready;kernel", 0) for footprint in footprints]
    return Amount.of(values) if all(values) else None


def shares(footprints: Sequence[Footprint]) -> list[Share]:
    """User and kernel instructions by command, the most first; all commands of the machine."""
    repeats = [by_command(footprint.hits) for footprint in footprints]
    keys = {key for repeat in repeats for key in repeat}
    all_shares = [
        Share(command, whose == Scope.INSTANCE, Amount.of([repeat.get((whose, command), 0) for repeat in repeats]))
        for whose, command in keys
    ]
    return sorted(all_shares, key=lambda share: (-share.amount.median, share.command, share.instance))


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
    all_code = [
        Code(side, place, Amount.of([repeat.get((side, place), 0) for repeat in repeats])) for side, place in keys
    ]
    return sorted(all_code, key=lambda code: (-code.amount.median, code.side, code.place))


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
    """A part of the work for one unit: of each repeat the median over a probe's pieces, or all of a run by its units.

    The median, as now and then the kernel's clock interrupts a piece, which adds what no unit causes. A run has in it
    what its programs do to start. None: the work has no units.
    """
    return _per_unit(footprints, (name,))


def in_pieces(footprints: Sequence[Footprint]) -> bool:
    """Whether the units of the work were counted piece by piece."""
    return any(pieces(footprint.hits) for footprint in footprints)


def units(footprints: Sequence[Footprint]) -> float:
    """How many units a run was, the median over repeats; 1 where it has none."""
    return statistics.median(footprint.hits.get(UNITS, 1) for footprint in footprints) if footprints else 1


def _per_unit(footprints: Sequence[Footprint], names: Sequence[str]) -> Amount | None:
    values = []
    for footprint in footprints:
        probe_pieces = pieces(footprint.hits)
        if probe_pieces:
            values.append(
                statistics.median(sum(piece.get(name, 0) for name in names) / piece[UNITS] for piece in probe_pieces)
            )
        elif footprint.hits.get(UNITS):
            values.append(sum(_beside(footprint, name) for name in names) / footprint.hits[UNITS])
    return Amount.of(values) if values else None


#: Of the caches' model: each cache with the parts that are what it was asked for, and the part that it had not.
CACHES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "L1i": (("fetched",), "l1i"),
    "L1d": (("moved",), "l1d"),
    "L2": (("l1i", "l1d"), "l2"),
    "L3": (("l2",), "l3"),
}


@dataclass(frozen=True, slots=True)
class Cache:
    """What one modelled cache was asked for, and how much of that it had not: lines of 64 bytes."""

    name: str
    asked: Amount
    missed: Amount


def caches(footprints: Sequence[Footprint]) -> list[Cache]:
    """What the modelled caches did without tare's own commands; [] where none were modelled."""
    if not any(footprint.hits.get("fetched") for footprint in footprints):
        return []
    return [
        Cache(
            name,
            Amount.of(sum(_beside(footprint, part) for part in access_parts) for footprint in footprints),
            Amount.of(_beside(footprint, missed) for footprint in footprints),
        )
        for name, (access_parts, missed) in CACHES.items()
    ]


def pieces(hits: Mapping[str, int]) -> list[dict[str, int]]:
    """The pieces of a probe's work with their counts and units, in their order; those of no unit are left out."""
    by_number: dict[int, dict[str, int]] = {}
    for name, count in hits.items():
        words = name.split(";")
        if words[0] == "piece" and words[2] in {*PARTS, UNITS}:
            by_number.setdefault(int(words[1]), {})[words[2]] = count
    return [by_number[number] for number in sorted(by_number) if by_number[number].get(UNITS)]
