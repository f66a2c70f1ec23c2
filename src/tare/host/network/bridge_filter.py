"""The module br_netfilter, which takes each frame that crosses a bridge through the host's packet rules.

Docker and Kubernetes load it. It is a setting of the host's for all bridges (a bridge's own can only add to it), and
costs a frame on tare's bridge some microseconds: of containers, and not of what has the host's own network. So it is
off for the time of a campaign, but where bridges of others have ports, whose frames may need it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tare.host import processes
from tare.host.kernel import bridged, settings
from tare.host.network.fence import BRIDGE
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack


def switch_off(cleanup: CleanupStack) -> str:
    """Switch it off until ``cleanup``; returns why it stays on, "" where it does not."""
    on = bridged.switched_on()
    if not on:
        return ""
    if others := others_bridges(_ports()):
        return f"frames on tare's bridge pass the host's packet rules (br_netfilter): {', '.join(others)} may need that"
    for file in on:
        cleanup.own(removers.setting(file, "1", "0"))
        try:
            settings.write(file, "0")
        except OSError as error:
            return f"frames on tare's bridge pass the host's packet rules: {file} cannot be written: {error.strerror}"
    return ""


def others_bridges(ports: Sequence[Mapping[str, Any]]) -> list[str]:
    """Bridges besides tare's that have ports, from what ``ip -j link show type bridge_slave`` prints."""
    masters: Collection[str] = {str(port["master"]) for port in ports if "master" in port}
    return sorted(set(masters) - {BRIDGE})


def _ports() -> list[Mapping[str, Any]]:
    listed = processes.run(["ip", "-j", "link", "show", "type", "bridge_slave"])
    return [port for port in json.loads(listed.text or "[]") if port] if listed.code == 0 else []
