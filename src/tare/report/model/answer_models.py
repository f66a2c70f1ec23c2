"""The campaign's first answer about a platform."""

from __future__ import annotations

from tare.analysis.answers import AnswerState, Dimension
from tare.model import Direction
from tare.records import Documented
from tare.report.model.result_models import BoundReport


class DimensionReport(Documented):
    """A platform in one dimension, shown by the worst of its headline figures; nothing is pooled."""

    dimension: Dimension
    """The dimension."""
    state: AnswerState
    """How the platform stands: `worse`, `better`; `surely-worse`, `surely-better` (whether by more than the margin is
    open); `alike`, `bounded` (no verdict, and a bound), `open` (neither), `once` (seen in one block), `none`.
    """
    workload: str
    """The workload whose figure is shown."""
    metric: str
    """Its metric."""
    direction: Direction = Direction.LOWER
    """Which way is better of it: it says how many times worse is how many per cent, as of a rate."""
    n_figures: int
    """How many figures it is the worst of."""
    felt: float
    """How much a user may feel of it: 1 is as much as a doubled time; below 0 it is better."""
    op_percent: float | None
    """Its overhead, as it is shown; null where there is no ratio."""
    times: float | None = None
    """How many times worse it is; null where there is no ratio."""
    times_low: float | None = None
    """The lower end of its interval; null where there is none."""
    times_high: float | None = None
    """The higher end."""
    value: float | None = None
    """The platform's value of that figure, in `unit`: what the ratio makes of the baseline's mean."""
    bound: BoundReport | None = None
    """Of a `bounded` dimension: what holds for all of its figures without a verdict."""
    seconds: float | None = None
    """Of an `open` dimension: more of the campaign that would answer it, by even odds; null where none can be told."""
    survives_holm: bool | None = None
    """Whether its verdict survives the correction for the number of verdicts (†: not); null without a verdict."""
    unit: str = ""
    """The figure's unit."""
    figure: str
    """The difference in words: "+4.1 %", "+132 ms"."""
    text: str
    """The same as a clause, with the platform's value and the baseline's."""


class SettlingReport(Documented):
    """More of the campaign, which would answer what is open: a verdict, or a bound within ± 15 %, by even odds."""

    workloads: list[str]
    """The workloads that an hour would answer; empty where none."""
    blocks: int
    """How many more blocks they need."""
    seconds: float
    """What these take."""
    command: str
    """The command that continues the campaign; "" where there are no such workloads."""
    beyond: list[str]
    """The workloads that would take longer, on this host as it was."""
    beyond_seconds: float
    """What these would take."""


class AnswerReport(Documented):
    """The campaign's answer about a platform, with the most important figures first."""

    platform: str
    """The platform."""
    sentences: list[str]
    """In words: what is worse, what is like the baseline, what is better, what is bounded, and last what is open."""
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
    """What would answer what is open of this platform; null where nothing is, or nobody can predict it."""
