"""A campaign as a published study ran it: its platforms, workloads, parameters, repetitions and order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tare import store
from tare.campaign.plan.campaign_plan import RunProfile
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.features.studies import literature
from tare.model import Design, Scale

if TYPE_CHECKING:
    from tare.features.studies.literature import RunJob, Study
    from tare.store import LeftOut

#: The workloads' own profile for the parameters that a study does not give.
_BASE = {Scale.SCALED: "quick", Scale.FULL: "full"}


def names() -> list[str]:
    """Return the names of the studies."""
    return list(literature.names())


def described() -> str:
    """Return the profiles as the help of `tare run --profile` names them."""
    return f"a study's: {', '.join(literature.names())} (its platforms, workloads, parameters, repetitions and order)"


def ordered(request: CampaignRequest, scale: Scale | None, design: Design | None) -> CampaignRequest:
    """Return the request, completed from its study; what the user gave takes precedence."""
    study, scale = literature.load(request.profile), scale or Scale.SCALED
    own_platforms = not request.platforms
    length = study.run.length(scale)
    return replace(
        request,
        platforms=_platforms(study) if own_platforms else request.platforms,
        workloads=request.workloads or [job.workload for job in study.run.jobs(scale)],
        design=design or study.run.design,
        base=_BASE[scale],
        length=RunProfile(blocks=length.blocks, arm_s=length.arm_s),
        scale=scale.value,
        offered=own_platforms,
        left_out=_without(study) if own_platforms else (),
        in_order=study.run.in_order,
        params={**{job.workload: dict(_params(job, scale)) for job in study.run.job}, **request.params},
    )


def foreword(request: CampaignRequest) -> str:
    """Return a sentence on how the profile is scaled, and how long full scale takes; "" for a request without scale."""
    if request.scale is None:
        return ""
    study = literature.load(request.profile)
    run, full = study.run, _seconds(full_length(study, _at_full_scale(study, request.workloads)))
    if request.scale == Scale.FULL:
        return f"profile {request.profile}: the study's own durations, about {full} an arm"
    blocks = request.blocks
    if blocks is None and request.budget_s is None:
        blocks = run.scaled.blocks
    less = run.shorter(Scale.SCALED, blocks)
    return f"profile {request.profile}, scaled: {less}; --scale full takes about {full} an arm"


def _at_full_scale(study: Study, workloads: Sequence[str]) -> Sequence[str]:
    """Return the workloads of the full scale, or the same workloads if the user chose them."""
    scaled, full = ([job.workload for job in study.run.jobs(scale)] for scale in (Scale.SCALED, Scale.FULL))
    return full if set(workloads) == set(scaled) else workloads


def full_length(study: Study, workloads: Sequence[str]) -> float:
    """Return the seconds of one arm with the study's own durations and numbers of runs, without the starts."""
    if study.run.full.arm_s is not None:
        return study.run.full.arm_s
    assert study.run.full.blocks is not None
    return study.run.full.blocks * sum(job.full_s for job in study.run.job if job.workload in workloads)


def _platforms(study: Study) -> list[str]:
    return list(dict.fromkeys(name for platform in study.run.platform for name in platform.run))


def _without(study: Study) -> list[LeftOut]:
    return [
        store.LeftOut(platform=platform.study, reason=platform.why)
        for platform in study.run.platform
        if not platform.run
    ]


def _params(job: RunJob, scale: Scale) -> dict[str, int | float | str | bool]:
    return job.full if scale is Scale.FULL else job.scaled


def _seconds(seconds: float) -> str:
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
