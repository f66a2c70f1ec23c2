"""The page's account of the method, in plain words; its markup goes in as it is, values are escaped."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

_PARAGRAPHS = (
    Markup(
        "<b>Same bits.</b> Every platform, {baseline} too, ran the same root filesystem and the same agent, on the"
        " same CPUs with the same memory. What a platform could not honour is listed above."
    ),
    Markup(
        "<b>Blocks.</b> A block starts every platform afresh, {baseline} twice, in an order drawn from seed {seed}."
        " Short work is done in slices by all instances in turn, so that a noisy neighbour hits all of them alike. A"
        " block is one observation: a thousand samples of one instance tell much of that instance and little of the"
        " next."
    ),
    Markup(
        "<b>Estimate.</b> Within a block each sample is compared with those of both {baseline} arms of the same round,"
        " as the logarithm of their ratio; the block's figure is the mean of the Hodges-Lehmann estimates of these,"
        " which wild rounds cannot drag away. Over blocks: the mean with Student's 95&nbsp;% interval. With ten blocks"
        " or more a bootstrap (BCa) checks it, and a note says where it would judge otherwise."
    ),
    Markup(
        "<b>Verdict.</b> The margin was fixed before the data. <i>Worse</i> or <i>better</i>: the 95&nbsp;% interval,"
        " of the typical round or of whole blocks, lies wholly beyond it, and its 99&nbsp;% interval (99.5&nbsp;% where"
        " there are two) excludes zero. <i>Equivalent</i>: two one-sided tests at 5&nbsp;% of both show that the"
        " difference lies within it, the noise floor does too, and so would what rare slow runs that were not seen"
        " could cost; but for that, <i>equivalent so far</i>. <i>Surely worse</i> or <i>better</i>: the 99&nbsp;%"
        " interval excludes zero, and no more is known. Of all else nobody <i>can tell</i>. When the two {baseline}"
        " arms differ by more than half of the margin, the row is <i>invalid</i>."
    ),
    Markup(
        "<b>What is added</b> is the same estimate on differences, in the metric's unit, with a 95&nbsp;% interval of"
        " its own: short times and memory say it first, for a ratio to next to nothing says nothing."
    ),
    Markup(
        "<b>Overhead</b> is |P<sub>m</sub> − P<sub>b</sub>| / P<sub>b</sub> (Li and others, 2017) with its sign;"
        " <b>variability overhead</b> is the same on standard deviations over blocks, where less than the baseline's"
        " counts as none. <b>CPU cost</b> is the CPU time of the whole platform (monitor, sentry and shims too), as the"
        " host's cgroup counts it, for a unit of work."
    ),
    Markup(
        "<b>Limits.</b> One host, one day: another host may tell otherwise. Each verdict is made at its own 5&nbsp;%;"
        " of twenty platforms that equal the baseline exactly, expect one 95&nbsp;% interval that does not hold zero."
        " “Worse” and “better” are said of at most one in a hundred, for the 99&nbsp;% interval must not hold zero"
        " either."
    ),
)


def paragraphs(baseline: str, seed: int) -> Iterator[Markup]:
    """Yield how the figures of a campaign come about."""
    return (paragraph.format(baseline=baseline, seed=seed) for paragraph in _PARAGRAPHS)
