"""How many instances fit on the host, what runs out first, and what to reserve for each."""

from __future__ import annotations

import datetime

from tare.capacity_model import Resource, Stop
from tare.records import Documented


class ResourceFitReport(Documented):
    """How many instances a resource of the host holds."""

    resource: Resource
    """What it is."""
    once: float
    """What is used of it without an instance, with what the first one adds once; bytes, CPUs, or pieces."""
    each: float
    """What each instance adds, among the numbers of them that ran."""
    most: float
    """What the host has of it."""
    kept_back: float
    """What of that stays free for the host."""
    count: float | None
    """Instances that it holds; null where more of them take no more of it."""
    low: float | None
    """Lower end of the 90 % interval over fills; null below two fills."""
    high: float | None
    """Upper end; null where the fills do not bound it."""


class MemoryPartsReport(Documented):
    """Where the host's memory went at the last level, in bytes for each instance, means over fills."""

    own: float
    """Pages of the instances' processes that no file gives back."""
    shared: float
    """Their part of pages that files give back (programs and libraries), which are not in the sum."""
    kernel: float
    """The kernel's: objects that cannot be reclaimed, page tables, stacks of threads, and what each CPU has."""
    engine: float
    """Growth of the daemons that all instances share."""
    unexplained: float
    """What these do not explain of the fall of `MemAvailable`; negative where it fell by less."""
    unexplained_half: float | None
    """Half of the 90 % interval of that, from fills, or from the levels of the only fill; null with too few levels."""
    explained_percent: float | None
    """The share of the fall of `MemAvailable`, without other processes, that the parts explain.

    Null where the host's own moves hide it: `unexplained_half` is more than a tenth of what the parts sum to."""
    others: float
    """Bytes that other processes of the host took meanwhile, tare among them: they are in no other figure."""


class ReserveReport(Documented):
    """What to reserve for an instance beside its workload."""

    memory: int
    """Bytes, at the 99th percentile of instances."""
    cpu: float
    """CPUs, at the 99th percentile of instances while they are idle."""
    tasks: int
    """Threads on the host."""
    workload_memory: float
    """Bytes that were taken off: what the same idle program takes on the baseline."""
    yaml: str
    """A RuntimeClass of Kubernetes with `overhead.podFixed`."""
    equivalents: list[str]
    """The same for Docker and systemd."""


class CostReport(Documented):
    """What an instance costs on the host of the price file."""

    count: float
    """Instances that it holds."""
    first: Resource
    """What runs out first there."""
    month: float
    """Of one idle instance, a month, in the file's currency."""
    low: float | None
    """Lower end of the 90 % interval; null below two fills."""
    high: float | None
    """Upper end."""
    thousand_runs: float | None
    """Of a thousand one-shot commands by their CPU time (`whole-life`); null where it was not measured."""


class PricedReport(Documented):
    """The price file."""

    name: str
    """The host."""
    cpus: float
    """CPUs that instances may use."""
    memory_gib: float
    """Memory, in GiB."""
    price: float
    """A month."""
    currency: str
    """The currency (ISO 4217)."""
    source: str
    """Where the price stands."""
    date: datetime.date
    """When it stood there."""


class CapacityLevelReport(Documented):
    """A number of instances at once, means over fills; of memory over all that came so far, by lines between levels."""

    count: int
    """Instances."""
    memory: float
    """Bytes of the host's memory that they take together."""
    cpu: float
    """CPUs that they use together while idle, daemons included."""
    start_ms: float | None
    """The median start from the level before up to this one, in ms."""
    kept: float | None
    """The share of its work alone that a working instance has; null where none was put to work."""
    late_ms: float | None
    """How much later than it was to a working instance began its work, the median, in ms."""


class FilledReport(Documented):
    """What real fills held."""

    count: float
    """Instances that they held, the mean; where a budget was crossed, between the last two levels."""
    least: int
    """The most instances with which every limit held, of the fill that held the fewest."""
    most: int
    """The same of the fill that held the most."""
    n_fills: int
    """Fills."""


class StopReport(Documented):
    """Why a fill ended."""

    stop: Stop
    """The kind."""
    reason: str
    """In words, with the counter."""


class PlatformCapacityReport(Documented):
    """One platform on this host."""

    platform: str
    """The platform."""
    text: str
    """The answer in a sentence."""
    n_fills: int
    """Fills: one a block, with fresh instances each; two of the baseline."""
    most_run: int
    """The most instances that ran at once."""
    count: float | None
    """Instances that fit; null for the baseline, where nothing that is counted runs out, and where the host's noise
    hides what an instance takes."""
    low: float | None
    """Lower end of the 90 % interval; null below two fills."""
    high: float | None
    """Upper end."""
    first: Resource | None
    """What runs out first."""
    lift: str
    """What would lift that limit; empty where there is none."""
    resources: list[ResourceFitReport]
    """Each resource that was counted."""
    memory: MemoryPartsReport
    """Where the memory went."""
    reserve: ReserveReport | None
    """What to reserve; null for the baseline, and where the host's noise hides what an instance takes."""
    cost: CostReport | None
    """What it costs; null without a price file."""
    start_median_ms: float
    """The median start while others ran, in ms."""
    start_p99_ms: float
    """The 99th percentile."""
    levels: list[CapacityLevelReport]
    """The levels, by rising number of instances."""
    knee: float | None
    """Instances beyond which more of them do less and less more work together; null where none was put to work."""
    filled: FilledReport | None
    """A real fill; null where only a quarter was filled."""
    stops: list[StopReport]
    """Why each fill ended."""


class CapacityReport(Documented):
    """How many instances fit on this host."""

    room: float
    """Bytes of the host's memory that the instances may take: what was available less the reserve, or the budget."""
    reserve: int
    """Bytes that stay free for the host."""
    budget: int | None
    """The memory that the instances may take, as if the host had no more; null: all but the reserve."""
    cpus: float
    """CPUs that instances may use."""
    active: float
    """The share of the instances that are at work at any moment."""
    prices: PricedReport | None
    """The price file; null without one."""
    host: str
    """How the host's kernel gives out memory: swap, overcommit, KSM, huge pages, a balloon, memory.high; "" where the
    campaign's file does not say."""
    text: str
    """What the figures are of."""
    platforms: list[PlatformCapacityReport]
    """One entry a platform, the baseline first."""
    left_out: list[str]
    """Sentences on fills that could not be read."""
