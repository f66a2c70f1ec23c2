"""sysbench cpu: how often a second all primes up to 10,000 are found.

The parameters of Kärnä 2021, 5.1.3, and of Anjali 2020, 4.2: primes to 10,000 for 10 seconds, one thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from tare.errors import ParseError
from tare.model import Direction, Family, Metric
from tare.workloads import sysbench
from tare.workloads.base import Command, Completed, Outcome, Params, RunPlan, RunWorkload, Surroundings
from tare.workloads.output import positive


class SysbenchCpu(RunWorkload):
    """`sysbench cpu`. Parameters: ``max_prime``, ``threads``, ``time_s``, ``events`` after which it ends, 0 for none.

    The rate is of sysbench's total time. It prints one too, which has in it what it does after the last event.
    """

    name = "sysbench-cpu"
    title = "sysbench cpu: primes to 10,000"
    family = Family.CPU
    by_default = True
    metrics = (Metric("events-per-second", "events/s", Direction.HIGHER, "prime searches a second"),)
    work_unit = "event"
    packages = sysbench.PACKAGES
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"max_prime": 10_000, "threads": 1, "events": 300, "time_s": 1, "rounds": 4},
        "full": {"max_prime": 10_000, "threads": 1, "events": 0, "time_s": 10, "rounds": 1},
    }

    def plan(self, params: Params, around: Surroundings) -> RunPlan:
        # Events are shared out: with more threads as many more are asked for.
        threads = int(params["threads"]) or around.cpu_count

        def run(events: int) -> Command:
            argv = (
                "sysbench",
                "cpu",
                f"--cpu-max-prime={params['max_prime']}",
                f"--threads={threads}",
                f"--events={events}",
                f"--time={params['time_s']}",
                "run",
            )
            return Command(argv, time_limit_s=float(params["time_s"]) + sysbench.GRACE_S)

        events = int(params.get("events", 0)) * (1 if params["threads"] else threads)
        return RunPlan(starts=(run(1),), measures=(run(events),))

    def parse(self, params: Params, results: Sequence[Completed]) -> Outcome:
        threads = int(params["threads"]) or _asked(results)
        report = sysbench.read(
            results,
            threads,
            options=(r"Prime numbers limit: (?P<limit>\d+)",),
            figures=(r"CPU speed:", rf"events per second: +(?P<rate>{sysbench.NUMBER})"),
        )
        if int(report.fields["limit"]) != params["max_prime"]:
            raise ParseError(f"sysbench searched primes to {report.fields['limit']}, not {params['max_prime']}")
        if report.events != params.get("events", 0) * (1 if params["threads"] else threads):
            sysbench.require_time(report, float(params["time_s"]))
        rate = positive("sysbench", "events per second", report.fields["rate"])
        sysbench.require_rate(report, "events", report.events, rate)
        return Outcome({"events-per-second": report.events / report.seconds}, work=report.events)


class SysbenchCpuThreads(SysbenchCpu):
    """`sysbench cpu` with a thread for each CPU of the instance (``threads`` 0), and as many times the ``events``."""

    name = "sysbench-cpu-threads"
    title = "sysbench cpu: primes to 10,000, a thread for each CPU"
    profiles: ClassVar[Mapping[str, Params]] = {
        name: {**params, "threads": 0} for name, params in SysbenchCpu.profiles.items()
    }


def _asked(results: Sequence[Completed]) -> int:
    """Return how many threads the run was asked for, by its command line."""
    words = [word for done in results for word in done.argv if word.startswith("--threads=")]
    if len(words) != 1:
        raise ParseError(f"one run of sysbench was planned, {len(results)} results came")
    return int(words[0].partition("=")[2])


WORKLOADS = (SysbenchCpu(), SysbenchCpuThreads())
