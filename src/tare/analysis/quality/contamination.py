"""Contaminated trials: trials that the host disturbed are marked with the reason, and stay in the results.

The report shows the effect of leaving them out (`tare.analysis.quality.unmarked`).

A window is the time between two neighbouring ticks of the telemetry. A trial's disturbance is the mean over the windows
that it overlaps, weighted by the overlap: half a second of CPU time for another program spoils a trial of one second,
but not a trial of a minute. A trial that is shorter than a window is judged by its window.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tare.model import Design, Mode, Status
from tare.store import CampaignRecord, Telemetry

#: Share of the pinned CPUs' time that the hypervisor below took: twice the margin of CPU workloads. Stolen time adds to
#: wall time one to one. The arms of a round suffer alike, but a single run does not.
STEAL_LIMIT = 0.02
#: Share of the pinned CPUs' time that programs outside of the campaign used. Above it, the figure of a single run moves
#: by more than the widest margin (5 %). Below it are kernel threads and the system's own small work.
FOREIGN_LIMIT = 0.05
#: Share of time that other programs used on the other thread of a measured core. A thread that is busy all of the time
#: takes a third to a half of the core, so this share moves a run by about two per cent.
SIBLING_LIMIT = 0.05
#: Share of the time in which some task waited for memory (PSI). Above it, reclaim is measured too.
MEMORY_PRESSURE_LIMIT = 0.01
#: Pages swapped in and out a second (1 MiB with pages of 4 KiB): above the kernel's own write-back of idle programs.
SWAP_LIMIT = 256
#: Periods in which the instance's own CPU quota was used up, although the campaign set none: somebody else set it.
THROTTLED_LIMIT = 0


class Disturbance(StrEnum):
    """Reason for marking a trial as contaminated, in the order of reports."""

    STEAL = "steal"
    FOREIGN_CPU = "foreign-cpu"
    SIBLING = "sibling"
    THROTTLED = "throttled"
    SWAP = "swap"
    MEMORY_PRESSURE = "memory-pressure"


#: The limit above which a trial is marked, by reason.
LIMITS: Mapping[str, float] = {
    Disturbance.STEAL.value: STEAL_LIMIT,
    Disturbance.FOREIGN_CPU.value: FOREIGN_LIMIT,
    Disturbance.SIBLING.value: SIBLING_LIMIT,
    Disturbance.THROTTLED.value: THROTTLED_LIMIT,
    Disturbance.SWAP.value: SWAP_LIMIT,
    Disturbance.MEMORY_PRESSURE.value: MEMORY_PRESSURE_LIMIT,
}
KEY = ("block", "workload", "platform", "replica")
_KINDS = ("user_ms", "nice_ms", "system_ms", "idle_ms", "iowait_ms", "irq_ms", "softirq_ms", "steal_ms")

Floats = NDArray[np.float64]


def other_threads(host: Mapping[str, Any], cpus: Collection[int]) -> tuple[int, ...]:
    """Return the other threads of the measured cores, from a campaign record's host facts; empty if unknown."""
    cpu_facts = host.get("cpu")
    listed = cpu_facts.get("siblings") if isinstance(cpu_facts, Mapping) else None
    # Check types, because a record's writer is not trusted.
    cores = [core for core in listed if isinstance(core, list)] if isinstance(listed, list) else []
    cores = [core for core in cores if all(isinstance(cpu, int) for cpu in core)]
    return tuple(sorted({cpu for core in cores if set(core) & set(cpus) for cpu in core} - set(cpus)))


