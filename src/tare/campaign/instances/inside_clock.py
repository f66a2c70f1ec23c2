"""The clock inside an instance against the host's: all that an agent, or a tool beside it, has timed rests on it.

A guest has a clock of its own, and may be wrong about how fast it runs. Two readings of both clocks bound the rate
between them: the agent reads its own at some instant of the exchange, so that the round trips bound the error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tare.model import ClockFacts
from tare.session import ClockOffset
from tare.workloads.base import Completed

#: Round trips of a reading, of which the shortest counts.
EXCHANGES = 2
#: Largest rate that is recorded: of a clock that was set, or of readings that nothing lies between.
MOST = 1e6
#: By so much a command may seem longer inside than outside: a coarse clock moves in ticks (100 Hz).
TICK_NS = 10_000_000


def compared(before: ClockOffset, after: ClockOffset) -> ClockFacts:
    """Return the offset at the first of two readings, and the bounds of the rate between them."""
    host_ns = after.at_ns - before.at_ns
    inside_ns = host_ns + after.offset_ns - before.offset_ns
    open_ns = before.uncertainty_ns + after.uncertainty_ns
    low, high = sorted((_rate(inside_ns, host_ns + open_ns), _rate(inside_ns, host_ns - open_ns)))
    return ClockFacts(before.offset_ns, before.uncertainty_ns, low, high)


def _rate(inside_ns: int, host_ns: int) -> float:
    return max(-MOST, min(MOST, inside_ns / host_ns - 1)) if host_ns > 0 else MOST


def with_commands(clock: ClockFacts, results: Iterable[Completed]) -> ClockFacts:
    """Raise the lower bound to what the commands show: none runs longer inside than the host waits for its end."""
    shown = [_rate(done.wall_ns - TICK_NS, done.outside_ns) for done in results if done.outside_ns is not None]
    low = max([clock.rate_low, *shown])
    return replace(clock, rate_low=low, rate_high=max(low, clock.rate_high))


def on_host(before: ClockOffset, after: ClockOffset) -> Callable[[int], int]:
    """Return the conversion of instants of the clock inside to the host's, by readings before and after them.

    Where the round trips may explain all of the drift, the first reading alone counts.
    """
    host_ns, drift_ns = after.at_ns - before.at_ns, after.offset_ns - before.offset_ns
    inside_ns = host_ns + drift_ns
    if inside_ns <= 0 or abs(drift_ns) <= before.uncertainty_ns + after.uncertainty_ns:
        return before.to_host
    return lambda agent_ns: before.at_ns + (before.to_host(agent_ns) - before.at_ns) * host_ns // inside_ns


def most_off(clocks: Sequence[ClockFacts | None]) -> ClockFacts | None:
    """Return the facts of the clock that is surely off by most; None where none was read."""
    return max((clock for clock in clocks if clock is not None), key=surely_off, default=None)


def surely_off(clock: ClockFacts) -> float:
    """By how much the clock was too fast or too slow at least, as a fraction; 0 where it may have been right."""
    return max(clock.rate_low, -clock.rate_high, 0.0)


def why_wrong(clock: ClockFacts | None, margin: float) -> str | None:
    """Return why a trial with such a clock is no measure within this margin, or None."""
    if clock is None or surely_off(clock) <= margin / 2:
        return None
    way = "fast" if clock.rate_low > 0 else "slow"
    return (
        f"the clock inside was at least {100 * surely_off(clock):.3g} % too {way} against the host's, more than half of"
        f" the {100 * margin:g} % margin: none of the times that it measured holds"
    )
