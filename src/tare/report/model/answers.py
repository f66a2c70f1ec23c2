"""What the campaign says of a platform first."""

from __future__ import annotations

from tare.analysis.answers import Dimension, State
from tare.records import Documented


class DimensionReport(Documented):
    """A platform in one dimension, shown by the worst of its headline figures; nothing is pooled."""

    dimension: Dimension
    """The dimension."""
    state: State
    """How the platform stands: `worse`, `better`, `alike`, `open`, `once` (seen in one block), `none`."""
    workload: str
    """The workload whose figure is shown."""
    metric: str
    """Its metric."""
    n_figures: int
    """Of so many figures it is the worst."""
    felt: float
    """How much a user may feel of it: 1 is as much as a doubled time; below 0 it is better."""
    op_percent: float | None
    """Its overhead; null where there is no ratio."""
    value: float | None = None
    """The platform's mean of that figure, in `unit`."""
    unit: str = ""
    """The figure's unit."""
    figure: str
    """The difference in words: "+4.1 %", "+132 ms"."""
    text: str
    """The same as a clause, with the platform's value and the baseline's."""


class SettlingReport(Documented):
    """A campaign that would tell what is open of a platform."""

    workloads: list[str]
    """The workloads that an hour would settle; empty where none."""
    blocks: int
    """How many blocks they need."""
    seconds: float
    """What that takes."""
    command: str
    """The command; "" where there are no such workloads."""
    beyond: list[str]
    """The workloads that would take longer, on this host as it was."""
    beyond_seconds: float
    """What these would take."""


class AnswerReport(Documented):
    """What the campaign says of a platform, what matters most first."""

    platform: str
    """The platform."""
    sentences: list[str]
    """In words: what is worse, what is like the baseline, what is better, and last what is open; where the last ends
    with a colon, `settling.command` follows it.
    """
    dimensions: list[DimensionReport]
    """Where it stands, the most felt first."""
    daemon: bool
    """Whether a daemon that its instances share works for it."""
    needs_root: bool | None = None
    """Whether only root, or a daemon of root's, can do what it does; null: the campaign does not say."""
    calls: int | None
    """System calls of the host's kernel that its tenant may make; null: `tare surface` did not read it."""
    baseline_calls: int | None
    """Those of the baseline's tenant."""
    settling: SettlingReport | None
    """What would settle what is open; null where nothing is, or nobody can predict it."""