def windows(
    telemetry: Telemetry, cpus: Collection[int], siblings: Collection[int] = (), *, shared: bool = False
) -> pl.DataFrame:
    """Return the events between neighbouring ticks, one row each.

    Columns: tick (at its end), begin, end (UNIX s), seconds; steal and foreign-cpu (shares of the time of ``cpus``,
    those of pinned instances, or of probes), sibling (foreign-cpu of the other threads of their cores; null without
    other threads), memory-pressure (share of the time), swap (pages a second).

    Foreign means all work on these CPUs outside of the campaign. The campaign's own are its control groups, the harness
    with its helpers, the platforms' shared daemons, and the kernel's threads, which write back and clean up for
    instances. All but the groups may have run on other CPUs and are subtracted anyway, so the share is rather too small
    than too large. It is null if an instance ended: its processes then count as the harness's, with all of their CPU
    time.
    """
    stolen = telemetry.cpus.filter(pl.col("cpu").is_in(list(cpus))).group_by("tick")
    measured = stolen.agg(pl.col("steal_ms").sum(), pl.sum_horizontal(*_KINDS).sum().alias("total_ms"))
    everywhere = set(cpus) >= set(telemetry.cpus["cpu"].unique().to_list())
    within = pl.col("tare_ns") if everywhere else pl.col("tare_ns") - pl.col("client_ns")
    ticks = telemetry.host.sort("tick").join(measured, on="tick", how="left", maintain_order="left")
    ticks = ticks.with_columns(
        _foreign(telemetry, cpus, within).alias("foreign-cpu"),
        # Of tare's groups, only the client's runs there, unless the instances have these threads too.
        _foreign(telemetry, siblings, pl.col("tare_ns" if shared else "client_ns")).alias("sibling"),
    )
    span_ns = pl.col("at_ns").diff()
    swapped = (pl.col("swapped_in") + pl.col("swapped_out")).diff()
    return (
        ticks.select(
            "tick",
            "first",
            (pl.col("at") - span_ns / 1e9).alias("begin"),
            pl.col("at").alias("end"),
            (span_ns / 1e9).alias("seconds"),
            (pl.col("steal_ms").diff() / pl.col("total_ms").diff()).alias("steal"),
            "foreign-cpu",
            "sibling",
            (pl.col("memory_pressure_us").diff() * 1000 / span_ns).alias("memory-pressure"),
            (swapped * 1e9 / span_ns).alias("swap"),
        )
        .filter(~pl.col("first") & (pl.col("seconds") > 0))
        .drop("first")
    )


def _foreign(telemetry: Telemetry, cpus: Collection[int], tare_so_far: pl.Expr) -> pl.Series:
    """Return, by tick in order, the share of these CPUs' time since the previous tick that other programs used.

    ``tare_so_far``: time of tare's groups on these CPUs until the tick, used if it is not counted by CPU.
    """
    measured = (
        telemetry.cpus.filter(pl.col("cpu").is_in(list(cpus)))
        .group_by("tick")
        .agg(
            pl.col("run_ns").sum(),
            # A sum would treat missing counts as zero.
            pl.when(pl.col("tare_ns").is_null().any()).then(None).otherwise(pl.col("tare_ns").sum()).alias("here_ns"),
            pl.len().alias("n_cpus"),
        )
    )
    ticks = telemetry.host.sort("tick").join(measured, on="tick", how="left", maintain_order="left")
    ticks = ticks.with_columns(pl.col("here_ns").fill_null(tare_so_far))
    span_ns = pl.col("at_ns").diff()
    ours = pl.sum_horizontal("here_ns", "own_ns", "daemons_ns", "kernel_ns")
    share = ((pl.col("run_ns") - ours).diff() / (span_ns * pl.col("n_cpus"))).clip(0.0)
    none_ended = pl.col("own_ns").diff() <= span_ns
    return ticks.select(pl.when(none_ended).then(share).alias("share"))["share"]


def of_campaign(record: CampaignRecord, trials: pl.DataFrame, telemetry: Telemetry) -> pl.DataFrame:
    """Return `marks` of a campaign: slices by the one CPU that they ran on, all else by all of the instances' CPUs.

    A busy neighbour on that CPU takes from every slice, even if the instances have further CPUs.
    """
    cpus, probes = record.resources.cpus, record.resources.probe_cpu
    in_turn = [workload.name for workload in record.workloads if workload.mode is Mode.SLICES]
    if probes is None or record.design is Design.DUET:
        in_turn = []
    quota = record.resources.cpu_quota is not None  # Instances are then expected to use it up.
    counts = pl.lit(value=True) if not quota else pl.col("reason") != Disturbance.THROTTLED.value
    sliced = pl.col("workload").cast(pl.String).is_in(in_turn)
    everywhere = marks(trials.filter(~sliced), telemetry, cpus, other_threads(record.host, cpus))
    if not in_turn or probes is None:
        return everywhere.filter(counts)
    siblings = other_threads(record.host, [probes])
    on_one = marks(trials.filter(sliced), telemetry, [probes], siblings, shared=bool(set(siblings) & set(cpus)))
    return pl.concat([everywhere, on_one]).filter(counts)


