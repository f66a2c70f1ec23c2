"""Executed instructions of a machine, from footprints of the level ``instructions``: medians over repeats with range.

Each repeat is a machine of its own, whose kernel had other random numbers. With the same numbers, counts are exactly
equal, so the range over repeats is the whole uncertainty.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tare.footprint_model import EMPTY, GUEST, IDLE, PARTS, SIDES, UNITS, Footprint, Phase, Scope
from tare.model import Level

#: All code without a name of its own.
REST = "[other]"
#: tare's own commands in the machine, which wait for the platform and would not run without tare.
OWN_COMMAND = "python3"
_OWN = f"host;{OWN_COMMAND}"
#: Figures: of a start; of a unit of a workload's work; or of all its work if it has no units.
START, UNIT, WHOLE = "start", "unit", "work"


@dataclass(frozen=True, slots=True)
class InstructionAmount:
    """A number of instructions: the median over repeats, the least and the most."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Iterable[float]) -> InstructionAmount:
        """Return the median and the range of values, one for each repeat; there must be at least one."""
        ordered = sorted(values)
        return cls(statistics.median(ordered), ordered[0], ordered[-1])


Figures = Mapping[tuple[str, str, str], InstructionAmount]  # By platform, workload ("" of a start) and figure.


@dataclass(frozen=True, slots=True)
class TaskShare:
    """The work of the tasks of one name."""

    command: str
    instance: bool  # They are in the instance's control groups.
    amount: InstructionAmount


def part(footprints: Sequence[Footprint], name: str) -> InstructionAmount | None:
    """Return a part of the hits; None if no repeat has it."""
    values = [footprint.hits.get(name, 0) for footprint in footprints]
    return InstructionAmount.of(values) if any(values) else None


def beside_tare(footprints: Sequence[Footprint], name: str) -> InstructionAmount | None:
    """Return a part of the whole machine's hits without those of tare's own commands."""
    values = [_beside(footprint, name) for footprint in footprints]
    return InstructionAmount.of(values) if any(values) else None


def _beside(footprint: Footprint, name: str) -> int:
    return footprint.hits.get(name, 0) - footprint.hits.get(f"of;{_OWN};{name}", 0)


def work(footprints: Sequence[Footprint]) -> InstructionAmount | None:
    """Return the instructions of programs and of the kernel together, without those of tare's own commands."""
    values = [sum(_beside(footprint, name) for name in ("user", "kernel")) for footprint in footprints]
    return InstructionAmount.of(values) if any(values) else None


def outside_guest(footprints: Sequence[Footprint]) -> InstructionAmount | None:
    """Return `work` without what guests of /dev/kvm executed: the host's part. None if no guest ran."""
    inside = [
        sum(count for (_, command), count in by_command(footprint.hits).items() if command == GUEST)
        for footprint in footprints
    ]
    if not any(inside):
        return None
    return InstructionAmount.of(
        sum(_beside(footprint, side) for side in SIDES) - guest
        for footprint, guest in zip(footprints, inside, strict=True)
    )


def unit(footprints: Sequence[Footprint]) -> InstructionAmount | None:
    """Return the instructions of programs and of the kernel for one unit; None if the work has no units."""
    return _per_unit(footprints, ("user", "kernel"))


def until_ready(footprints: Sequence[Footprint]) -> InstructionAmount | None:
    """Return the instructions of user and kernel until the agent was ready, with tare's own; None if it never was."""
    values = [footprint.hits.get("ready;user", 0) + footprint.hits.get("ready;kernel", 0) for footprint in footprints]
    return InstructionAmount.of(values) if all(values) else None


def shares(footprints: Sequence[Footprint]) -> list[TaskShare]:
    """Return user and kernel instructions by command, the most first, for all commands of the machine."""
    repeats = [by_command(footprint.hits) for footprint in footprints]
    keys = {key for repeat in repeats for key in repeat}
    all_shares = [
        TaskShare(
            command,
            whose == Scope.INSTANCE,
            InstructionAmount.of([repeat.get((whose, command), 0) for repeat in repeats]),
        )
        for whose, command in keys
    ]
    return sorted(all_shares, key=lambda share: (-share.amount.median, share.command, share.instance))


@dataclass(frozen=True, slots=True)
class Code:
    """The work of one piece of code, for all its callers: a file of programs, or a function of the kernel."""

    side: str  # User or kernel.
    place: str
    amount: InstructionAmount


def code(footprints: Sequence[Footprint]) -> list[Code]:
    """Return instructions by code without those of tare's own commands, the most first; unnamed code in brackets.

    Only the largest places of each task have names, so a place that is small in all of them is part of `REST`.
    """
    repeats = [by_code(footprint.hits) for footprint in footprints]
    keys = {key for repeat in repeats for key in repeat}
    all_code = [
        Code(side, place, InstructionAmount.of([repeat.get((side, place), 0) for repeat in repeats]))
        for side, place in keys
    ]
    return sorted(all_code, key=lambda code: (-code.amount.median, code.side, code.place))


