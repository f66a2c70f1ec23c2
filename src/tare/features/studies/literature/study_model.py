"""Model of a study's file: printed figures, derived figures, slips, and how tare repeats the study.

Every figure is copied from the published text with its table, figure or section, and with the decimals printed; no
figure is read off a plot. Names of platforms and metrics are the study's own; only `StudyRun` and `MetricBeside` use
tare's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from tare.model import Design, Direction, Scale
from tare.records import Strict

Name = Annotated[str, Field(min_length=1)]
Number = Annotated[float, Field(allow_inf_nan=False)]
#: One figure, or the two limits that the text gives for it.
Printed = Number | Annotated[list[Number], Field(min_length=2, max_length=2)]
Value = int | float | str | bool


class StudySource(Strict):
    """Source of the figures. ``baseline``: the platform that the study compares with."""

    authors: Name
    year: int
    title: str  # Empty if the text that was read begins after the title.
    kind: Name
    pages: str | dict[str, str | int]
    platforms: Annotated[list[Name], Field(min_length=2)]
    baseline: Name


class PrintedFigure(Strict):
    """One printed metric over platforms. A platform that was not measured, or is not printed, is left out."""

    metric: Name
    unit: Name
    where: Name  # Table, figure or section.
    decimals: int | None = None  # As printed; negative if rounded to thousands; None: not rounded.
    direction: Annotated[Direction, Field(strict=False)] | None = None  # None: no direction is better.
    n: Annotated[int, Field(ge=1)] | None = None  # Runs; None: not stated.
    about: bool = False  # "around", "more than", "almost": the text gives no exact figure.
    relative: bool = False  # Per cent of the baseline, which is 100, printed or not.
    value: Annotated[dict[Name, Number], Field(min_length=1)]
    sd: dict[Name, Number] = {}  # Standard deviation, in the unit.
    rsd: dict[Name, Number] = {}  # Relative standard deviation, in per cent of the value.

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name in itertools.chain(self.sd, self.rsd):
            if name not in self.value:
                raise ValueError(f"{self.metric}: {name} has a deviation and no value")
        return self


class Again(Strict):
    """A figure that the study prints a second time, elsewhere."""

    where: Name
    metric: Name
    platform: Name
    of: Literal["value", "sd"] = "value"
    value: Number
    decimals: Annotated[int, Field(ge=0)]


class StatedChange(Strict):
    """A statement about two figures: ``platform`` is so many per cent above (+) or below (-) ``than``."""

    where: Name
    metric: Name
    platform: Name
    than: Name
    percent: Printed
    about: bool = False  # "about", "around", "almost", "up to".


class Derived(Strict):
    """A figure that the study computed from its other figures, and prints.

    overhead, variability overhead, trial-count overhead: in per cent (Li 2017, equation 1). share: in per cent of
    ``total``. sum and quotient: of ``parts``.
    """

    where: Name
    metric: Name
    platform: Name
    of: Literal["overhead", "variability overhead", "trial-count overhead", "share", "sum", "quotient"]
    value: Number
    decimals: Annotated[int, Field(ge=0)] | None = None  # None: not rounded.
    ignored_below: Number = 0.0  # A fraction; a smaller overhead counts as zero.
    total: Number | None = None
    parts: list[Number] = []


class StatedInWords(Strict):
    """A statement in words about a plot whose figures are not printed."""

    where: Name
    metric: Name
    platform: Name
    words: Name
    of: Literal["change", "variability overhead"] = "change"
    percent: Printed | None = None  # Of the baseline's, as in `StatedChange`; None if the words give no figure.


class Anova(Strict):
    """An analysis of variance as printed; ``p_below``: "p < 0.0001"."""

    where: Name
    what: Name
    df_between: int
    df_within: int
    f: Number
    p_below: Number
    runs: int  # At every point.


class Above(Strict):
    """A statement that only the named platforms have a relative standard deviation above a limit in per cent."""

    where: Name
    above: Number
    only: list[Name]
    metrics: list[Name]


class Slip(Strict):
    """A place where a study's text does not follow from its own figures.

    computed: found from the data (`studies.analysis.published`), with the printed value and the value that follows.
    words: found by reading.
    """

    kind: Literal["computed", "words"]
    where: Name
    why: Name
    metric: str = ""
    platform: str = ""
    printed: Printed | None = None
    follows: Number | str | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.kind == "computed" and (self.printed is None or self.follows is None or not self.metric):
            raise ValueError(f"the slip in {self.where} has no metric, printed or follows")
        return self


class Unread(Strict):
    """A part of the text that could not be read."""

    what: Name
    why: Name


class Length(Strict):
    """Number of blocks, or seconds for each arm."""

    blocks: Annotated[int, Field(ge=1)] | None = None
    arm_s: Annotated[float, Field(gt=0, strict=False)] | None = None

    @model_validator(mode="after")
    def _blocks_or_time(self) -> Self:
        if (self.blocks is None) == (self.arm_s is None):
            raise ValueError("a length is blocks or arm_s")
        return self


def _hours(length: Length) -> str:
    return f"as many as fit into {(length.arm_s or 0) / 3600:.0f} hours an arm"


class RunPlatform(Strict):
    """A platform of the study's in tare's names: platforms that replace it, and platforms compared with it."""

    study: Name
    run: list[Name] = []  # Empty: tare has no such platform, and ``why`` says so.
    like: list[Name] = []  # Close enough to be shown beside its figures; the profile does not run them.
    why: str = ""  # How they differ.

    @model_validator(mode="after")
    def _has_platform_or_reason(self) -> Self:
        if not self.run and not self.why:
            raise ValueError(f"{self.study} has nothing to run, and no reason")
        return self


class RunJob(Strict):
    """A workload of the profile: the study's parameters, those of the scaled run, and the time of one run."""

    workload: Name
    where: Name
    full: dict[Name, Value] = {}
    scaled: dict[Name, Value] = {}
    full_s: Annotated[float, Field(gt=0, strict=False)]  # Approximate duration of one run at full scale, in seconds.
    only: Annotated[Scale, Field(strict=False)] | None = None  # The only scale that runs it; None: both.
    note: str = ""


