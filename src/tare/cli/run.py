"""What `tare run` does: measures, and shows the report."""

from __future__ import annotations

from pathlib import Path

from tare.campaign.execution import conduct
from tare.campaign.plan.request import CampaignRequest
from tare.campaign.plan.study import foreword
from tare.cli.consent import agreed
from tare.cli.console import Console
from tare.cli.progress import CampaignDisplay
from tare.cli.report import show
from tare.host import own_namespaces, state
from tare.host.facts import machine
from tare.outputs import page_of
from tare.report.campaign import calibration


def measure(order: CampaignRequest, file: Path, *, as_json: bool) -> None:
    """Run a new campaign into a file, and show it. Raises `TareError`."""
    own_namespaces.enter(state.home())
    console = Console(stderr=True)
    if notice := foreword(order):
        console.print(notice, markup=False, soft_wrap=True)
    with CampaignDisplay(console, foreword=_resolution) as progress:
        conduct.begin(order, file, progress)
    show([file], html=page_of(file), as_json=as_json)


def go_on(file: Path, *, trusted: bool, as_json: bool) -> None:
    """Go on with a campaign, and show it. Raises `TareError`. ``trusted``: see `tare.cli.consent`."""
    own_namespaces.enter(state.home())
    answer = agreed(file, trusted=trusted)
    with CampaignDisplay(Console(stderr=True)) as progress:
        conduct.resume(file, progress, progress.warn, answer)
    show([file], html=page_of(file), as_json=as_json)


def _resolution() -> str:
    return calibration.line(state.home(), machine.gather().machine)
