"""Last-level-cache probe: 4 bytes of every 64 byte line of a buffer as large as that cache, in order, in slices.

Anjali 2020, 4.2 and figure 5b: probes completed in 10 seconds. A probe is one read here. The study's 33,000 in 10 s
must be passes over its buffer: no processor reads so few lines. Its LLCProbe also balances the lines over the cache's
sets by physical addresses, which an instance does not see.

The size is that of this host's cache, the same for every platform: a sandbox may show another processor than there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from tare.model import Direction, Family, Metric
from tare.workloads.base import Params, SliceWorkload

#: Where the kernel describes a processor's caches, each in a folder.
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
#: The size where it does not.
USUAL_BYTES = 32 * 2**20
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


def last_level_bytes(caches: Path = CACHES) -> int:
    """Return the size of the highest cache of a processor in bytes; `USUAL_BYTES` where the kernel does not show it."""
    sizes: dict[int, int] = {}
    for index in caches.glob("index[0-9]*"):
        try:
            level, size = (int(index.joinpath("level").read_text()), index.joinpath("size").read_text().strip())
            sizes[level] = int(size[:-1]) * _UNITS[size[-1]]
        except (OSError, ValueError, LookupError):
            continue  # under a hypervisor some of the files may be missing
    return sizes[max(sizes)] if sizes else USUAL_BYTES


class LlcProbe(SliceWorkload):
    """Parameters: ``bytes`` of the buffer, and those of the schedule."""

    name = "llc-probe"
    title = "last-level cache: 4 bytes of every line of a buffer of its size, in slices of all instances in turn"
    family = Family.CPU
    metrics = (Metric("probes-per-second", "Mprobes/s", Direction.HIGHER, "lines read a second"),)
    work_unit = "Mprobe"
    work_scale = 1e6
    probe = "llc-probe"
    parts: ClassVar[Mapping[str, str]] = {"probes-per-second": "probes"}
    profiles: ClassVar[Mapping[str, Params]] = {
        "quick": {"bytes": last_level_bytes(), "slice_ms": 100, "rounds": 4, "warmup_ms": 200},
        "full": {"bytes": last_level_bytes(), "slice_ms": 100, "rounds": 100, "warmup_ms": 500},
    }


WORKLOAD = LlcProbe()