class StudyRun(Strict):
    """The way in which tare repeats the study."""

    design: Annotated[Design, Field(strict=False)]
    where: Name  # The section of the study that describes it.
    in_order: bool  # The workloads of a block run in the given order.
    full: Length
    scaled: Length
    what_is_scaled: Name
    platform: Annotated[list[RunPlatform], Field(min_length=2)]
    job: Annotated[list[RunJob], Field(min_length=1)]
    without: list[Unread] = []  # Measured by the study but not by the profile, with reasons.

    def jobs(self, scale: Scale) -> list[RunJob]:
        """Return the workloads of a campaign of this scale, in the study's order."""
        return [job for job in self.job if job.only in {None, scale}]

    def length(self, scale: Scale) -> Length:
        """Return the length of a campaign of this scale."""
        return self.full if scale is Scale.FULL else self.scaled

    def shorter(self, scale: Scale, blocks: int | None) -> str:
        """Describe where a campaign does less than the study; "" if nowhere. ``blocks``: None means as many as fit."""
        parts = []
        if blocks is not None and (self.full.blocks is None or blocks < self.full.blocks):
            parts.append(f"{blocks} blocks instead of {self.full.blocks or _hours(self.full)}")
        if scale is Scale.SCALED:
            parts.append(self.what_is_scaled)
        return "; ".join(parts)


class MetricBeside(Strict):
    """A metric of tare's that is shown beside a metric of the study's."""

    metric: Name
    workload: Name
    ours: Name
    inverse: bool = False  # One of the two is a rate, and the other is a time.
    note: str = ""


class Region(Strict):
    """The part of the study's Venn diagrams for a printed number of kernel lines: in ``inside`` but not in ``outside``.

    With ``than``, the number is the difference from that platform.
    """

    metric: Name
    inside: Annotated[list[Name], Field(min_length=1)]
    outside: list[Name] = []
    than: Name | None = None
    directory: str = ""  # Of the kernel's source; empty: all of it.
    workloads: Annotated[list[Name], Field(min_length=1)]  # Workloads of tare's that do the same work as the study's.


class Text(Strict):
    """Statements of the text about figures, beside the tables."""

    again: list[Again] = []
    change: list[StatedChange] = []
    derived: list[Derived] = []
    told: list[StatedInWords] = []


class Study(Strict):
    """The whole file of a study."""

    name: Name
    source: StudySource
    text: Text = Text()
    figure: list[PrintedFigure] = []
    anova: list[Anova] = []
    deviations: list[Above] = []
    points: dict[Name, dict[Name, dict[Name, int]]] = {}  # Printed scores by table, metric and platform.
    sums: dict[Name, dict[Name, int]] = {}  # Printed sums of scores by priority and platform.
    profile: dict[str, Any] | None = None  # DESMET (`tare.features.studies.analysis.profile`)
    slip: list[Slip] = []
    unread: list[Unread] = []
    run: StudyRun
    beside: list[MetricBeside] = []
    region: list[Region] = []
    apart: list[Unread] = []  # Printed and measurable, but not shown beside tare's figures.

    def metric(self, name: str) -> PrintedFigure:
        """Return the figures of a metric. Raises `KeyError`."""
        for figure in self.figure:
            if figure.metric == name:
                return figure
        raise KeyError(name)

    def percent(self, metric: str, platform: str) -> float | None:
        """Return a figure in per cent of the baseline's; None if either is not printed or is zero."""
        figure = self.metric(metric)
        base = 100.0 if figure.relative else figure.value.get(self.source.baseline)
        value = figure.value.get(platform)
        return None if not base or value is None else 100 * value / base

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [figure.metric for figure in self.figure]
        if len(set(names)) < len(names):
            raise ValueError("a metric has two entries")
        platforms = set(self.source.platforms)
        for platform in _platforms(self):
            if platform not in platforms:
                raise ValueError(f"{platform!r} is not among the study's platforms: {', '.join(sorted(platforms))}")
        for region in self.region:
            if region.metric not in names or not set(region.inside) <= self.metric(region.metric).value.keys():
                raise ValueError(f"no number is printed of {region.metric!r} for {', '.join(region.inside)}")
        measured = {*names, *(statement.metric for statement in self.text.told)}
        for beside in self.beside:
            if beside.metric not in measured:
                raise ValueError(f"nothing is printed of {beside.metric!r}, which is to be set beside {beside.ours}")
        return self


def _platforms(study: Study) -> Iterator[str]:
    """Yield all platforms that the file names, in any of its parts, with repetitions."""
    yield study.source.baseline
    for figure in study.figure:
        yield from figure.value
    for table in study.points.values():
        for row in table.values():
            yield from row
    yield from (reprint.platform for reprint in study.text.again)
    yield from (name for change in study.text.change for name in (change.platform, change.than))
    yield from (derived.platform for derived in study.text.derived)
    yield from (statement.platform for statement in study.text.told)
    yield from (slip.platform for slip in study.slip if slip.platform)
    yield from (name for region in study.region for name in (*region.inside, *region.outside))
    yield from (region.than for region in study.region if region.than)
    yield from (platform.study for platform in study.run.platform)
