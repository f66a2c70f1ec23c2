"""What a study's file holds: its printed figures, what it derives from them, its slips, and how tare repeats it.

Every figure is typed off the published text with its table, figure or section, and with the decimals printed; nothing
was read off a plot. Names of platforms and metrics are the study's own; only `Run` and `Beside` know tare's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from tare.literature.catalogue import Scale
from tare.model import Design, Direction
from tare.records import Strict

Name = Annotated[str, Field(min_length=1)]
Number = Annotated[float, Field(allow_inf_nan=False)]
#: One figure, or the two that the text says something lies between.
Printed = Number | Annotated[list[Number], Field(min_length=2, max_length=2)]
Value = int | float | str | bool


class Source(Strict):
    """Where the figures come from; ``baseline`` is the platform that the study compares with."""

    authors: Name
    year: int
    title: str  # empty where the text that was read begins after the title
    kind: Name
    pages: str | dict[str, str | int]
    platforms: Annotated[list[Name], Field(min_length=2)]
    baseline: Name


class Figure(Strict):
    """One printed metric over platforms; a platform that was not measured, or is not printed, is left out."""

    metric: Name
    unit: Name
    where: Name  # table, figure or section
    decimals: int | None = None  # as printed, negative where it is rounded to thousands; None: not rounded
    direction: Annotated[Direction, Field(strict=False)] | None = None  # None: neither is better
    n: Annotated[int, Field(ge=1)] | None = None  # runs; None: not said
    about: bool = False  # "around", "more than", "almost": the text gives no exact figure
    relative: bool = False  # per cent of the baseline, which is 100 whether it is printed or not
    value: Annotated[dict[Name, Number], Field(min_length=1)]
    sd: dict[Name, Number] = {}  # standard deviation, in the unit
    rsd: dict[Name, Number] = {}  # relative standard deviation, in per cent of the value

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


class Change(Strict):
    """What the text says of two figures: per cent more (+) or less (-) of ``platform`` than of ``than``."""

    where: Name
    metric: Name
    platform: Name
    than: Name
    percent: Printed
    about: bool = False  # "about", "around", "almost", "up to"


class Derived(Strict):
    """What a study computed from its figures, and prints.

    overhead, variability overhead, trial-count overhead: in per cent (Li 2017, equation 1). share: in per cent of
    ``total``. sum and quotient: of ``parts``.
    """

    where: Name
    metric: Name
    platform: Name
    of: Literal["overhead", "variability overhead", "trial-count overhead", "share", "sum", "quotient"]
    value: Number
    decimals: Annotated[int, Field(ge=0)] | None = None  # None: not rounded
    ignored_below: Number = 0.0  # a fraction: an overhead below counts as none
    total: Number | None = None
    parts: list[Number] = []


class StatedInWords(Strict):
    """What the text states in words about a plot whose figures are not printed."""

    where: Name
    metric: Name
    platform: Name
    words: Name
    of: Literal["change", "variability overhead"] = "change"
    percent: Printed | None = None  # of the baseline's, as in `Change`; None where the words have no figure


class Anova(Strict):
    """An analysis of variance as printed; ``p_below``: "p < 0.0001"."""

    where: Name
    what: Name
    df_between: int
    df_within: int
    f: Number
    p_below: Number
    runs: int  # of every point


class Above(Strict):
    """A statement that only some platforms have a relative standard deviation above so many per cent."""

    where: Name
    above: Number
    only: list[Name]
    metrics: list[Name]


class Slip(Strict):
    """Where a study's own text does not follow from its own figures.

    computed: found from the data (`tare.analysis.studies.published`), with what is printed and what follows. words:
    found by reading.
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
    """What could not be read from the text."""

    what: Name
    why: Name


class Length(Strict):
    """How many blocks, or how long for each arm in seconds."""

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
    """A platform of the study's by tare's names: what runs in its place, and what else is compared with it."""

    study: Name
    run: list[Name] = []  # empty: tare has none, and ``why`` says so
    like: list[Name] = []  # near enough to be set beside its figures, and not run by the profile
    why: str = ""  # what differs

    @model_validator(mode="after")
    def _has_platform_or_reason(self) -> Self:
        if not self.run and not self.why:
            raise ValueError(f"{self.study} has nothing to run, and no reason")
        return self