def by_code(hits: Mapping[str, int]) -> dict[tuple[str, str], int]:
    """Return instructions by side and place, without those of tare's own commands."""
    sums: dict[tuple[str, str], int] = {}
    for name, count in hits.items():
        words = name.split(";")
        if words[0] == "code" and f"{words[1]};{words[2]}" != _OWN:
            key = (words[3], words[4])
            sums[key] = sums.get(key, 0) + count
    return sums


def by_command(hits: Mapping[str, int]) -> dict[tuple[str, str], int]:
    """Return user and kernel instructions together, by owner and command."""
    sums: dict[tuple[str, str], int] = {}
    for name, count in hits.items():
        words = name.split(";")
        if words[0] == "of" and words[3] in {"user", "kernel"}:
            key = (words[1], words[2])
            sums[key] = sums.get(key, 0) + count
    return sums


def per_unit(footprints: Sequence[Footprint], name: str) -> InstructionAmount | None:
    """Return a part of the work for one unit: per repeat the median over a probe's pieces, or a run by its units.

    The median, because the kernel's clock sometimes interrupts a piece and adds instructions that no unit causes. A run
    includes the start of its programs. None: the work has no units.
    """
    return _per_unit(footprints, (name,))


def in_pieces(footprints: Sequence[Footprint]) -> bool:
    """Return True if the units of the work were counted piece by piece."""
    return any(pieces(footprint.hits) for footprint in footprints)


def units(footprints: Sequence[Footprint]) -> float:
    """Return the number of units of a run, the median over repeats; 1 if it has none."""
    return statistics.median(footprint.hits.get(UNITS, 1) for footprint in footprints) if footprints else 1


def _per_unit(footprints: Sequence[Footprint], names: Sequence[str]) -> InstructionAmount | None:
    values = []
    for footprint in footprints:
        probe_pieces = pieces(footprint.hits)
        if probe_pieces:
            values.append(
                statistics.median(sum(piece.get(name, 0) for name in names) / piece[UNITS] for piece in probe_pieces)
            )
        elif footprint.hits.get(UNITS):
            values.append(sum(_beside(footprint, name) for name in names) / footprint.hits[UNITS])
    return InstructionAmount.of(values) if values else None


#: Model of caches: each cache with the parts that count its lookups, and the part that counts its misses.
CACHES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "L1i": (("fetched",), "l1i"),
    "L1d": (("moved",), "l1d"),
    "L2": (("l1i", "l1d"), "l2"),
    "L3": (("l2",), "l3"),
}


@dataclass(frozen=True, slots=True)
class Cache:
    """Lookups and misses of one modelled cache: lines of 64 bytes."""

    name: str
    asked: InstructionAmount
    missed: InstructionAmount


def caches(footprints: Sequence[Footprint]) -> list[Cache]:
    """Return the results of the modelled caches without tare's own commands; [] if none were modelled."""
    if not any(footprint.hits.get("fetched") for footprint in footprints):
        return []
    return [
        Cache(
            name,
            InstructionAmount.of(sum(_beside(footprint, part) for part in access_parts) for footprint in footprints),
            InstructionAmount.of(_beside(footprint, missed) for footprint in footprints),
        )
        for name, (access_parts, missed) in CACHES.items()
    ]


def pieces(hits: Mapping[str, int]) -> list[dict[str, int]]:
    """Return the pieces of a probe's work with their counts and units, in order; pieces of no unit are left out."""
    by_number: dict[int, dict[str, int]] = {}
    for name, count in hits.items():
        words = name.split(";")
        if words[0] == "piece" and words[2] in {*PARTS, UNITS}:
            by_number.setdefault(int(words[1]), {})[words[2]] = count
    return [by_number[number] for number in sorted(by_number) if by_number[number].get(UNITS)]


def figures(footprints: Sequence[Footprint]) -> Figures:
    """Return all figures of a file's footprints: user and kernel together, without tare's own if there are no units."""
    cases: dict[tuple[str, Phase, str], list[Footprint]] = {}
    for footprint in footprints:
        if footprint.level is Level.INSTRUCTIONS and footprint.scope is Scope.HOST:
            key = footprint.platform, footprint.phase, footprint.workload or ""
            if footprint.platform not in {IDLE, EMPTY}:
                cases.setdefault(key, []).append(footprint)
    amounts: dict[tuple[str, str, str], InstructionAmount] = {}
    for (platform, phase, workload), repeats in cases.items():
        of_unit = unit(repeats)
        whole = work(repeats)
        if phase is Phase.START and whole is not None:
            amounts[platform, "", START] = whole
        elif of_unit is not None:
            amounts[platform, workload, UNIT] = of_unit
        elif whole is not None:
            amounts[platform, workload, WHOLE] = whole
    return amounts
