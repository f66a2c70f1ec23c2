"""Texts of `tare fleet report`: a figure over many hosts, the hosts that are odd, and what is no part of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tare.analysis.comparisons.merged_hosts import (
    MEAN_LEVEL,
    PREDICTION_LEVEL,
    Fleet,
    FleetHost,
    HostGroup,
    MergedFigure,
    NoResult,
    SharedFact,
    Unlike,
)
from tare.analysis.comparisons.summaries import LeftOutCampaign, Why
from tare.estimates.intervals import Interval
from tare.model import Direction
from tare.report.sentences.numbers import EMPTY, TO, number_of, percent, quantity, some
from tare.report.sentences.scale import difference, is_factor, overheads

_WHY: Mapping[Why, str] = {
    Why.UNREADABLE: "cannot be read: {}",
    Why.SAME_CAMPAIGN: "the same campaign as {}, which counts once",
    Why.SAME_HOST: "an older campaign of the same host as {}: a host counts once, by its newest",
    Why.SAME_MACHINE: "measured on the same machine as {} (one boot of one kernel): a machine counts once"
    " (--each-file counts every file)",
    Why.BASELINE: "its baseline is {}, and not that of most hosts",
    Why.SEQUENTIAL: "no baseline beside each figure (a sequential campaign)",
    Why.WORK: "not its {}: other parameters than on most hosts, or figures that are computed differently",
    Why.TOO_FEW_BLOCKS: "no figure has 2 blocks",
}
#: What the figures rest on.
METHOD = (
    f"Hosts are merged by a random-effects model (REML; interval of {100 * MEAN_LEVEL:.0f} % by Hartung and Knapp): a "
    "host counts once, and nothing is pooled. "
    f"'A new host' is where the figure of a host that was not measured lies, in {100 * PREDICTION_LEVEL:.0f} of 100."
)
#: How to read a picture of a figure.
LEGEND = (
    "Each dot is a host, the worst on top, with two standard errors to each side; odd hosts are in colour. The line is "
    f"the mean. The dark band is its {100 * MEAN_LEVEL:.0f} % interval. In the light band lies a new host, in "
    f"{100 * PREDICTION_LEVEL:.0f} of 100."
)
#: What stands in for a group's missing spread.
ONE_HOST = "1 host"
#: Hosts differ by no more than their own blocks say.
NO_SPREAD = "by chance"
#: Number of odd hosts named beside a figure, and of facts beside a host.
NAMED_HOSTS, NAMED_FACTS = 4, 5


def heading(fleet: Fleet) -> str:
    """Say what is merged, in a line."""
    grouped = f", grouped by {fleet.by}" if fleet.by else ""
    without = f" ({len(fleet.no_result):,} more without a result)" if fleet.no_result else ""
    hosts = f"{number_of(len(fleet.hosts), 'host')}{without}"
    return f"{hosts}{grouped}: overheads against {fleet.baseline}; + is worse"


def conclusion(fleet: Fleet) -> str:
    """Say how many hosts are odd, and at which false-discovery rate."""
    odd = len(fleet.odd_places)
    which = number_of(odd, "odd host") if odd else "none of them is odd"
    own = " (each against its own group)" if fleet.by else ""
    return (
        f"{number_of(len(fleet.hosts), 'host')}, {number_of(len(fleet.figures), 'figure')}: {which}{own}, at a "
        f"false-discovery rate of {percent(fleet.rate)} (Benjamini and Hochberg)"
    )


def named(figure: MergedFigure) -> str:
    """Return a figure in words."""
    return f"{figure.platform}: {figure.workload} {figure.metric}"


def mean(mean_log: Interval, direction: Direction) -> tuple[str, str]:
    """Return the mean over hosts and its interval: ("+4.1 %", "+3.6 … +4.7"); "" where one host has no interval."""
    if not math.isfinite(mean_log.low):
        return effect(mean_log.point, direction), ""
    return difference(_times(mean_log), direction)


def effect(log: float, direction: Direction) -> str:
    """One host's figure: "+4.1 %", "2.4 ×"."""
    return difference(_times(Interval(log, log, log)), direction, None)[0]


def spread(deviation: float | None) -> str:
    """Return the standard deviation between hosts: "±3.2 %"."""
    if deviation is None:
        return ONE_HOST
    return f"±{percent(math.expm1(deviation))}" if deviation > 0 else NO_SPREAD


def predicted(prediction: Interval | None, direction: Direction) -> str:
    """Return where a new host lies: "+3.1 … +5.2 %", "1.8 … 2.9 ×"."""
    if prediction is None:
        return EMPTY
    times = _times(prediction)
    ends = difference(times, direction)[1]
    return f"{ends} {'×' if is_factor(times) else '%'}"


def _times(logs: Interval) -> Interval:
    return Interval(*(math.exp(max(-300.0, min(300.0, end))) for end in (logs.point, logs.low, logs.high)))


def odd_in(fleet: Fleet, figure: MergedFigure) -> str:
    """Return the odd hosts of a figure with theirs, the farthest first: "web7 (+61 %), web2 (+48 %)"."""
    places = sorted((at for at in fleet.odd_places if figure.odd[at]), key=lambda at: -abs(figure.deviations[at]))
    texts = [f"{fleet.hosts[at].name} ({effect(float(figure.effects[at]), figure.direction)})" for at in places]
    return some(texts, NAMED_HOSTS) if texts else EMPTY


