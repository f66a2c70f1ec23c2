"""The current disturbance of a campaign, in words: the likeliest cause of noise first."""

from __future__ import annotations

from tare.analysis.quality.contamination import FOREIGN_LIMIT, MEMORY_PRESSURE_LIMIT, STEAL_LIMIT, SWAP_LIMIT
from tare.analysis.quality.noise import Noise
from tare.report.sentences.numbers import percent


def cause(now: Noise) -> str:
    """Return what disturbs, of what is above the limit of marking a trial; "" where nothing is."""
    causes = []
    if now.steal > STEAL_LIMIT:
        causes.append((now.steal / STEAL_LIMIT, f"the hypervisor below takes {percent(now.steal)} of the time"))
    if now.foreign is not None and now.foreign > FOREIGN_LIMIT:
        where = "the measured CPUs" if now.cpu is None else f"the measured CPUs, most on CPU {now.cpu}"
        causes.append((now.foreign / FOREIGN_LIMIT, f"other programs use {percent(now.foreign)} of {where}"))
    if now.memory is not None and now.memory > MEMORY_PRESSURE_LIMIT:
        waits = f"memory is short: tasks wait for it in {percent(now.memory)} of the time"
        causes.append((now.memory / MEMORY_PRESSURE_LIMIT, waits))
    if now.swapped > SWAP_LIMIT:
        causes.append((now.swapped / SWAP_LIMIT, f"the host swaps {now.swapped:,.0f} pages a second"))
    return "; ".join(text for _, text in sorted(causes, key=lambda pair: -pair[0]))
