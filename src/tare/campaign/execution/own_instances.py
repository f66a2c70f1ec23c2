"""One trial of a workload that starts instances of its own, by the kind of workload."""

from __future__ import annotations

from dataclasses import replace

from tare.campaign.execution.burst_trial import burst
from tare.campaign.execution.capacity_trial import fill
from tare.campaign.execution.density import ApartResult, memory, probes, runs, starts
from tare.campaign.execution.forks import copies
from tare.campaign.execution.life import live
from tare.campaign.execution.minimum import least_memory
from tare.campaign.execution.neighbour import with_neighbour
from tare.campaign.execution.restart import restarted
from tare.campaign.execution.snapshots import snapshots
from tare.campaign.execution.split import split
from tare.campaign.instances.client import LoadClient
from tare.campaign.instances.pool import InstancePool
from tare.errors import ParseError, SessionError, UsageError
from tare.image import forms
from tare.model import Sample
from tare.platforms.platform_contract import prepared
from tare.workloads.apart import (
    ApartWorkload,
    BesideWorkload,
    BurstWorkload,
    FillWorkload,
    ForkWorkload,
    ImageSizes,
    ImageWorkload,
    LeastWorkload,
    LifeWorkload,
    MemoryDensity,
    ProbeDensity,
    RestartWorkload,
    RunDensity,
    SnapshotWorkload,
    SplitWorkload,
    StartDensity,
)
from tare.workloads.base import Params
from tare.workloads.workload_contract import checked


def run_apart(workload: ApartWorkload, params: Params, pool: InstancePool, client: LoadClient) -> ApartResult:
    """Run one trial, and end the instances that it started.

    Raises `HostError` when this host or platform cannot run it, and what the platform, the session and the parsers
    raise.
    """
    try:
        result = _run(workload, params, pool, client)
        return replace(result, samples=checked(workload, result.samples))
    except (SessionError, ParseError) as error:
        pool.keep_last_words()
        pool.add_kills(error)
        raise
    finally:
        pool.clear()


def _run(workload: ApartWorkload, params: Params, pool: InstancePool, client: LoadClient) -> ApartResult:
    match workload:
        case BesideWorkload():
            return with_neighbour(workload, params, pool, client)
        case SplitWorkload():
            return split(workload, params, pool, client)
        case LeastWorkload():
            return least_memory(workload, params, pool)
        case ImageWorkload():
            return _image(workload, pool)
    return _life(workload, params, pool) or _several(workload, params, pool, client)


def _life(workload: ApartWorkload, params: Params, pool: InstancePool) -> ApartResult | None:
    """Operations by the platform's own commands; None where the workload is of no such kind."""
    match workload:
        case LifeWorkload():
            return live(workload, params, pool)
        case SnapshotWorkload():
            return snapshots(workload, params, pool)
        case ForkWorkload():
            return copies(workload, params, pool)
        case BurstWorkload():
            return burst(workload, params, pool)
        case RestartWorkload():
            return restarted(workload, params, pool)
    return None


def _several(workload: ApartWorkload, params: Params, pool: InstancePool, client: LoadClient) -> ApartResult:
    """Return the same in several instances at once."""
    match workload:
        case ProbeDensity():
            return probes(workload, params, pool)
        case RunDensity():
            return runs(workload, params, pool, client)
        case StartDensity():
            return starts(workload, params, pool)
        case MemoryDensity():
            return memory(workload, params, pool)
        case FillWorkload():
            return fill(workload, params, pool, client)
    raise UsageError(
        f"{workload.name} is of no kind that a campaign can run", fix="see the classes in tare.workloads.apart"
    )


def _image(workload: ImageWorkload, pool: InstancePool) -> ApartResult:
    """Return the sizes of the platform's form of the image, which the preflight has made."""
    platform, image = pool.platform, pool.launcher.image
    form = prepared(platform, image)
    unpacked = forms.unpacked_bytes(image.root) if platform.same_bits else None
    figures = workload.read(ImageSizes(form.disk_bytes, unpacked))
    return ApartResult(tuple(Sample(name, value) for name, value in figures.items()), {"form": form.form.encode()})
