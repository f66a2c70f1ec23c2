"""Builds the report's part on sampled stacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tare.features.kernel.analysis.footprint_sets import Exposure, PooledFootprints
from tare.features.kernel.analysis.stacks import SampleParts, entries, own_time
from tare.features.kernel.models.footprint_models import SharesReport, StacksReport
from tare.features.kernel.words.entry_words import entry_text
from tare.footprint_model import IDLE, SAMPLES_A_SECOND, Phase, Scope

#: Number of functions, and of reasons for entering the kernel, that are named.
TOP = 10

#: What was sampled: platform, scope, phase, workload.
Case = tuple[str, Scope, Phase, str | None]


def stacks_report(exposure: Exposure) -> list[StacksReport]:
    """A row per platform, scope, phase and workload."""
    return [_row(case, pool) for case, pool in cases(exposure)]


def cases(exposure: Exposure) -> Iterator[tuple[Case, PooledFootprints]]:
    """All samples, repeats pooled: first by workload, then of the start, last of the idle host."""
    phases: list[tuple[Phase, str | None]] = [(Phase.STEADY, name) for name in exposure.workloads]
    for phase, workload in [*phases, (Phase.START, None)]:
        for scope in (Scope.INSTANCE, Scope.HOST):
            for platform in exposure.platforms:
                pool = exposure.pool(platform, scope, phase, workload)
                if pool is not None:
                    yield (platform, scope, phase, workload), pool
    if exposure.idle is not None:
        yield (IDLE, Scope.HOST, Phase.STEADY, None), exposure.idle


def _row(case: Case, pool: PooledFootprints) -> StacksReport:
    platform, scope, phase, workload = case
    parts = SampleParts.of(pool.hits)
    return StacksReport(
        platform=platform,
        scope=scope,
        phase=phase,
        workload=workload,
        n_repeats=pool.footprints,
        seconds=pool.seconds,
        samples=parts.samples,
        lost=pool.lost,
        cpus=parts.samples / pool.seconds / SAMPLES_A_SECOND,
        kernel_percent=_percent(parts.kernel, parts),
        user_percent=_percent(parts.user, parts),
        guest_percent=_percent(parts.guest, parts),
        entries=_shares({entry_text(entry): count for entry, count in entries(pool.hits).items()}, parts),
        own_time=_shares(own_time(pool.hits), parts),
    )


def _percent(samples: int, parts: SampleParts) -> float | None:
    return 100 * samples / parts.samples if parts.samples else None


def _shares(counts: Mapping[str, int], parts: SampleParts) -> list[SharesReport]:
    most = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:TOP]
    return [SharesReport(name=name, percent=100 * count / parts.samples) for name, count in most]
