"""Findings: context of a verdict, as a code with its numbers; the sentences are the report's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tare.analysis.verdicts import VerdictKind


class FindingKind(StrEnum):
    """The kinds of findings, with their numbers; shares, speeds and losses are fractions.

    - ``stalls``: rounds beyond the baseline's cut: ``share``, their ``speed`` as a share of the usual speed, and the
      share of work ``lost`` to them; ``baseline_share`` and ``baseline_lost``.
    - ``unseen``: what ``draws`` (rounds of slices, otherwise runs) in ``blocks`` starts are too few to exclude: a mode
      in ``share`` of them, which at half speed costs ``cost``; in ``blocks_share`` of the starts.
    - ``failures``: ``failed`` of ``trials``, ``baseline_failed`` of ``baseline_trials``.
    - ``resolution``: the metric's ``step`` in its unit, and the ``half_width`` of the interval that it alone causes.
    - ``no-spread``: ``blocks`` without any difference, and the number ``needed``.
    - ``contaminated``: ``marked`` of ``ok`` trials, and the number for each `contamination.Disturbance`.
    - ``blocks-left-out``: ``missing`` of ``blocks``, in which the platform or the baseline has no sample.
    - ``single-baseline``: only one baseline arm has samples in ``single`` of ``blocks``.
    - ``bootstrap``: it would give another ``verdict``: ``point``, ``low`` and ``high`` of its overhead.
    - ``after-each-other``: the platforms did not run in turn.
    - ``drift``: rank ``correlation`` of the ratio with the block, too little to close the figure.
    - ``one-baseline``, ``no-floor``: there is no A/A figure; the second has a `FloorReason`.
    - ``wide-floor``: the A/A interval's ``half_width`` is beyond the margin.
    - ``floor-excludes-zero``: the A/A interval does, by too little to make the metric invalid (`verdicts.aa_gate`).
    - ``unmarked``: the effect of leaving out the contaminated trials; its figures are `Unmarked`'s.
    - ``client-limited``: the client used ``busy`` of its CPUs' time here, ``baseline_busy`` on the baseline. From
      `analysis.trust.client.BUSY` on, it is at its limit. With all of its time, it would reach ``limit`` of ``unit``.
    - ``client-near``: the same from `analysis.trust.client.NEAR` on, with some time left.
    - ``clock-off``: the clock inside ran by ``rate`` too fast (below zero: too slow), known to ``open`` either way.
    - ``clock-open``: the clock's error is only known to ``open`` either way, which is more than half of the margin.
    - ``client-dearer``: a unit of work cost the client ``times`` as much CPU time as on the baseline, more than
      `analysis.trust.client.DEARER`, so that the figure depends on the client too.
    - ``disk-limited``: the disk was ``busy`` for this share of the time, and ``baseline_busy`` on the baseline. From
      `analysis.trust.disk.BUSY` on, it is at its limit.
    - ``headline-differs``: the workload's headline ``metric`` has another ``verdict``.
    - ``shared-pages``: this PSS ranks the platform against the ``others`` in the reverse order of ``metric``.
    """

    STALLS = "stalls"
    UNSEEN = "unseen"
    FAILURES = "failures"
    RESOLUTION = "resolution"
    NO_SPREAD = "no-spread"
    CONTAMINATED = "contaminated"
    BLOCKS_LEFT_OUT = "blocks-left-out"
    SINGLE_BASELINE = "single-baseline"
    BOOTSTRAP = "bootstrap"
    AFTER_EACH_OTHER = "after-each-other"
    DRIFT = "drift"
    ONE_BASELINE = "one-baseline"
    NO_FLOOR = "no-floor"
    WIDE_FLOOR = "wide-floor"
    FLOOR_EXCLUDES_ZERO = "floor-excludes-zero"
    UNMARKED = "unmarked"
    CLIENT_LIMITED = "client-limited"
    CLIENT_NEAR = "client-near"
    CLOCK_OFF = "clock-off"
    CLOCK_OPEN = "clock-open"
    CLIENT_DEARER = "client-dearer"
    DISK_LIMITED = "disk-limited"
    HEADLINE_DIFFERS = "headline-differs"
    SHARED_PAGES = "shared-pages"


#: The client or the disk was the limit, so the figure is not the platform's, and counts for none of its costs.
NOT_THE_PLATFORMS = frozenset({FindingKind.CLIENT_LIMITED, FindingKind.CLIENT_DEARER, FindingKind.DISK_LIMITED})


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of a platform in a metric."""

    kind: FindingKind
    numbers: Mapping[str, float] = field(default_factory=dict)
    verdict: VerdictKind | None = None  # Of the bootstrap, or of the headline metric.
    metric: str | None = None  # The headline metric.
    others: tuple[str, ...] = ()  # The platforms that are ranked otherwise.
    unit: str = ""  # Of the client's limit.
