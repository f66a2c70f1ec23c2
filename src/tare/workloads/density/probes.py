"""The agent's probes in 1, 2, 4 ... instances at once: the rate of each, and of all together.

Anjali 2020, 4.2 and figure 5: sysbench cpu and a probe of the last-level cache in up to ten instances, for ten seconds
each. Here the slices of all instances begin at one instant, and the figure is that of the time in which all of them
work. These workloads differ in data only: the probe, and which of its rates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tare.model import Direction
from tare.workloads.apart import ProbeDensity, density_metrics
from tare.workloads.base import Params
from tare.workloads.cpu import llc_probe, primes
from tare.workloads.memory import stream

MIB = 2**20


class DensityPrimes(ProbeDensity):
    """Parameters: ``most``, and those of `primes`."""

    name = "density-primes"
    title = "primes to 10,000 in 1, 2, 4 ... instances at once"
    metrics = density_metrics("events/s", Direction.HIGHER, "an instance's prime searches", "all prime searches")
    work_unit = "event"
    inner = primes.WORKLOAD
    metric = "events-per-second"
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"most": 4, "max_prime": 10_000, "slice_ms": 400, "rounds": 3, "warmup_ms": 100},
        "full": {"most": 8, "max_prime": 10_000, "slice_ms": 1000, "rounds": 10, "warmup_ms": 500},
    }


class DensityStream(ProbeDensity):
    """Parameters: ``most``, and those of `stream`: the three arrays of every instance are its own."""

    name = "density-stream"
    title = "STREAM's triad in 1, 2, 4 ... instances at once"
    metrics = density_metrics("MiB/s", Direction.HIGHER, "an instance's triad", "all triads together")
    work_unit = "MiB"
    inner = stream.WORKLOAD
    metric = "triad"
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"most": 4, "array_bytes": 64 * MIB, "slice_ms": 400, "rounds": 3, "warmup_ms": 100},
        "full": {"most": 8, "array_bytes": 128 * MIB, "slice_ms": 1000, "rounds": 10, "warmup_ms": 500},
    }


class DensityLlc(ProbeDensity):
    """Parameters: ``most``, and those of `llc-probe`: every instance reads a buffer as large as the whole cache."""

    name = "density-llc"
    title = "the last-level cache probe in 1, 2, 4 ... instances at once"
    metrics = density_metrics("Mprobes/s", Direction.HIGHER, "an instance's lines read", "all lines read")
    work_unit = "Mprobe"
    inner = llc_probe.WORKLOAD
    metric = "probes-per-second"
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"most": 4, "bytes": llc_probe.last_level_bytes(), "slice_ms": 400, "rounds": 3, "warmup_ms": 100},
        "full": {"most": 8, "bytes": llc_probe.last_level_bytes(), "slice_ms": 1000, "rounds": 10, "warmup_ms": 500},
    }


WORKLOADS = (DensityLlc(), DensityPrimes(), DensityStream())
