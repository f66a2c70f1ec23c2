"""`tare quick`: sets up, finds or starts a Docker daemon, and measures."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from tare.campaign.plan.campaign_request import CampaignRequest
from tare.cli.choices import ProgressOptions, ProgressStyle
from tare.cli.console import Console
from tare.cli.run import measure
from tare.errors import HostError
from tare.host import own_dockerd, processes
from tare.host.kernel import bridged
from tare.model import NATIVE_VETH
from tare.setup.carry_out import set_up


def first_answer(components: Sequence[str], platforms: Sequence[str], file: Path, *, dry_run: bool) -> None:
    """Install what the components lack, and weigh the platforms. Raises `TareError`.

    What cannot be installed is told, and so is what it keeps from being measured.
    """
    console = Console(stderr=True)

    def tell(line: str) -> None:
        console.print(line, markup=False, soft_wrap=True)

    tell(f"weighing {', '.join(platforms)} against the bare host; for others: tare quick --with NAME,...")
    try:
        set_up(",".join(components), dry_run=dry_run, tell=tell)
    except HostError as error:
        tell(f"not all is there: {error}")
    if dry_run:
        return
    with contextlib.ExitStack() as held:
        if any(name.startswith("docker") for name in platforms) and processes.find("dockerd") is not None:
            try:
                if held.enter_context(own_dockerd.lent()):
                    tell("no Docker daemon ran: one was started for the time of the measuring")
            except HostError as error:
                tell(f"without Docker: {error}")
        # Where the host tracks connections, native's packets alone pay for that: containers look faster than they are.
        second = [] if NATIVE_VETH in platforms or not bridged.tracks_connections() else [NATIVE_VETH]
        request = CampaignRequest(platforms=list(platforms), second=second)
        measure(request, file, ProgressOptions(ProgressStyle.AUTO, None), as_json=False)
