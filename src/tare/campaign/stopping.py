"""When a workload has enough blocks, as pure data: by the width of its intervals, never by what they say.

Whoever looks until a difference shows finds one in a quarter of the cases where there is none (METHOD, part 2). The
width of an interval tells nothing of where it lies, so stopping by it leaves the intervals' coverage as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tare.errors import UsageError

if TYPE_CHECKING:
    from tare.store.store import Store

#: The first look, and every so many blocks another: fewer blocks tell too little of how wide an interval will be.
LOOK_FROM, LOOK_EVERY = 10, 5


class Width(Protocol):
    """How well a workload is known: the widest 95 % half-width of its headline and cost, and the blocks behind it."""

    @property
    def half_width(self) -> float | None: ...  # a fraction; None: no interval can be had of it
    @property
    def n_blocks(self) -> int: ...


#: Reads a campaign's store; by workload. What it takes is analysis, which the campaign does not know.
Widths = Callable[["Store"], Mapping[str, Width]]


@dataclass(frozen=True, slots=True)
class Need:
    """What a workload would still take to be known well enough."""

    blocks: int
    gain: float  # how much its excess over the target shrinks in a second


def is_look(block: int) -> bool:
    """Whether one looks before block number ``block`` (from 0)."""
    return block >= LOOK_FROM and (block - LOOK_FROM) % LOOK_EVERY == 0


def need(width: Width, target: float, block_s: float) -> Need | None:
    """What is missing; None where nothing is, or nothing could help.

    A half-width shrinks as the root of the number of blocks: for a target ``t`` of a half-width ``w`` from ``n``
    blocks it takes ``n (w / t)^2``. ``block_s``: seconds that a block of this workload takes.
    """
    if width.half_width is None or width.half_width <= target:
        return None
    excess = width.half_width / target
    blocks = math.ceil(width.n_blocks * excess**2) - width.n_blocks
    return Need(max(blocks, 1), excess / (2 * width.n_blocks * max(block_s, 1e-9)))


def still_wanted(needs: Mapping[str, Need], seconds: Mapping[str, float], left_s: float | None) -> tuple[str, ...]:
    """The workloads that the next blocks run: those that can be brought to their target in the time that is left.

    Where not all can, those whose intervals narrow most in a second come first. Where none can, that one is taken which
    narrows most: its resolution is what the campaign can still better. ``seconds``: of a block, by workload.
    """
    ranked = sorted(needs, key=lambda name: -needs[name].gain)
    if left_s is None:
        return tuple(ranked)
    chosen: list[str] = []
    for name in ranked:
        takes = needs[name].blocks * seconds.get(name, 0.0)
        if takes <= left_s:
            chosen.append(name)
            left_s -= takes
    return tuple(chosen or ranked[:1])


def parse_precision(text: str) -> float:
    """A half-width as a fraction, from ``0.5%`` or ``0.005``; ``0`` for none."""
    number, scale = (text[:-1], 0.01) if text.endswith("%") else (text, 1.0)
    try:
        value = float(number) * scale
    except ValueError:
        value = math.nan
    if not 0 <= value < 1:
        raise UsageError(f"{text!r} is not a precision", fix="write 0.5%, or 0 to use all of the time")
    return value


def targets(margins: Mapping[str, float], asked: float | None) -> dict[str, float]:
    """The half-width to reach, by workload: what was asked for, or half of the margin; empty for ``0``.

    Half of the margin: two equal platforms are then shown to be so, as their interval fits into it.
    """
    if asked == 0:
        return {}
    return {name: margin / 2 if asked is None else asked for name, margin in margins.items()}
