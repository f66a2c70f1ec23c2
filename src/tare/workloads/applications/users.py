"""The agent's users: an open loop, in which each request is due at an instant that was drawn beforehand.

Latency counts from that instant, sent or not, as wrk2 has it: a server that stands still for a second has a second in
its percentiles, and not only in the few answers that were under way (coordinated omission). A request that failed
counts as one that took the time limit.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tare.errors import ParseError
from tare.model import Direction, Metric
from tare.workloads.applications import serving, steady
from tare.workloads.base import Command, Params, Side
from tare.workloads.network.exchange import AGENT
from tare.workloads.output import shown

GRACE_S = 20.0
MEDIAN = Metric("median", "ms", Direction.LOWER, "half of the requests were answered so long after they were due")
P99 = Metric("p99", "ms", Direction.LOWER, "99 of 100 were; one that failed counts as the time limit")
LATE = Metric("client-late", "ms", Direction.LOWER, "99 of 100 requests were sent so long after they were due")
WARM_UP = Metric("warm-up", "s", Direction.LOWER, "until the median was steady; the whole run where it never was")
_COUNTS = ("due", "successes", "server-errors", "transport-errors", "timeouts", "dropped", "hits", "misses")
_WINDOW = re.compile("window (?P<at>[0-9]+) " + " ".join(rf"{name} ([0-9]+)" for name in _COUNTS), re.ASCII)
_TOOK = re.compile(r"took (?P<at>[0-9]+)(?P<counts>(?: [0-9]+:[0-9]+)*)", re.ASCII)
_LATE = re.compile(r"late(?P<counts>(?: [0-9]+:[0-9]+)*)", re.ASCII)


def limit_s(params: Params) -> float:
    """Return the longest time that the users may take, in seconds."""
    return int(params["time_s"]) + int(params["limit_ms"]) / 1000 + GRACE_S


def load(
    protocol: str,
    where: serving.ServerAddress,
    params: Params,
    requests: Sequence[str],
    *,
    think_us: int,
    pace_us: int,
    searches: int,
) -> Command:
    """Return the users at the client's side.

    Each of ``params["users"]`` begins a search, the ``requests`` in order, every ``think_us``, half as much or half
    more; they are due ``pace_us`` after each other. After so many ``searches`` a user comes anew, on a new connection.
    Other parameters: ``time_s``, ``limit_ms`` until a request is given up, ``words`` that are asked for, ``seed``.
    """
    argv = (
        AGENT, "users", protocol, where.address, str(where.port), str(params["users"]), str(params["time_s"]),
        str(think_us), str(pace_us), str(params["limit_ms"]), str(searches), str(params["words"]), str(params["seed"]),
        *requests,
    )  # fmt: skip
    return Command(argv, side=Side.CLIENT, time_limit_s=limit_s(params), cwd="/")


@dataclass(slots=True)
class LoadWindow:
    """A second: what was due in it and how long that took, by microseconds; and what ended in it."""

    counts: Mapping[str, int]
    took: Counter[int] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class UsersRun:
    """The report of the users: a window a second, and after the last one the requests that were still under way."""

    windows: Sequence[LoadWindow]
    after: LoadWindow
    late: Counter[int]

    def counted(self) -> Sequence[LoadWindow]:
        """Return the seconds that count. The rate is the users' own from the first; only answers warm up."""
        return self.windows[steady.counted(self._medians(), steady.settled_from) :]

    def _medians(self) -> list[float]:
        return [percentile(window.took, 50) for window in self.windows]

    def sums(self) -> Counter[str]:
        """Return what became of the requests in the seconds that count."""
        return _sums(self.counted())

    def figures(self) -> dict[str, float]:
        """Percentiles in ms of the seconds that count, how late the client was, and the warm-up in s.

        Raises `ParseError` where a second has no request.
        """
        took: Counter[int] = Counter()
        for window in self.counted():
            took.update(window.took)
        ends = [0.001, *range(1, len(self.windows) + 1)]  # a time of 0 has no ratio
        return {
            "median": percentile(took, 50),
            "p99": percentile(took, 99),
            "client-late": percentile(self.late, 99),
            "warm-up": steady.warm_up_s(self._medians(), ends, steady.settled_from),
        }

    def answered(self) -> int:
        """All requests that the server answered, for the cost of one."""
        sums = _sums((*self.windows, self.after))
        return sums["successes"] + sums["server-errors"]


