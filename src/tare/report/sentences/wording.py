"""Phrases for a difference in a metric: a start is slower, memory is more, jitter is higher."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tare.model import CLIENT_COST, CPU_COST, HOST_COST, Direction, Family
from tare.report.sentences.numbers import SIZES

SHORT_TIMES = ("ns", "µs", "us", "ms")
_TIMES = (*SHORT_TIMES, "s")
_CPU_OF_A_SECOND = "us/s"
_RATE = re.compile(r"/s$|IPS$|FLOPS$")
#: Metrics of variation, in a unit of time but no duration.
_SCATTER = re.compile(r"^(jitter(-.*)?|mdev)$")


@dataclass(frozen=True, slots=True)
class Wording:
    """Phrases with a placeholder for the size of a difference: for percentages and for factors, worse and better."""

    worse: str
    better: str
    times_worse: str
    times_better: str
    #: The added amount comes before the ratio, which means little against a baseline near zero.
    amount_first: bool = False


_COST = Wording("costs {} more CPU", "costs {} less CPU", "costs {} times the CPU", "costs {} times less CPU")
_HOSTS_COST = Wording(
    "costs the host {} more CPU", "costs the host {} less CPU", "costs the host {} times the CPU",
    "costs the host {} times less CPU",
)  # fmt: skip
_CLIENTS_COST = Wording(
    "costs the client {} more CPU", "costs the client {} less CPU", "costs the client {} times the CPU",
    "costs the client {} times less CPU",
)  # fmt: skip

_COSTS = {CPU_COST: _COST, HOST_COST: _HOSTS_COST, CLIENT_COST: _CLIENTS_COST}


def wording(metric: str, unit: str, direction: Direction, family: Family | None = None) -> Wording:
    """The phrases for a metric, by its name, unit, direction and its workload's family.

    ====================================================  ==================  ================
    metric                                                words               amount first
    ====================================================  ==================  ================
    ``cpu-cost``, ``host-cost``, ``client-cost``          costs more, less    no
    time, lower is better (s; ms, µs, ns)                 slower, faster      no; yes
    rate or speed, higher is better                       slower, faster      kernel services
    size (MiB), CPU time of each second (us/s)            more, less          yes
    count (a plural noun)                                 more, fewer         no
    jitter and other scatter of times (ms, µs)            higher, lower       yes
    share (%), and whatever else                          higher, lower       no
    ====================================================  ==================  ================
    """
    if metric in _COSTS:
        return _COSTS[metric]
    short = unit in SHORT_TIMES
    if unit in _TIMES and direction is Direction.LOWER and not _SCATTER.match(metric):
        return _speed(amount_first=short)
    if _RATE.search(unit) and direction is Direction.HIGHER:
        return _speed(amount_first=family is Family.KERNEL)  # a rate of calls, of which each takes so much longer
    if unit in SIZES or unit == _CPU_OF_A_SECOND:
        return _by_value(("more", "times as much"), ("less", "times less"), direction, amount_first=True)
    if re.fullmatch(r"[a-z]{2,}s", unit) and unit not in _TIMES:
        return _by_value(("more", "times as many"), ("fewer", "times fewer"), direction)
    return _by_value(("higher", "times higher"), ("lower", "times lower"), direction, amount_first=short)


def _speed(*, amount_first: bool) -> Wording:
    return Wording("{} slower", "{} faster", "{} times slower", "{} times faster", amount_first)


def _by_value(
    above: tuple[str, str], below: tuple[str, str], direction: Direction, *, amount_first: bool = False
) -> Wording:
    """Phrases for the figure itself and not for its judgement: a higher value is "more" even where higher is better."""
    up, down = ([f"{{}} {phrase}" for phrase in phrases] for phrases in (above, below))
    worse, better = (up, down) if direction is Direction.LOWER else (down, up)
    return Wording(worse[0], better[0], worse[1], better[1], amount_first)
