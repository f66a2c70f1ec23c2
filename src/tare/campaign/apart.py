"""One trial of a workload that starts instances of its own: which of its kinds it is, and what that takes."""

from __future__ import annotations

from dataclasses import replace

from tare.campaign.brood import Brood
from tare.campaign.density import Told, probes, runs, starts, weights
from tare.campaign.least import least_memory
from tare.campaign.runs import Client
from tare.errors import SessionError, UsageError
from tare.image import forms
from tare.model import Sample
from tare.platforms.contract import prepared
from tare.workloads.apart import (
    ApartWorkload,
    ImageSizes,
    ImageWorkload,
    LeastWorkload,
    ProbeDensity,
    RunDensity,
    StartDensity,
    WeightDensity,
)
from tare.workloads.base import Params
from tare.workloads.contract import checked


def run_apart(workload: ApartWorkload, params: Params, brood: Brood, client: Client) -> Told:
    """Run it once, and end what it started.

    Raises `HostError` when it cannot be done here or on this platform, else as the platform, the session and the
    parsers do.
    """
    try:
        told = _run(workload, params, brood, client)
        return replace(told, samples=checked(workload, told.samples))
    except SessionError:
        brood.keep_last_words()
        raise
    finally:
        brood.clear()


def _run(workload: ApartWorkload, params: Params, brood: Brood, client: Client) -> Told:
    match workload:
        case ProbeDensity():
            return probes(workload, params, brood)
        case RunDensity():
            return runs(workload, params, brood, client)
        case StartDensity():
            return starts(workload, params, brood)
        case WeightDensity():
            return weights(workload, params, brood)
        case LeastWorkload():
            return least_memory(workload, params, brood)
        case ImageWorkload():
            return _image(workload, brood)
    raise UsageError(
        f"{workload.name} is of no kind that a campaign can run", fix="see the classes in tare.workloads.apart"
    )


def _image(workload: ImageWorkload, brood: Brood) -> Told:
    """Look at the platform's form of the image, which is there already."""
    platform, image = brood.platform, brood.nursery.image
    form = prepared(platform, image)
    unpacked = forms.unpacked_bytes(image.root) if platform.same_bits else None
    figures = workload.read(ImageSizes(form.disk_bytes, unpacked))
    return Told(tuple(Sample(name, value) for name, value in figures.items()), {"form": form.form.encode()})
