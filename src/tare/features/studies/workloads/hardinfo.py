"""The six jobs of HardInfo as probes of the agent, in slices.

Li 2017, 3.2.2 and figure 3, used HardInfo 0.5.1, which reports the times or rates of six fixed jobs. Debian's hardinfo
needs a graphical toolkit and is not in the image; these are the same jobs by the same published algorithms, on one
thread, all as rates (higher is better), each checked against its known answer. What HardInfo calls FFT solves linear
equations, so this does too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tare.model import Direction, Family, Metric
from tare.workloads.base import Params, SliceWorkload

MIB = 2**20
_QUICK: Params = {"slice_ms": 100, "rounds": 4, "warmup_ms": 200}
_FULL: Params = {"slice_ms": 100, "rounds": 40, "warmup_ms": 500}


class _Job(SliceWorkload):
    """Parameters: those of the schedule."""

    family = Family.CPU
    profiles: ClassVar[Mapping[str, Params]] = {"quick": _QUICK, "full": _FULL}


class CryptoHash(_Job):
    """MD5 and SHA-1 in turn. Parameters: those of the schedule."""

    name = "hardinfo-cryptohash"
    title = "HardInfo's CryptoHash (tare's own program): MD5 and SHA-1 of 64 KiB of text"
    metrics = (Metric("throughput", "MiB/s", Direction.HIGHER, "text hashed a second"),)
    work_unit = "MiB"
    work_scale = MIB
    probe = "hardinfo-cryptohash"
    parts: ClassVar[Mapping[str, str]] = {"throughput": "bytes"}


class Fft(_Job):
    """100 linear equations by LUP decomposition. Parameters: those of the schedule."""

    name = "hardinfo-fft"
    title = "HardInfo's FFT (tare's own program): which solves 100 linear equations by LUP decomposition"
    metrics = (Metric("solutions-per-second", "solutions/s", Direction.HIGHER, "systems of equations solved a second"),)
    work_unit = "solution"
    probe = "hardinfo-fft"
    parts: ClassVar[Mapping[str, str]] = {"solutions-per-second": "solutions"}


class Fibonacci(_Job):
    """The recursive Fibonacci number. Parameters: ``n``, which of them; and those of the schedule."""

    name = "hardinfo-fibonacci"
    title = "HardInfo's Fibonacci (tare's own program): the 42nd Fibonacci number by recursion"
    metrics = (Metric("calls-per-second", "Mcalls/s", Direction.HIGHER, "calls of the recursion a second"),)
    work_unit = "Mcall"
    work_scale = 1e6
    probe = "hardinfo-fibonacci"
    parts: ClassVar[Mapping[str, str]] = {"calls-per-second": "calls"}
    profiles: ClassVar[Mapping[str, Params]] = {"quick": {"n": 42, **_QUICK}, "full": {"n": 42, **_FULL}}


class NQueens(_Job):
    """The search for all ways to place queens. Parameters: ``queens``, and those of the schedule."""

    name = "hardinfo-nqueens"
    title = "HardInfo's N-Queens (tare's own program): all ways to place 11 queens"
    metrics = (Metric("squares-per-second", "Msquares/s", Direction.HIGHER, "squares tried a second"),)
    work_unit = "Msquare"
    work_scale = 1e6
    probe = "hardinfo-nqueens"
    parts: ClassVar[Mapping[str, str]] = {"squares-per-second": "squares"}
    profiles: ClassVar[Mapping[str, Params]] = {"quick": {"queens": 11, **_QUICK}, "full": {"queens": 11, **_FULL}}


class Raytracing(_Job):
    """J. Walker's fbench. Parameters: those of the schedule."""

    name = "hardinfo-raytracing"
    title = "HardInfo's Raytracing (tare's own program): Walker's fbench, rays through a telescope's objective"
    metrics = (Metric("designs-per-second", "designs/s", Direction.HIGHER, "objectives traced a second"),)
    work_unit = "design"
    probe = "hardinfo-raytracing"
    parts: ClassVar[Mapping[str, str]] = {"designs-per-second": "designs"}


class Zlib(_Job):
    """Deflate and inflate in turn, in blocks of 16 KiB. Parameters: those of the schedule."""

    name = "hardinfo-zlib"
    title = "HardInfo's Zlib (tare's own program): text compressed at level 6, and uncompressed"
    metrics = (
        Metric("compress", "MiB/s", Direction.HIGHER, "text compressed a second"),
        Metric("uncompress", "MiB/s", Direction.HIGHER, "text uncompressed a second"),
    )
    work_unit = "MiB"
    work_scale = MIB
    probe = "hardinfo-zlib"
    parts: ClassVar[Mapping[str, str]] = {"compress": "compress", "uncompress": "uncompress"}


WORKLOADS = (CryptoHash(), Fft(), Fibonacci(), NQueens(), Raytracing(), Zlib())