def marks(
    trials: pl.DataFrame,
    telemetry: Telemetry | None,
    cpus: Collection[int],
    siblings: Collection[int] = (),
    *,
    shared: bool = False,
) -> pl.DataFrame:
    """Return the marked trials among the successful trials, with a row for each trial and reason.

    Columns: block, workload, platform, replica, reason (of `Disturbance`), value (that exceeded the limit). ``shared``:
    instances may run on the ``siblings`` too.
    """
    ended = trials.filter(pl.col("status") == Status.OK)
    figures = {"steal": ended["steal"].cast(pl.Float64)}
    if telemetry is not None and not telemetry.host.is_empty():
        tick_windows = windows(telemetry, cpus, siblings, shared=shared)
        spans = Spans.of(ended)
        figures |= {
            name: spans.mean(tick_windows, name) for name in ("foreign-cpu", "sibling", "swap", "memory-pressure")
        }
        # The trial's own reading of steal is exact. A trial too short for a reading uses its window's.
        figures["steal"] = figures["steal"].fill_null(spans.mean(tick_windows, "steal"))
        figures["throttled"] = _throttled(ended, spans, tick_windows, telemetry.instances)
    parts = [
        ended.select(KEY).with_columns(pl.lit(reason).alias("reason"), figures[reason].alias("value"))
        for reason in LIMITS
        if reason in figures
    ]
    above = pl.col("value") > pl.col("reason").replace_strict(LIMITS, return_dtype=pl.Float64)
    return pl.concat(parts).filter(above & pl.col("value").is_not_nan())


@dataclass(frozen=True, slots=True)
class Spans:
    """Start and end times of trials, UNIX seconds."""

    begin: Floats
    end: Floats

    @classmethod
    def of(cls, trials: pl.DataFrame) -> Spans:
        begin = trials["started"].to_numpy()
        return cls(begin, begin + trials["wall_ns"].to_numpy() / 1e9)

    def mean(self, tick_windows: pl.DataFrame, name: str) -> pl.Series:
        """Return a column's mean of `windows` over each span, weighted by overlap; null without a window."""
        present = tick_windows.filter(pl.col(name).is_not_null())
        if present.is_empty():
            return pl.Series(name, [None] * self.begin.size, dtype=pl.Float64)
        length = present["seconds"].to_numpy()
        edges = np.column_stack([present["begin"].to_numpy(), present["end"].to_numpy()]).ravel()
        edges = np.maximum.accumulate(edges)  # A clock that was set back must not make time run backwards.
        covered, total = _integral(edges, length), _integral(edges, length * present[name].to_numpy())
        within = self._between(edges, covered)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(within > 0, self._between(edges, total) / within, np.nan)
        return pl.Series(name, share).fill_nan(None)

    def _between(self, edges: Floats, integral: Floats) -> Floats:
        return np.asarray(np.interp(self.end, edges, integral) - np.interp(self.begin, edges, integral))


def _integral(edges: Floats, steps: Floats) -> Floats:
    """Return the sum of ``steps`` (one for each window) up to each edge.

    A window has two edges: the sum rises within it, and stays constant in the gaps.
    """
    risen = np.cumsum(steps)
    sums = np.column_stack([risen - steps, risen]).ravel()
    assert sums.size == edges.size
    return sums


def _throttled(trials: pl.DataFrame, spans: Spans, tick_windows: pl.DataFrame, instances: pl.DataFrame) -> pl.Series:
    """Return the periods a second in which each trial's own instance was throttled."""
    rates = np.full(trials.height, np.nan)
    arms = trials.select(pl.col("platform").cast(pl.String), "replica")
    for (platform, replica), part in instances.partition_by("platform", "replica", as_dict=True).items():
        # Counters restart with every instance, so a decrease means that the instance was replaced.
        counted = part.sort("tick").select("tick", pl.col("throttled").diff().clip(0).alias("periods"))
        joined = tick_windows.join(counted, on="tick").with_columns(
            (pl.col("periods") / pl.col("seconds")).alias("throttled")
        )
        of_arm = ((arms["platform"] == str(platform)) & (arms["replica"] == replica)).to_numpy()
        values = Spans(spans.begin[of_arm], spans.end[of_arm]).mean(joined, "throttled")
        rates[of_arm] = values.fill_null(float("nan")).to_numpy()
    return pl.Series("throttled", rates).fill_nan(None)


def without(samples: pl.DataFrame, marked: pl.DataFrame) -> pl.DataFrame:
    """Return the samples of trials that are not marked."""
    keys = marked.select(KEY).unique()
    return samples.join(keys, on=list(KEY), how="anti", maintain_order="left") if keys.height else samples


def by_reason(marked: pl.DataFrame) -> dict[tuple[str, str], tuple[int, dict[str, int]]]:
    """Return, by workload and platform, the number of marked trials, in total and for each reason."""
    by_arm: dict[tuple[str, str], tuple[int, dict[str, int]]] = {}
    for (workload, platform), part in marked.partition_by("workload", "platform", as_dict=True).items():
        numbers = dict(part.group_by("reason").len().iter_rows())
        counts = {reason: int(numbers[reason]) for reason in LIMITS if reason in numbers}
        by_arm[str(workload), str(platform)] = part.select(KEY).n_unique(), counts
    return by_arm
