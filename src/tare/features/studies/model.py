"""Results beside a study's published figures."""

from __future__ import annotations

from tare.features.studies.analysis.beside import Position, Quantity
from tare.records import Documented


class BesideRow(Documented):
    """A study's figure and ours, both in per cent: of the own baseline's figure, or overhead of standard deviations."""

    metric: str
    """The study's metric."""
    where: str
    """Its table, figure or section."""
    study_platform: str
    """The study's platform."""
    platform: str
    """Our platform."""
    workload: str
    """Our workload."""
    ours: str
    """Our metric."""
    what: Quantity
    """What both figures are; both in per cent."""
    words: str
    """The study's words, where it has no figure."""
    study_low: float
    """The study's figure."""
    study_high: float
    """The same; it differs from `study_low` where the text says "between"."""
    study_sd: float | None
    """Its standard deviation in per cent of its baseline; null where not printed."""
    study_n: int | None
    """Its runs; null where not printed."""
    our_percent: float | None
    """Our figure."""
    our_low: float | None
    """Lower end of its interval; null if it has none, for example with one block."""
    our_high: float | None
    """Upper end of its interval."""
    our_blocks: int
    """Our blocks."""
    agreement: Position
    """`inside`: theirs lies in our interval; else `open` (ours may be no difference), `further` or `nearer` (theirs
    lies on our side of the baseline, further from it than ours, or nearer to it or on it), `other-side`; `no-interval`
    (ours has none: one block, or too few for a spread) or `no-figure` of ours.
    """


class BesideReport(Documented):
    """A campaign beside a study's published figures (`tare report --beside`)."""

    study: str
    """The study."""
    authors: str
    """Its authors."""
    year: int
    """When it appeared."""
    baseline: str
    """The platform that it compares with."""
    scaled: str | None
    """In words, in what the campaign was shorter than the study; null where it was not, or ran another profile."""
    rows: list[BesideRow]
    """One entry a metric of the study's and platform of ours."""
    absent: list[str]
    """What could be set beside and was not measured."""
    apart: list[str]
    """What the study has and is not set beside, and why."""
    notes: list[str]
    """In what its platforms and metrics differ from ours."""
