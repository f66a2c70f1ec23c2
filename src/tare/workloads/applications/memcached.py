"""memcached under memaslap, the load tool of libmemcached: nine reads for each write, as it does by itself.

The second key-value store beside `redis`. memaslap (Debian calls it memcaslap) is at the client's side, with one
thread; its keys have 64 bytes. Each second of its own report is a window. Of its latencies it prints means and a
histogram in powers of two, so the mean is what is read. What it writes before its first second is over is the warm-up
of the store.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from tare.errors import ParseError
from tare.model import Direction, Family, Layer, Metric
from tare.workloads.applications import serving, steady
from tare.workloads.base import Command, Completed, Outcome, Params, RunPlan, RunWorkload, Side, Surroundings
from tare.workloads.output import agree, positive, text_of

GRACE_S = 30.0
_NUMBER = r"\d+(?:\.\d+)?"
_PERIOD = r"Period +\d+ +\d+ +(?P<rate>\d+) .*"
_TOTAL = re.compile(rf"^Total Statistics\nType .*\n{_PERIOD}\nGlobal +(?P<second>\d+) ", re.MULTILINE | re.ASCII)
_END = re.compile(rf"^Run time: ({_NUMBER})s Ops: (\d+) TPS: (\d+) Net_rate: ", re.MULTILINE | re.ASCII)
_AVERAGE = re.compile(r"^Total Statistics \(\d+ events\)\n +Min: +\d+\n +Max: +\d+\n +Avg: +(\d+)$", re.MULTILINE)
#: What its reports of a second begin with: it clears the terminal.
_CLEAR = "\x1b[1;1H\x1b[2J"


class Memcached(RunWorkload):
    """Parameters: ``connections``, ``size`` of a value in bytes, and ``time_s`` whole seconds."""

    name = "memcached"
    revision = 2  # before, each of memaslap's ticks counted for a second
    title = "memcached: 9 reads for each write, memaslap on 50 connections"
    family = Family.APPLICATION
    metrics = (
        Metric("rate", "requests/s", Direction.HIGHER, "answers a second"),
        Metric("average", "us", Direction.LOWER, "an answer, on average over the whole run, in a closed loop"),
        Metric("warm-up", "s", Direction.LOWER, "until the rate was steady; the whole run where it never was"),
    )
    work_unit = "request"
    packages = ("libmemcached-tools", "memcached")
    layer = Layer("key-value", Path(__file__).with_name("key_value.toml").read_text())
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"connections": 50, "size": 64, "time_s": 6},
        "full": {"connections": 50, "size": 64, "time_s": 60},
    }
    least: ClassVar[Mapping[str, float]] = {"time_s": steady.MIN_TIME_S}

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        where = serving.place(self.name, around)
        time_s = int(params["time_s"])
        server = (
            "memcached", "-u", "root", "-p", str(where.inside), "-l", where.listen, "-m", "128",
            "-t", str(around.cpu_count), "-c", "4096",
        )  # fmt: skip
        load = (
            "memcaslap", "-s", f"{where.address}:{where.port}", "-T", "1", "-c", str(params["connections"]),
            "-t", f"{time_s}s", "-S", "1s", "-X", str(params["size"]),
        )  # fmt: skip
        limit_s = time_s + GRACE_S
        return RunPlan(
            servers=(serving.server(server, where, time_limit_s=limit_s + serving.READY_LIMIT_S),),
            measures=(Command(load, side=Side.CLIENT, time_limit_s=limit_s, cwd="/"),),
        )

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        if len(results) != 1:
            raise ParseError(f"one run of memaslap was planned, {len(results)} results came")
        text = text_of(results[0]).replace(_CLEAR, "")
        if errors := text_of(results[0], "stderr").strip():
            raise ParseError(f"memaslap reports: {errors.splitlines()[0][:200]}")
        end, average = _END.findall(text), _AVERAGE.findall(text)
        if len(end) != 1 or len(average) != 1:
            raise ParseError(f"memaslap did not come to its end: {text[-200:]!r}")
        seconds, ops, rate = (positive("memaslap", "a total", figure) for figure in end[0])
        if seconds < 0.9 * int(params["time_s"]):
            raise ParseError(f"memaslap ended after {seconds:g} s, {params['time_s']} s were asked for")
        agree("memaslap", "requests a second", ops / seconds, rate)
        windows = list(_TOTAL.finditer(text))
        if [int(window["second"]) for window in windows] != list(range(1, len(windows) + 1)):
            raise ParseError(f"memaslap does not report each second: {[window['second'] for window in windows]}")
        if len(windows) < int(params["time_s"]) - 1:
            raise ParseError(f"memaslap reports {len(windows)} seconds of {params['time_s']}")
        rates = [float(window["rate"]) for window in windows]
        first = steady.counted(rates)
        # memaslap's seconds are ticks of a timer, of which a busy host loses some: only the whole run's time is right.
        counted_s = ops / rate - first
        before_s = max(results[0].wall_ns / 1e9 - seconds, 0.001)  # it connects
        ends = [before_s + number for number in range(len(rates) + 1)]
        return Outcome(
            {
                "rate": positive("memaslap", "a rate", (ops - sum(rates[:first])) / counted_s),
                "average": positive("memaslap", "an average", average[0]),
                "warm-up": steady.warm_up_s(rates, ends),
            },
            work=ops,
        )


WORKLOAD = Memcached()
