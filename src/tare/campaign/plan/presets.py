"""A request, completed from its profile: a preset, or a profile that a feature adds.

A feature's module ``profiles`` has ``names()`` of its profiles and ``described()``, which the help shows. For these it
has ``ordered(request, scale, design)``, which completes a request, and ``foreword(request)``, a sentence before the
campaign.
"""

from __future__ import annotations

from dataclasses import replace

from tare.campaign.plan.campaign_plan import PRESETS, feature_profiles
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.errors import UsageError
from tare.model import Design, Scale

#: Profile of workloads in a preset.
_BASE = "quick"


def ordered(request: CampaignRequest, scale: Scale | None = None, design: Design | None = None) -> CampaignRequest:
    """Return the request, completed from its profile; what the user gave takes precedence.

    Raises `UsageError` for a scale where the profile has none.
    """
    of_features = feature_profiles()
    if request.profile in of_features:
        completed: CampaignRequest = of_features[request.profile].ordered(request, scale, design)
        return completed
    if scale is not None:
        example = next(iter(of_features), None)
        fix = f"leave --scale out, or give --profile {example}" if example else "leave --scale out"
        raise UsageError(f"the profile {request.profile} has no scales", fix=fix)
    request = replace(request, design=design or request.design)
    preset = PRESETS.get(request.profile)
    if preset is None:
        return request
    return replace(
        request,
        platforms=request.platforms or list(preset.platforms),
        workloads=request.workloads or list(preset.workloads),
        base=_BASE,
        length=preset.length,
        offered=not request.platforms,
    )


def foreword(request: CampaignRequest) -> str:
    """Return a feature's sentence before a campaign of its profile; empty for other profiles."""
    module = feature_profiles().get(request.profile)
    return str(module.foreword(request)) if module is not None else ""
