"""Words for a choice of platforms: its criteria, the reasons against a platform, and the page's questions."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from tare.report.sentences.numbers import quantity
from tare.report.sentences.use_words import USES, UserUse


class Criterion(StrEnum):
    """A figure that may be limited."""

    CPU = "cpu"  # CPU cost in per cent
    START = "start"  # ms
    CALLS = "calls"  # system calls of the host's kernel


class Trait(StrEnum):
    """A property that may be ruled out."""

    DAEMON = "daemon"
    ROOT = "root"


_CRITERIA: Mapping[Criterion, str] = {
    Criterion.CPU: "CPU cost",
    Criterion.START: "start",
    Criterion.CALLS: "system calls",
}
_HAS: Mapping[Trait, str] = {Trait.DAEMON: "shares a daemon", Trait.ROOT: "needs root"}

#: The questions that the page has the best platform for.
WITHOUT_DAEMON = "without a shared daemon"
WITHOUT_ROOT = "without root"
QUICKEST = "quickest start"
LEAST_EXPOSED = "least of the host's kernel"


def amount_text(of: Criterion, value: float | None) -> str:
    """An amount that is too much, or that is not known."""
    return f"{_CRITERIA[of]} {'not known' if value is None else figure(of, value)}"


def trait_text(trait: Trait, *, known: bool) -> str:
    """Return what a platform has and may not have; or that it is not known whether it has."""
    return _HAS[trait] if known else f"not known whether it {_HAS[trait]}"


def figure(of: Criterion, value: float) -> str:
    """An amount as text with its unit."""
    if of is Criterion.CPU:
        return f"{value:+.1f} %".replace("-", "\N{MINUS SIGN}")
    return quantity(value, "ms") if of is Criterion.START else f"{value:.0f}"


def best_for(use: UserUse, without: str = "") -> str:
    """A question of the page: what is best for a use; ``without``: what may not be needed."""
    return f"for {USES[use]}{f', {without}' if without else ''}"


def pick_figure(of: Criterion, value: float) -> str:
    """The figure of the best platform, which stands alone."""
    return f"{figure(of, value)}{' system calls' if of is Criterion.CALLS else ''}"