class RunJob(Strict):
    """A workload of the profile: the study's parameters, those of the scaled run, and what one run takes."""

    workload: Name
    where: Name
    full: dict[Name, Value] = {}
    scaled: dict[Name, Value] = {}
    full_s: Annotated[float, Field(gt=0, strict=False)]  # of one run at full scale, seconds, about
    only: Annotated[Scale, Field(strict=False)] | None = None  # the one scale that runs it; None: both
    note: str = ""


class Run(Strict):
    """How tare repeats the study."""

    design: Annotated[Design, Field(strict=False)]
    where: Name  # the section that says so
    in_order: bool  # whether the workloads of a block run in the order given
    full: Length
    scaled: Length
    what_is_scaled: Name
    platform: Annotated[list[RunPlatform], Field(min_length=2)]
    job: Annotated[list[RunJob], Field(min_length=1)]
    without: list[Unread] = []  # what the study measured and the profile does not, and why

    def jobs(self, scale: Scale) -> list[RunJob]:
        """The workloads of a campaign of this scale, in the study's order."""
        return [job for job in self.job if job.only in {None, scale}]

    def length(self, scale: Scale) -> Length:
        """How long a campaign of this scale goes on."""
        return self.full if scale is Scale.FULL else self.scaled

    def shorter(self, scale: Scale, blocks: int | None) -> str:
        """In what a campaign of so many blocks (None: as many as fit) does less than the study; empty: in nothing."""
        parts = []
        if blocks is not None and (self.full.blocks is None or blocks < self.full.blocks):
            parts.append(f"{blocks} blocks instead of {self.full.blocks or _hours(self.full)}")
        if scale is Scale.SCALED:
            parts.append(self.what_is_scaled)
        return "; ".join(parts)


class Beside(Strict):
    """Which of tare's metrics a metric of the study's is set beside."""

    metric: Name
    workload: Name
    ours: Name
    inverse: bool = False  # theirs is a rate and ours a time, or the other way round
    note: str = ""


class Region(Strict):
    """Which part of its Venn diagrams a printed number of kernel lines is: of ``inside`` and not of ``outside``.

    With ``than`` it is how many more lines they have than this platform.
    """

    metric: Name
    inside: Annotated[list[Name], Field(min_length=1)]
    outside: list[Name] = []
    than: Name | None = None
    directory: str = ""  # of the kernel's source; empty: all of it
    workloads: Annotated[list[Name], Field(min_length=1)]  # tare's, that do what the study's did


class Text(Strict):
    """Statements of the text about figures, beside the tables."""

    again: list[Again] = []
    change: list[Change] = []
    derived: list[Derived] = []
    told: list[StatedInWords] = []


class Study(Strict):
    """All of a study's file."""

    name: Name
    source: Source
    text: Text = Text()
    figure: list[Figure] = []
    anova: list[Anova] = []
    deviations: list[Above] = []
    points: dict[Name, dict[Name, dict[Name, int]]] = {}  # printed scores by table, metric and platform
    sums: dict[Name, dict[Name, int]] = {}  # printed sums of scores by priority and platform
    profile: dict[str, Any] | None = None  # DESMET (`tare.analysis.studies.profile`)
    slip: list[Slip] = []
    unread: list[Unread] = []
    run: Run
    beside: list[Beside] = []
    region: list[Region] = []
    apart: list[Unread] = []  # what is printed and could be measured, and is not set beside tare's figures

    def metric(self, name: str) -> Figure:
        """The figures of a metric. Raises `KeyError`."""
        for figure in self.figure:
            if figure.metric == name:
                return figure
        raise KeyError(name)

    def percent(self, metric: str, platform: str) -> float | None:
        """A figure in per cent of the baseline's; None where one of the two is not printed, or is zero."""
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
                raise ValueError(f"{platform!r} is none of the study's platforms: {', '.join(sorted(platforms))}")
        for region in self.region:
            if region.metric not in names or not set(region.inside) <= self.metric(region.metric).value.keys():
                raise ValueError(f"no number is printed of {region.metric!r} for {', '.join(region.inside)}")
        measured = {*names, *(statement.metric for statement in self.text.told)}
        for beside in self.beside:
            if beside.metric not in measured:
                raise ValueError(f"nothing is printed of {beside.metric!r}, which is to be set beside {beside.ours}")
        return self


def _platforms(study: Study) -> Iterator[str]:
    """All platforms that the file names, in any of its parts; with repetitions."""
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
