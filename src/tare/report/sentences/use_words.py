"""Users' uses: the weights of each use, and the words of a choice by them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum

from tare.analysis.answers import Dimension
from tare.estimates.intervals import Interval
from tare.model import Direction
from tare.report.sentences.dimensions import DIMENSIONS, EXPOSURE
from tare.report.sentences.numbers import TO
from tare.report.sentences.scale import coarse


class UserUse(StrEnum):
    """A use: the kind of work that a user runs."""

    WEB = "web"
    BATCH = "batch"
    FUNCTIONS = "functions"
    UNTRUSTED = "untrusted"
    DATABASE = "database"


class Aspect(StrEnum):
    """An aspect of a platform: the dimensions of the answer, and the exposed kernel."""

    COMPUTE = Dimension.COMPUTE.value
    CPU_COST = Dimension.CPU_COST.value
    MEMORY = Dimension.MEMORY.value
    DISK = Dimension.DISK.value
    NETWORK = Dimension.NETWORK.value
    APPLICATIONS = Dimension.APPLICATIONS.value
    SYSTEM_CALLS = Dimension.SYSTEM_CALLS.value
    START = Dimension.START.value
    FOOTPRINT = Dimension.FOOTPRINT.value
    EXPOSED = "exposed-kernel"


EXPOSED = Aspect.EXPOSED
#: Each use in a sentence.
USES: Mapping[UserUse, str] = {
    UserUse.WEB: "a web service",
    UserUse.BATCH: "batch compute",
    UserUse.FUNCTIONS: "functions",
    UserUse.UNTRUSTED: "untrusted code",
    UserUse.DATABASE: "a database",
}
#: How much each aspect counts; what is not named has no weight.
WEIGHTS: Mapping[UserUse, Mapping[Aspect, float]] = {
    UserUse.WEB: {
        Aspect.APPLICATIONS: 4, Aspect.NETWORK: 3, Aspect.CPU_COST: 2, Aspect.COMPUTE: 1, Aspect.FOOTPRINT: 1
    },
    UserUse.BATCH: {Aspect.COMPUTE: 4, Aspect.MEMORY: 2, Aspect.CPU_COST: 2, Aspect.DISK: 1},
    UserUse.FUNCTIONS: {
        Aspect.START: 4, Aspect.FOOTPRINT: 2, Aspect.APPLICATIONS: 1, Aspect.COMPUTE: 1, Aspect.CPU_COST: 1
    },
    UserUse.UNTRUSTED: {
        Aspect.EXPOSED: 8, Aspect.COMPUTE: 1, Aspect.APPLICATIONS: 1, Aspect.CPU_COST: 1, Aspect.START: 1
    },
    UserUse.DATABASE: {Aspect.DISK: 4, Aspect.APPLICATIONS: 3, Aspect.CPU_COST: 2, Aspect.MEMORY: 1, Aspect.NETWORK: 1},
}  # fmt: skip
#: Without a figure of one of these a campaign says nothing of a use.
NEEDED: Mapping[UserUse, frozenset[Aspect]] = {
    UserUse.WEB: frozenset({Aspect.APPLICATIONS, Aspect.NETWORK}),
    UserUse.BATCH: frozenset({Aspect.COMPUTE}),
    UserUse.FUNCTIONS: frozenset({Aspect.START}),
    UserUse.UNTRUSTED: frozenset({Aspect.EXPOSED}),
    UserUse.DATABASE: frozenset({Aspect.DISK}),
}
#: The words of `--choose` for each aspect.
TYPED: Mapping[str, Aspect] = {
    "compute": Aspect.COMPUTE,
    "cpu": Aspect.CPU_COST,
    "memory": Aspect.MEMORY,
    "disk": Aspect.DISK,
    "network": Aspect.NETWORK,
    "applications": Aspect.APPLICATIONS,
    "services": Aspect.SYSTEM_CALLS,
    "start": Aspect.START,
    "footprint": Aspect.FOOTPRINT,
    "calls": Aspect.EXPOSED,
}
#: The head of the column, and what it says.
WEIGHTED = "weighted cost"
#: The page's question, and its first answer.
WHAT = "What do you run?"
WEIGHT_LABELS = "How much each counts"


def aspect_name(aspect: Aspect) -> str:
    """An aspect as the tables call it."""
    return EXPOSURE if aspect is Aspect.EXPOSED else DIMENSIONS[Dimension(aspect.value)]


def weights_text(weights: Mapping[Aspect, float], measured: Collection[Aspect]) -> str:
    """The weights, the largest first: "applications 4, network 3"; and which of them nothing was measured of."""
    ordered = sorted(((aspect, weight) for aspect, weight in weights.items() if weight > 0), key=lambda of: -of[1])
    counted = ", ".join(f"{aspect_name(aspect)} {weight:g}" for aspect, weight in ordered if aspect in measured)
    lacking = ", ".join(aspect_name(aspect) for aspect, _ in ordered if aspect not in measured)
    return counted + (f"; not measured here, and without weight: {lacking}" if lacking else "")


def weights_note(use: UserUse, weights: Mapping[Aspect, float], measured: Collection[Aspect]) -> str:
    """Return what a choice on the terminal is sorted by, and how to change it."""
    return (
        f"For {USES[use]}, by weights: {weights_text(weights, measured)}. Change one: --choose"
        f' "for={use.value} {_typed(Aspect.CPU_COST)}*3".'
    )


def _typed(aspect: Aspect) -> str:
    return next(word for word, of in TYPED.items() if of is aspect)


def explanation(baseline: str, start_ms: float, footprint_mib: float) -> str:
    """Return how a weighted cost is made."""
    return (
        f"Weighted cost: the weighted mean of how many times worse than {baseline} each is, on a logarithmic scale;"
        f" {start_ms:g} ms of start and {footprint_mib:g} MiB of memory more count as twice as bad. CPU cost is the"
        " worst of the work that counts. The range has the ends of all intervals: who overlaps is not told apart."
    )


def weighted_figure(times: Interval) -> tuple[str, str]:
    """A weighted cost and its range: ("+4.1 %", "+3.6 % to +4.7 %"). tables.js has the same."""
    point, low, high = (coarse(value, Direction.LOWER) for value in (times.point, times.low, times.high))
    return point, f"{low}{TO}{high}"


def not_known(missing: Sequence[Aspect]) -> str:
    """Return why a platform has no weighted cost."""
    return f"not known: {', '.join(map(aspect_name, missing))}"


def unread(platforms: Sequence[str], file: str) -> str:
    """That untrusted code cannot be chosen for, and the command that changes it."""
    return f"what tenants may ask of the host's kernel was not read: tare surface {' '.join(platforms)} -o {file}"


def not_answerable(use: UserUse) -> str:
    """Return why there is no choice for a use."""
    wanted = " or ".join(aspect_name(aspect) for aspect in sorted(NEEDED[use]))
    return f"this campaign measured nothing of {wanted}, which {USES[use]} is chosen by"
