"""Helpers for the tests of workloads outside of tare: no damaged output gives a wrong figure.

A strict parser refuses what it does not know, so that half an output, a line too many or another digit never becomes a
figure. `damage` tries that on a real output; `problems` is the contract that is checked when a plug-in loads. Both are
plain functions: call them from whatever runs your tests.

    from tare.testing import Capture, damage, problems
    from tare_python_loop import WORKLOAD

    def test_it_keeps_the_contract():
        assert problems(WORKLOAD) == []

    def test_damaged_output_gives_no_wrong_figure():
        capture = Capture(stdout=Path("captured/python-loop.txt").read_text(), wall_s=1.2)
        assert list(damage(WORKLOAD, {"turns": 2, "steps": 1000}, [capture])) == []
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tare.errors import ParseError
from tare.workloads.base import Completed, Outcome, Params, RunWorkload
from tare.workloads.output import ROUNDING
from tare.workloads.workload_contract import checked, problems, require_work

__all__ = [
    "NEAR",
    "Capture",
    "Damage",
    "changed_digits",
    "changed_lines",
    "cuts",
    "damage",
    "junk",
    "outcome",
    "problems",
]

#: Two figures of an output that are compared may each be off by the tolerance before they contradict each other.
NEAR = 3 * ROUNDING
#: Characters that no tool prints in the middle of a line.
_JUNK = "\x00\x1b%<abc>"


@dataclass(frozen=True, slots=True)
class Capture:
    """The outputs of one of a plan's measures, kept from a real run in the image."""

    stdout: str = ""
    stderr: str = ""
    wall_s: float = 1.0
    exit_code: int = 0
    argv: tuple[str, ...] = ("tool",)

    def completed(self) -> Completed:
        """Return the command that ended so, as a workload's parser gets it."""
        wall_ns = round(self.wall_s * 1e9)
        return Completed(self.argv, self.exit_code, self.stdout.encode(), self.stderr.encode(), wall_ns)


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged output that was taken for a good one, with other figures."""

    how: str  # what was done to it
    text: str  # the damaged output
    outcome: Outcome


def outcome(workload: RunWorkload, params: Params, captures: Sequence[Capture]) -> Outcome | None:
    """Return what the workload reads in these, held to the contract as a trial's; None where it refuses them."""
    try:
        read = workload.parse(params, [capture.completed() for capture in captures])
        require_work(workload, read)
        checked(workload, read.as_samples())
    except ParseError:
        return None
    return read


def damage(
    workload: RunWorkload, params: Params, captures: Sequence[Capture], *, digits: bool = True
) -> Iterator[Damage]:
    """Every way in which a damaged output gives a figure that the whole one does not; none of a strict parser.

    Each output is cut off anywhere, each of its lines is left out and doubled, and junk goes between any two
    characters: refused, or the same figures. Each digit becomes 0 and 9: refused, or figures that differ by no more
    than what tools round away; ``digits``: False for a tool that prints a figure and nothing to hold it against.
    Raises `AssertionError` where the whole output is refused; an error that is no `ParseError` passes.
    """
    good = outcome(workload, params, captures)
    assert good is not None, "the whole output is refused"
    for at, capture in enumerate(captures):
        for stream in ("stdout", "stderr"):
            for how, text, tolerance in _damaged(getattr(capture, stream), digits=digits):
                damaged = replace(capture, stdout=text) if stream == "stdout" else replace(capture, stderr=text)
                given = [*captures[:at], damaged, *captures[at + 1 :]]
                result = outcome(workload, params, given)
                if result is not None and not _alike(result, good, tolerance):
                    yield Damage(f"{stream} of measure {at}: {how}", text, result)


def junk(workload: RunWorkload, params: Params, captures: Sequence[Capture], text: str) -> Outcome | None:
    """Return what is read where the first output is this text and no output of the tool's: None of a strict parser."""
    return outcome(workload, params, [replace(captures[0], stdout=text, stderr=text), *captures[1:]])


def cuts(whole: str) -> Iterator[tuple[str, str]]:
    """Yield the output cut off anywhere: what is done, and the damaged text."""
    for end in range(len(whole)):
        yield f"cut off after {end} characters", whole[:end]


def changed_lines(whole: str) -> Iterator[tuple[str, str]]:
    """Yield the output with each of its lines left out and then doubled: what is done, and the damaged text."""
    lines = whole.splitlines(keepends=True)
    for number, line in enumerate(lines):
        for copies in (0, 2):
            text = "".join([*lines[:number], line * copies, *lines[number + 1 :]])
            yield f"line {number + 1} is there {copies} times", text


def changed_digits(whole: str) -> Iterator[tuple[str, str]]:
    """Yield the output with each digit as 0 and as 9: what is done, and the damaged text."""
    for match in re.finditer(r"\d", whole):
        for digit in sorted({"0", "9"} - {match[0]}):
            place = match.start()
            yield f"character {place} is {digit}", whole[:place] + digit + whole[place + 1 :]


def _damaged(whole: str, *, digits: bool) -> Iterator[tuple[str, str, float]]:
    """Yield what is done, the damaged text, and by which share figures may differ."""
    yield from ((how, text, 0.0) for how, text in cuts(whole))
    yield from ((how, text, 0.0) for how, text in changed_lines(whole))
    yield from ((how, text, NEAR) for how, text in (changed_digits(whole) if digits else ()))
    for place in range(len(whole) + 1):
        yield f"junk at {place}", whole[:place] + _JUNK + whole[place:], 0.0


def _alike(result: Outcome, good: Outcome, tolerance: float) -> bool:
    """Return True if two outcomes have the same figures, but for this share of them."""
    if result.samples.keys() != good.samples.keys() or result.series.keys() != good.series.keys():
        return False
    pairs = [(result.work, good.work), *_pairs(result.samples, good.samples)]
    for name, values in good.series.items():
        others = result.series[name]
        if [value is None for value in others] != [value is None for value in values]:
            return False
        pairs += [(o, v) for o, v in zip(others, values, strict=True) if o is not None and v is not None]
    return all(math.isclose(value, other, rel_tol=tolerance, abs_tol=0.0) for value, other in pairs)


def _pairs(values: Mapping[str, float], good: Mapping[str, float]) -> list[tuple[float, float]]:
    return [(values[name], value) for name, value in good.items()]