def answer(fleet: Fleet, figure: MergedFigure) -> str:
    """Return the whole answer for a figure, in a line."""
    size, ends = mean(figure.mean, figure.direction)
    over = number_of(figure.n_hosts, "host")
    if figure.spread is None or figure.prediction is None:
        return f"{named(figure)}: {size} on {over}; nothing is known of the spread between hosts"
    differ = f"by {spread(figure.spread)}" if figure.spread > 0 else "by no more than chance"
    rest = f"hosts differ {differ}; a new host: {predicted(figure.prediction, figure.direction)}{itself(figure)}"
    odd = odd_in(fleet, figure)
    return f"{named(figure)}: {size} over {over} ({ends}); {rest}" + (f"; odd: {odd}" if odd != EMPTY else "")


def itself(figure: MergedFigure) -> str:
    """Return the figure itself over hosts, and not its ratio: "; itself 133 ms (81 ms to 280 ms)"."""
    values = sorted(value for value in figure.values.tolist() if math.isfinite(value))
    if not values:
        return ""
    middle = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2
    low, high = (quantity(value, figure.unit) for value in (values[0], values[-1]))
    return f"; itself {quantity(middle, figure.unit)} in the median host, {low}{TO}{high} over all"


def group_name(fleet: Fleet, group: HostGroup) -> str:
    """Return a group by its value."""
    return f"{fleet.by} {group.value}"


def odd_host(fleet: Fleet, place: int, figures: Sequence[MergedFigure]) -> str:
    """Return an odd host: in which figures, how far from the others, and what differs in its facts."""
    host: FleetHost = fleet.hosts[place]
    far = sorted(figures, key=lambda figure: -abs(float(figure.deviations[place])))
    shown = [
        f"{named(figure)} {effect(float(figure.effects[place]), figure.direction)}, where the fleet has "
        f"{effect(figure.mean.point, figure.direction)} ({sds(float(figure.deviations[place]))})"
        for figure in far
    ]
    return f"{host.name}: {some(shown, NAMED_HOSTS)}; {differs(fleet.unlike(place))}"


def sds(deviation: float) -> str:
    """Say how far a host is from the others: "5.2 SD worse"."""
    return f"{abs(deviation):.1f} SD {'worse' if deviation > 0 else 'better'}"


def shared(fact: SharedFact) -> str:
    """Say what odd hosts have in common: "7 of 8 odd hosts have microcode 0x1, and 3 of 392 others"."""
    others = f"{fact.usual} of {fact.of_usual} others"
    return f"{fact.odd} of {fact.of_odd} odd hosts have {fact.fact} {fact.value}, and {others}"


def differs(facts: Sequence[Unlike]) -> str:
    """In what a host differs from most of the others, as candidates for the cause."""
    if not facts:
        return "it has no fact on record that is rare among the others"
    return f"differs in {some([unlike(fact) for fact in facts], NAMED_FACTS)}"


def unlike(fact: Unlike) -> str:
    """Return a fact of a host beside that of most others: "microcode 0x1 (usually 0x2; 0 of 19 others have it)"."""
    have = "has" if fact.sharing == 1 else "have"
    return f"{fact.fact} {fact.value} (usually {fact.usual}; {fact.sharing} of {fact.others} others {have} it)"


def left_out(entry: LeftOutCampaign) -> str:
    """Return a file that is no part of the merge, and why."""
    return f"{entry.name}: {_WHY[entry.why].format(entry.text)}"


#: The table of hosts without a file.
NO_RESULT = "Hosts without a result"
NO_RESULT_HEADS = ("host", "state", "reason")


def no_result(entry: NoResult) -> tuple[str, str, str]:
    """Return the row of a host without a file."""
    return entry.host, entry.state, entry.reason or EMPTY


def more_odd(number: int) -> str:
    """Say how many more hosts are odd."""
    return f"{number:,} more are odd (--json has all)"


def more_without_result(number: int) -> str:
    """Say how many more hosts have no file."""
    return f"and {number:,} more without a result (--json has all)"


def more_left_out(number: int) -> str:
    """Say how many more files are no part of it."""
    return f"Left out: {number} more (--json has all)"


#: The parts of a picture of hosts.
PREDICTED, OF_MEAN = "a new host (90 %)", "mean (95 %)"


def picture(figure: MergedFigure) -> str:
    """Describe a picture of hosts to those who do not see it."""
    return f"{named(figure)} on {number_of(figure.n_hosts, 'host')}, the worst first, with the mean and its interval"


def of_host(fleet: Fleet, figure: MergedFigure, place: int) -> str:
    """Return a host's figure in a picture: "web7: +61 %, 12 blocks, 5.2 SD worse than the others"."""
    text = f"{fleet.hosts[place].name}: {effect(float(figure.effects[place]), figure.direction)}"
    text += f", {number_of(int(figure.blocks[place]), 'block')}"
    deviation = float(figure.deviations[place])
    if math.isfinite(float(figure.values[place])):
        text += f", {quantity(float(figure.values[place]), figure.unit)}"
    return f"{text}, {sds(deviation)} than the others" if math.isfinite(deviation) else text


def thinned(shown: int, of: int) -> str:
    """Say that a picture leaves hosts out."""
    return f"{shown:,} of {of:,} hosts are drawn: all odd ones, and of the others every so many"


def percents(log: float, direction: Direction) -> float:
    """Return a log of how many times worse, in per cent."""
    times = math.exp(max(-300.0, min(300.0, log)))
    return 100 * overheads(Interval(times, times, times), direction).point
