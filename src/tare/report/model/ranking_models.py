"""The ranking of the platforms for a user's own command."""

from __future__ import annotations

from tare.records import Documented


class RankReport(Documented):
    """One platform: how many times as long a run takes there as on the baseline."""

    platform: str
    """Its name."""
    times: float | None
    """The ratio of the wall times, as in `effect` of the platform; null where there is none."""
    low: float | None
    """Lower end of its interval; null of one block alone."""
    high: float | None
    """Upper end of it."""
    level: float | None = None
    """The interval's level, as in `effect`."""
    n_ok: int
    """Trials that ended ok."""


class RankingReport(Documented):
    """The platforms but the baseline for one command, the fastest first; those without a figure last."""

    workload: str
    """The command's workload."""
    baseline: str
    """The platform that the others are compared with."""
    ranks: list[RankReport]
    """One entry a platform."""
    text: str
    """The same in words."""