def _sums(windows: Sequence[LoadWindow]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for window in windows:
        sums.update(window.counts)
    return sums


def read(text: str, params: Params) -> UsersRun:
    """Return the users' report, line by line. Raises `ParseError`."""
    lines = text.splitlines()
    body, ending = "".join(f"{line}\n" for line in lines[:-2]), lines[-2:]
    if ending != [f"sum {sum(body.encode())}", "end"]:
        raise ParseError(f"the users' report is not whole, or not as it was sent: {shown(text)}")
    expected = f"users {params['users']} seconds {params['time_s']} limit {params['limit_ms']} ms"
    time_s = int(params["time_s"])
    if lines[0] != expected or len(lines) != 2 * (time_s + 1) + 4:
        raise ParseError(f"the users were asked for {expected!r} and report {shown(text)}")
    windows = [_window(number, *lines[1 + 2 * number : 3 + 2 * number]) for number in range(time_s + 1)]
    late = _LATE.fullmatch(lines[-3])
    if late is None:
        raise ParseError(f"the users printed a strange line: {lines[-3][:200]!r}")
    run = UsersRun(windows[:-1], windows[-1], _histogram(late["counts"]))
    _require_all(run, int(params["limit_ms"]))
    return run


def _window(number: int, counts: str, took: str) -> LoadWindow:
    counted, timed = _WINDOW.fullmatch(counts), _TOOK.fullmatch(took)
    if counted is None or timed is None or not int(counted["at"]) == int(timed["at"]) == number:
        raise ParseError(f"the users printed strange lines for second {number}: {counts[:200]!r}, {took[:200]!r}")
    return LoadWindow(
        dict(zip(_COUNTS, map(int, counted.groups()[1:]), strict=True)),
        _histogram(timed["counts"]),
    )


def _histogram(text: str) -> Counter[int]:
    return Counter({int(us): int(count) for us, count in (pair.split(":") for pair in text.split())})


def _require_all(run: UsersRun, limit_ms: int) -> None:
    """Every request that was due was answered, failed or was dropped, and has a time. Raises `ParseError`."""
    windows = (*run.windows, run.after)
    sums = Counter({name: sum(window.counts[name] for window in windows) for name in _COUNTS})
    ended = sums["successes"] + sums["server-errors"] + sums["transport-errors"]
    timed = sum(window.took.total() for window in windows)
    if not sums["due"] == ended == timed or any(w.took.total() != w.counts["due"] for w in windows):
        raise ParseError(
            f"the users contradict themselves: {sums['due']} requests were due, {ended} ended, {timed} have a time"
        )
    if sums["timeouts"] > sums["transport-errors"] or sums["hits"] + sums["misses"] > sums["successes"]:
        raise ParseError(f"the users contradict themselves: {dict(sums)}")
    if max((us for window in windows for us in window.took), default=0) > 1000 * limit_ms * 1.01:
        raise ParseError(f"a request took longer than the {limit_ms} ms after which a user gives up")


def percentile(counts: Counter[int], percent: float) -> float:
    """Return a percentile of microseconds, in ms. Raises `ParseError` without any values."""
    rank = math.ceil(counts.total() * percent / 100)
    for us, count in sorted(counts.items()):
        rank -= count
        if rank <= 0:
            return max(us, 1) / 1000
    raise ParseError("the users asked for nothing in one of the seconds: it takes more of them")
